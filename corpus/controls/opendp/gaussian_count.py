"""opendp 0.16.0: a count with discrete Gaussian noise."""

import functools

import opendp.prelude as dp

CASE = {
    "requires": "opendp==0.16.0",
    "claim": "rho=0.5",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "floats and sampling",
}

dp.enable_features("contrib")


@functools.cache
def _count():
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    return dp.t.make_count(*space) >> dp.m.then_gaussian(scale=1.0)


def draw(data, n):
    """Count the rows."""
    count = _count()
    return [count(list(map(int, data))) for _ in range(n)]
