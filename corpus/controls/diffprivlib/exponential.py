"""diffprivlib 0.6.6: the exponential mechanism on two counts."""

from diffprivlib import mechanisms

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "0,1",
    "family": "quantiles and histograms",
}


def draw(data, n):
    """The value that occurs more often."""
    rows = list(map(int, data))
    mechanism = mechanisms.Exponential(epsilon=1.0, sensitivity=1, utility=[rows.count(0), rows.count(1)])
    return [int(mechanism.randomise()) for _ in range(n)]
