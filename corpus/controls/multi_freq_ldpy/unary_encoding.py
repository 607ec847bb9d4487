"""multi-freq-ldpy 0.2.5: optimised unary encoding of four values."""

from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

CASE = {
    "requires": "multi-freq-ldpy==0.2.5 scipy==1.17.1 numpy==2.3.5 numba==0.63.1 xxhash==3.6.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0:3",
    "rows": 1,
    "min_rows": 1,
    "family": "local protocols",
}


def draw(data, n):
    """Randomise a value of four."""
    return [UE_Client(int(data[0]), 4, 1.0).tolist() for _ in range(n)]
