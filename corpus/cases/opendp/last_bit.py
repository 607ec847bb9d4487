"""opendp 0.14.2: is randomised response on bits meant to release the last bit as it is? (not in 0.16.0)"""

import functools

import opendp.prelude as dp

CASE = {
    "requires": "opendp==0.14.2",
    "fixed": "opendp==0.16.0",
    "claim": "epsilon=2.19723",
    "relation": "replace-one",
    "domain": "0:63",
    "rows": 1,
    "min_rows": 1,
    "pair": ([0], [63]),
    "level": "unbounded",
    "family": "local protocols",
    "cause": ("coordinate", "output["),
    "source": "",
}

dp.enable_features("contrib")


@functools.cache
def _answer():
    return dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=0.5)


def draw(data, n):
    """Flip bits at random in a vector of 64 bits in which the one at the row's place is set."""
    answer, vector = _answer(), (1 << data[0]).to_bytes(8, "little")
    return [answer(vector) for _ in range(n)]


def shows(output):
    """The highest bit of the last byte is set."""
    return output[7] >= 128
