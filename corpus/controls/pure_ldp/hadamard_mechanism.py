"""pure-ldp 1.2.0: the Hadamard mechanism on four values, as pairs without their container."""

from pure_ldp.frequency_oracles.hadamard_mechanism import HadamardMechClient

CASE = {
    "requires": "pure-ldp==1.2.0 scikit-learn==1.8.0 statsmodels==0.14.6 seaborn==0.13.2",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0:3",
    "rows": 1,
    "min_rows": 1,
    "family": "local protocols",
}


CLIENT = HadamardMechClient(1.0, 4, 1, index_mapper=lambda value: value)


def draw(data, n):
    """An index, and the sign of its coefficient."""
    return [list(*CLIENT.privatise(int(data[0]))) for _ in range(n)]
