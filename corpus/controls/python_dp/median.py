"""python-dp 1.1.5: the median of numbers from 0 to 1."""

from pydp.algorithms.laplacian import Median

CASE = {
    "requires": "python-dp==1.1.5",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0.0,0.5,1.0",
    "family": "quantiles and histograms",
}

MEDIAN = Median(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float")


def draw(data, n):
    """Noisy median."""
    rows = list(map(float, data))
    return [MEDIAN.quick_result(rows) for _ in range(n)]
