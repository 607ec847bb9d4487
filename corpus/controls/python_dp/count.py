"""python-dp 1.1.5: a count with Laplace noise on a lattice."""

from pydp.algorithms.laplacian import Count

CASE = {
    "requires": "python-dp==1.1.5",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "floats and sampling",
}

COUNT = Count(epsilon=1.0, dtype="int")


def draw(data, n):
    """Count the rows."""
    rows = list(map(int, data))
    return [COUNT.quick_result(rows) for _ in range(n)]
