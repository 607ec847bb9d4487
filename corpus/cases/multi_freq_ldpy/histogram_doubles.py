"""multi-freq-ldpy 0.2.5: histogram encoding adds Laplace noise in doubles, whose last bits tell the value."""

from multi_freq_ldpy.pure_frequency_oracles.HE import HE_Client

CASE = {
    "requires": "multi-freq-ldpy==0.2.5 scipy==1.17.1 numpy==2.3.5 numba==0.63.1 xxhash==3.6.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0:3",
    "rows": 1,
    "min_rows": 1,
    "pair": ([0], [1]),
    "level": "unbounded",
    "family": "local protocols",
    "cause": ("floating-point",),
    "source": "https://arxiv.org/abs/2207.13793",
}


def draw(data, n):
    """Encode a value of four as four noisy numbers."""
    return [HE_Client(int(data[0]), 4, 1.0).tolist() for _ in range(n)]


def shows(output):
    """A first number below 1/2 that is no multiple of 2^-53: 1 plus a double of at least 1/2 in size cannot give it."""
    return 0.0 < output[0] < 0.5 and output[0] * 2.0**53 % 1.0 != 0.0
