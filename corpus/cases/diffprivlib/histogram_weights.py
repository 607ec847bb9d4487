"""diffprivlib 0.6.6: is the noise of counts meant to be enough for a histogram of weights?"""

from diffprivlib import tools

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "[[0.5, 1], [1.5, 1], [0.5, 5], [1.5, 5]]",
    "rows": 6,
    "pair": ([[0.5, 5]], []),
    "level": 4.99,
    "family": "quantiles and histograms",
    "cause": ("value", "threshold", "coordinate"),
    "source": "",
}


def draw(data, n):
    """Sums of the weights in two bins: values, and weights from 1 to 5, are the rows."""
    values, weights = ([row[place] for row in data] for place in (0, 1))
    made = (tools.histogram(values, epsilon=1.0, bins=2, range=(0, 2), weights=weights) for _ in range(n))
    return [list(map(int, sums)) for sums, _ in made]


def shows(output):
    """Below 1 in the first bin."""
    return output[0] < 1
