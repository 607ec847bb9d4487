"""multi-freq-ldpy 0.2.5: two of four bits, flipped."""

from multi_freq_ldpy.long_freq_est.dBitFlipPM import dBitFlipPM_Client

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
    """Bits of a value of four; -1 for those that are left out."""
    return [dBitFlipPM_Client(int(data[0]), 4, 4, 2, 1.0).tolist() for _ in range(n)]
