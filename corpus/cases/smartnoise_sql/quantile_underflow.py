"""smartnoise-sql 1.0.1: the quantile fails if the probabilities of all intervals underflow."""

from snsql.sql._mechanisms.approx_bounds import quantile

CASE = {
    "requires": "smartnoise-sql==1.0.1 numpy==1.26.4",
    "fixed": "",
    "claim": "epsilon=60",
    "relation": "add-remove-one",
    "domain": "0,1",
    "rows": 30,
    "pair": (
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    ),
    "level": "unbounded",
    "family": "quantiles and histograms",
    "cause": ("exception", "never", "only", "raises", "error"),
    "source": "https://github.com/opendp/smartnoise-sdk/issues/572",
    "draws": 5000,
}


def draw(data, n):
    """Median of values between 0 and 1, or that the call failed. The library removed the function in 1.0.2."""
    drawn = []
    for _ in range(n):
        try:
            drawn.append(float(quantile(data, 0.5, 60.0, 0, 1)))
        except ValueError:
            drawn.append("failed")
    return drawn


def shows(output):
    """The call failed."""
    return output == "failed"
