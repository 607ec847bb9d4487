"""smartnoise-sql 1.0.10: the estimate of a column's bounds from a noisy histogram."""

from snsql.sql._mechanisms.approx_bounds import approx_bounds

CASE = {
    "requires": "smartnoise-sql==1.0.10",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0.0,3.0,100.0",
    "outside": True,
    "rows": 8,
    "family": "quantiles and histograms",
}


def draw(data, n):
    """Lower and upper bound, None where none is found."""
    return [list(approx_bounds(data, 1.0)) for _ in range(n)]
