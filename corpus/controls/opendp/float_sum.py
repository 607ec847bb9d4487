"""opendp 0.16.0: a sum of numbers from 0 to 1 with Laplace noise on a lattice."""

import functools

import opendp.prelude as dp

CASE = {
    "requires": "opendp==0.16.0",
    "claim": "epsilon=1.0000001",
    "relation": "add-remove-one",
    "domain": "0.0,1.0",
    "family": "sensitivities and bounds",
}

dp.enable_features("contrib")


@functools.cache
def _sum():
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    clamped = dp.t.make_clamp(*space, bounds=(0.0, 1.0)) >> dp.t.then_sum()
    return clamped >> dp.m.then_laplace(scale=1.0000001)


def draw(data, n):
    """Noisy sum."""
    total = _sum()
    return [total(list(map(float, data))) for _ in range(n)]
