"""multi-freq-ldpy 0.2.5: two rounds of symmetric unary encoding, of which each report has epsilon 1."""

from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Client

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
    """One report on a value of four."""
    return [L_SUE_Client(int(data[0]), 4, 2.0, 1.0).tolist() for _ in range(n)]
