"""Programs on PyDP, as `benchmarks.traced_libraries` traces them."""

from pydp.algorithms.numerical_mechanisms import LaplaceMechanism


def visits_by_place(data, places):
    """Noisy numbers of visitors of 6 places; a person is told to visit so many."""
    noise = LaplaceMechanism(1.0, float(places))
    return [noise.add_noise(float(sum(k in visited for visited in data))) for k in range(6)]
