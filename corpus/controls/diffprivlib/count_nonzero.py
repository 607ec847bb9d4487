"""diffprivlib 0.6.6: the number of values that are not zero, of as many values as there are."""

from diffprivlib import tools

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "0,1",
    "min_rows": 1,
    "family": "sensitivities and bounds",
}


def draw(data, n):
    """Noisy number of ones."""
    rows = list(map(int, data))
    return [int(tools.count_nonzero(rows, epsilon=1.0)) for _ in range(n)]
