"""diffprivlib 0.6.6: a quantile is NaN exactly when a value is."""

from diffprivlib import tools

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0.0,1.0",
    "outside": True,
    "rows": 5,
    "min_rows": 1,
    "pair": ([0.0, 1.0, "nan"], [0.0, 1.0, 1.0]),
    "level": "unbounded",
    "family": "quantiles and histograms",
    "cause": ("NaN",),
    "source": "https://github.com/IBM/differential-privacy-library/issues/80",
    "draws": 500,
}


def draw(data, n):
    """Median of numbers, with bounds given."""
    rows = [float(value) for value in data]
    return [float(tools.median(rows, epsilon=1.0, bounds=(0.0, 1.0))) for _ in range(n)]


def shows(output):
    """It is NaN."""
    return output != output
