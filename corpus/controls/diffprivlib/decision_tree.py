"""diffprivlib 0.6.6: labels of the leaves of a tree."""

from diffprivlib.models import DecisionTreeClassifier

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "[[0.0, 0], [0.0, 1], [1.0, 0], [1.0, 1]]",
    "rows": 3,
    "min_rows": 1,
    "family": "models",
}
POINTS = [[0.0], [1.0]]


def draw(data, n):
    """Classes of two points, by a tree that is told bounds and classes."""
    rows, labels = [[row[0]] for row in data], [int(row[1]) for row in data]
    tree = DecisionTreeClassifier(epsilon=1.0, bounds=(0.0, 1.0), classes=[0, 1], max_depth=1)
    return [tree.fit(rows, labels).predict(POINTS).tolist() for _ in range(n)]
