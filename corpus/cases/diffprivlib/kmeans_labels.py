"""diffprivlib 0.6.6: is the cluster of each training row, found without noise, part of a private k-means model?"""

from diffprivlib.models import KMeans

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0.0,1.0",
    "rows": 6,
    "min_rows": 3,
    "pair": ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
    "level": "unbounded",
    "family": "models",
    "cause": ("value", "coordinate", "output[", "only", "never", "equal", "set of"),
    "source": "",
    "draws": 500,
}


def draw(data, n):
    """Labels of the training rows in a fitted model of two clusters."""
    rows = [[float(value)] for value in data]
    return [KMeans(2, epsilon=1.0, bounds=(0.0, 1.0)).fit(rows).labels_.tolist() for _ in range(n)]


def shows(output):
    """Rows in both clusters: equal rows never are."""
    return len(set(output)) == 2
