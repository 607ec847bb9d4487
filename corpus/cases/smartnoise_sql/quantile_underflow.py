"""smartnoise-sql 1.0.1: the quantile fails if the probabilities of all intervals underflow."""

from snsql.sql._mechanisms.approx_bounds import quantile

CASE = {
    "requires": "smartnoise-sql==1.0.1 numpy==1.26.4",
    "fixed": "",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0,1",
    "rows": 2,
    "pair": ([0, 1], [1]),
    "level": "unbounded",
    "family": "quantiles and histograms",
    "cause": ("exception", "never", "only", "raises", "error"),
    "source": "https://github.com/opendp/smartnoise-sdk/issues/572",
    "draws": 400,
}


def draw(data, n):
    """Median of 1491 public zeros and the rows, or that the call failed. The library removed the function in 1.0.2."""
    drawn = []
    for _ in range(n):
        try:
            drawn.append(float(quantile([0] * 1491 + list(data), 0.5, 1.0, 0, 1)))
        except ValueError:
            drawn.append("failed")
    return drawn


def shows(output):
    """The call failed."""
    return output == "failed"
