"""diffprivlib 0.6.6: may a histogram with a given range take the number of bins from the data?"""

from diffprivlib import tools

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0.0,0.25,0.5,0.75,1.0",
    "rows": 8,
    "min_rows": 4,
    "pair": ([0.0, 0.25, 0.5, 0.75, 1.0, 0.5, 0.5, 0.5], [0.0, 0.25, 0.5, 0.75, 1.0, 0.5, 0.5, 0.0]),
    "level": "unbounded",
    "family": "quantiles and histograms",
    "cause": ("length",),
    "source": "",
    "draws": 500,
}


def draw(data, n):
    """Histogram with as many bins as numpy finds best."""
    rows = [float(value) for value in data]
    return [tools.histogram(rows, epsilon=1.0, bins="auto", range=(0.0, 1.0))[0].tolist() for _ in range(n)]


def shows(output):
    """More than five bins."""
    return len(output) > 5
