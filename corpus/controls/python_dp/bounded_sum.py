"""python-dp 1.1.5: a sum of integers from 0 to 3 with Laplace noise on a lattice."""

from pydp.algorithms.laplacian import BoundedSum

CASE = {
    "requires": "python-dp==1.1.5",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0:3",
    "family": "sensitivities and bounds",
}

SUM = BoundedSum(epsilon=1.0, lower_bound=0, upper_bound=3, dtype="int")


def draw(data, n):
    """Noisy sum."""
    rows = list(map(int, data))
    return [SUM.quick_result(rows) for _ in range(n)]
