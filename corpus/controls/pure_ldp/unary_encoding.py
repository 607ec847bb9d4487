"""pure-ldp 1.2.0: unary encoding of four values."""

from pure_ldp.frequency_oracles.unary_encoding import UEClient

CASE = {
    "requires": "pure-ldp==1.2.0 scikit-learn==1.8.0 statsmodels==0.14.6 seaborn==0.13.2",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0:3",
    "rows": 1,
    "min_rows": 1,
    "family": "local protocols",
}

CLIENT = UEClient(1.0, 4, index_mapper=lambda value: value)


def draw(data, n):
    """Randomise a value of four."""
    return [CLIENT.privatise(int(data[0])).tolist() for _ in range(n)]
