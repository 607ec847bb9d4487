"""multi-freq-ldpy 0.2.5: is a subset selection meant to list the true value first, where it holds it?"""

from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

CASE = {
    "requires": "multi-freq-ldpy==0.2.5 scipy==1.17.1 numpy==2.3.5 numba==0.63.1 xxhash==3.6.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0:9",
    "rows": 1,
    "min_rows": 1,
    "pair": ([0], [1]),
    "level": 1.9,
    "family": "local protocols",
    "cause": ("coordinate", "place", "output["),
    "source": "",
    "draws": 100_000,
}


def draw(data, n):
    """Report a subset of ten values as the client gives it, an array."""
    return [SS_Client(int(data[0]), 10, 1.0).tolist() for _ in range(n)]


def shows(output):
    """The first value is listed first, and the second is not listed."""
    return output[0] == 0 and 1 not in output
