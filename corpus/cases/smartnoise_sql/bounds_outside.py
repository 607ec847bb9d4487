"""smartnoise-sql 1.0.1: the estimate of a column's bounds fails if a value is beyond the last bin."""

from snsql.sql._mechanisms.approx_bounds import approx_bounds

CASE = {
    "requires": "smartnoise-sql==1.0.1 numpy==1.26.4",
    "fixed": "smartnoise-sql==1.0.10",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0.0,100.0",
    "outside": True,
    "rows": 4,
    "pair": ([1.0, 2.0, 3.0, 1e30], [1.0, 2.0, 3.0]),
    "level": "unbounded",
    "family": "quantiles and histograms",
    "cause": ("exception", "never", "only", "raises", "error"),
    "source": "https://github.com/opendp/smartnoise-sdk/issues/574",
    "draws": 300,
}


def draw(data, n):
    """Lower and upper bound, None where none is found, or that the call failed."""
    drawn = []
    for _ in range(n):
        try:
            drawn.append(list(approx_bounds(data, 1.0)))
        except ValueError:
            drawn.append("failed")
    return drawn


def shows(output):
    """The call failed."""
    return output == "failed"
