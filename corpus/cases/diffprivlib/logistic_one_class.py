"""diffprivlib 0.6.6: is logistic regression meant to raise an error exactly when all labels are equal?"""

from diffprivlib.models import LogisticRegression

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.6.1",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "[[0.0, 0], [0.0, 1], [1.0, 0], [1.0, 1]]",
    "rows": 5,
    "min_rows": 2,
    "pair": ([[0.0, 0], [1.0, 0], [1.0, 1]], [[0.0, 0], [1.0, 0], [1.0, 0]]),
    "level": "unbounded",
    "family": "models",
    "cause": ("exception",),
    "source": "",
    "draws": 300,
}


def draw(data, n):
    """Coefficient and intercept of a fitted model."""
    x, y = [[float(row[0])] for row in data], [int(row[1]) for row in data]
    models = [LogisticRegression(epsilon=1.0, data_norm=1.0).fit(x, y) for _ in range(n)]
    return [[float(model.coef_[0, 0]), float(model.intercept_[0])] for model in models]


def shows(output):
    """What the call raised."""
    return str(output).startswith("raised")
