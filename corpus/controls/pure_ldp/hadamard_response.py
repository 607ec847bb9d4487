"""pure-ldp 1.2.0: Hadamard response on four values."""

from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer

CASE = {
    "requires": "pure-ldp==1.2.0 scikit-learn==1.8.0 statsmodels==0.14.6 seaborn==0.13.2",
    "claim": "epsilon=2",
    "relation": "replace-one",
    "domain": "0:3",
    "rows": 1,
    "min_rows": 1,
    "family": "local protocols",
}


SERVER = HadamardResponseServer(2.0, 4, index_mapper=lambda value: value)
CLIENT = HadamardResponseClient(2.0, 4, SERVER.get_hash_funcs(), index_mapper=lambda value: value)


def draw(data, n):
    """Randomise a value of four."""
    return [int(CLIENT.privatise(int(data[0]))) for _ in range(n)]
