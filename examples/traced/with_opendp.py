"""Programs on OpenDP, as `benchmarks.traced_libraries` traces them."""

import opendp.prelude as dp

dp.enable_features("contrib")


def total(data, bound):
    """Sum of values within the bounds -2 and 10, with Laplace noise for a change of a row by so much."""
    noise = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), bound / 1.0)
    return noise(float(sum(min(max(value, -2.0), 10.0) for value in data)))


def three_totals(data, share):
    """A count, a sum of values up to 10 and one of their squares, each with a share of the budget."""
    values = [int(value) for value in data]
    released = []
    for power in (0, 1, 2):
        noise = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), 10**power / share)
        released.append(noise(sum(value**power for value in values)))
    return released
