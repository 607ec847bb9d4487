"""diffprivlib 0.6.6: a histogram of four bins with given edges."""

from diffprivlib import tools

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0:3",
    "family": "quantiles and histograms",
}


def draw(data, n):
    """Noisy counts."""
    rows = list(map(int, data))
    made = (tools.histogram(rows, epsilon=1.0, bins=4, range=(0, 4)) for _ in range(n))
    return [counts.tolist() for counts, _ in made]
