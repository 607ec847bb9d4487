r"""OpenDP, https://docs.opendp.org: a count, a sum, Gaussian noise, randomised response on bits and on categories.

    dpaudit attack 'pip:opendp==0.16.0#examples/adapters/for_opendp.py:laplace_count' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:opendp==0.16.0#examples/adapters/for_opendp.py:laplace_noise' \
        --claim "epsilon=1" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:opendp==0.16.0#examples/adapters/for_opendp.py:laplace_sum' \
        --claim "epsilon=1" --relation add-remove-one --domain 0.0,1.0 --rows 10
    dpaudit attack 'pip:opendp==0.16.0#examples/adapters/for_opendp.py:gaussian_count' \
        --claim "rho=0.5" --relation add-remove-one --domain 0,1 --rows 10
    dpaudit attack 'pip:opendp==0.16.0#examples/adapters/for_opendp.py:category' \
        --claim "epsilon=1" --relation replace-one --domain 0:3 --rows 1 --min-rows 1
    dpaudit attack 'pip:opendp==0.16.0#examples/adapters/for_opendp.py:bits' \
        --claim "epsilon=2.19723" --relation replace-one --domain 0:63 --rows 1 --min-rows 1
    dpaudit attack 'pip:opendp==0.14.2#examples/adapters/for_opendp.py:bits' \
        --claim "epsilon=2.19723" --relation replace-one --domain 0:63 --rows 1 --min-rows 1

The claims are what the library's own privacy map says of each measurement for one row more or less; for randomised
response, the local model, for one person's value replaced: `category` holds one of 0 to 3, and `bits` one bit of 64,
flipped as RAPPOR does with f = 1/2, for which the map says 2 ln 3 = 2.19722...
"""

import functools
import math

import opendp.prelude as dp

dp.enable_features("contrib")

BITS, F = 64, 0.5  # both arbitrary: a category of 64, and each bit is answered at random half the time


@functools.cache
def _count_with(noise):
    return dp.t.make_count(dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()) >> noise(scale=1.0)


@functools.cache
def _noise():
    return dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=1.0)


@functools.cache
def _sum():
    """Build the sum whose noise is the least with which the map allows epsilon = 1; the map counts rounding."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    clamped = space >> dp.t.then_clamp(bounds=(0.0, 1.0)) >> dp.t.then_sum()
    return dp.binary_search_chain(lambda scale: clamped >> dp.m.then_laplace(scale), d_in=1, d_out=1.0)


@functools.cache
def _bits():
    domain = dp.bitvector_domain(max_weight=1)
    return dp.m.make_randomized_response_bitvec(domain, dp.discrete_distance(), f=F)


@functools.cache
def _category():
    truth = math.e / (math.e + 3)  # e^epsilon / (e^epsilon + categories - 1)
    return dp.m.make_randomized_response(categories=[0, 1, 2, 3], prob=truth)


def laplace_count(data, n):
    """Count the rows with discrete Laplace noise of scale 1, one call of the measurement a draw."""
    count = _count_with(dp.m.then_laplace)
    return [count(data) for _ in range(n)]


def laplace_noise(data, n):
    """Count the rows; the noise of all n draws is added in one call, ten times faster."""
    return _noise()([len(data)] * n)


def laplace_sum(data, n):
    """Sum the rows, clamped to [0, 1], with Laplace noise in floating point."""
    total, rows = _sum(), [float(row) for row in data]
    return [total(rows) for _ in range(n)]


def gaussian_count(data, n):
    """Count the rows with discrete Gaussian noise of scale 1."""
    count = _count_with(dp.m.then_gaussian)
    return [count(data) for _ in range(n)]


def category(data, n):
    """Answer a row's category at random."""
    answer = _category()
    return [answer(data[0]) for _ in range(n)]


def bits(data, n):
    """Flip bits at random in a vector in which the one at the row's place is set; the vector is bytes."""
    answer, vector = _bits(), (1 << data[0]).to_bytes(BITS // 8, "little")
    return [answer(vector) for _ in range(n)]
