"""pure-ldp 1.2.0: local hashing of four values with eight public hash functions."""

from pure_ldp.frequency_oracles.local_hashing import FastLHClient

CASE = {
    "requires": "pure-ldp==1.2.0 scikit-learn==1.8.0 statsmodels==0.14.6 seaborn==0.13.2 xxhash==3.6.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0:3",
    "rows": 1,
    "min_rows": 1,
    "family": "local protocols",
}

CLIENT = FastLHClient(1.0, 4, k=8, use_olh=True, index_mapper=lambda value: value)


def draw(data, n):
    """Randomise a value of four."""
    return [CLIENT.privatise(int(data[0])) for _ in range(n)]
