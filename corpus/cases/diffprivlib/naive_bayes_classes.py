"""diffprivlib 0.6.6: is a naive Bayes model meant to have just the classes that occur in the data?"""

from diffprivlib.models import GaussianNB

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "[[0.0, 0], [0.0, 1], [1.0, 0], [1.0, 1]]",
    "rows": 4,
    "min_rows": 2,
    "pair": ([[0.0, 0], [1.0, 0], [1.0, 1]], [[0.0, 0], [1.0, 0], [1.0, 0]]),
    "level": "unbounded",
    "family": "models",
    "cause": ("length",),
    "source": "",
    "draws": 500,
}


def draw(data, n):
    """Classes and their probabilities of a model, with the bounds of the feature given."""
    x, y = [[float(row[0])] for row in data], [int(row[1]) for row in data]
    models = [GaussianNB(epsilon=1.0, bounds=(0.0, 1.0)).fit(x, y) for _ in range(n)]
    return [[*map(int, model.classes_), *map(float, model.class_prior_)] for model in models]


def shows(output):
    """Two classes."""
    return len(output) == 4
