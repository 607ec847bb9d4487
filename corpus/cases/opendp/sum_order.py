"""opendp 0.4.0: a sum that stops at the ends of its type depends on the order of the rows."""

import functools

from opendp import meas, trans
from opendp.mod import enable_features

CASE = {
    "requires": "opendp==0.4.0",
    "fixed": "opendp==0.5.0",
    "claim": "epsilon=1",
    "relation": "add-remove-any-order",
    "domain": "-127,0,127",
    "rows": 6,
    "pair": ([127, -127, -127], [-127, -127, 127, 127]),
    "level": 1.98,
    "family": "sensitivities and bounds",
    "cause": ("value", "threshold", "set of"),
    "source": "https://arxiv.org/abs/2207.10635",
}
#: Integers of 8 bits, whose sum moves by 127 at most if the order does not count.
BOUNDS, KIND = (-127, 127), "i8"


@functools.cache
def _sum():
    enable_features("contrib")
    noise = meas.make_base_geometric(scale=127.0, D=f"AllDomain<{KIND}>")
    return trans.make_bounded_sum(bounds=BOUNDS, T=KIND) >> noise


@functools.cache
def _split_sum():
    enable_features("contrib")
    noise = meas.make_base_discrete_laplace(scale=127.0, D=f"AllDomain<{KIND}>")
    return trans.make_bounded_int_split_sum(bounds=BOUNDS, T=KIND) >> noise


def draw(data, n):
    """Noisy sum of a multiset of rows: opendp's distance between datasets is that of multisets."""
    rows = list(map(int, data))
    return [_sum()(rows) for _ in range(n)]


def draw_fixed(data, n):
    """The sum that adds up positive and negative rows by themselves."""
    rows = list(map(int, data))
    return [_split_sum()(rows) for _ in range(n)]


def shows(output):
    """The least integer, at which the noise stops."""
    return output == -128
