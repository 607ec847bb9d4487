"""diffprivlib 0.6.6: may a row that is added move others from tree to tree of a forest, which get equal parts?

The trees get the first and the second half of the rows. A row that is put first takes the place of another one in the
first tree, whose leaf has labels 0 and 1 in place of twice 1, and gives the second tree a row more. The outcome (0, 1)
is then more likely by the factor e^2 (1 - e^-2 / 2) / (1 - e^-1 / 2), whose logarithm is 2.133.
"""

import numpy as np
from diffprivlib.models import RandomForestClassifier

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "add-remove-one",
    "domain": "[[0.0, 0], [0.0, 1], [1.0, 0], [1.0, 1]]",
    "rows": 4,
    "min_rows": 1,
    "pair": ([[0.0, 0], [0.0, 1], [0.0, 1], [0.0, 1]], [[0.0, 1], [0.0, 1], [0.0, 1]]),
    "level": 2.133,
    "family": "models",
    "cause": ("coordinate", "value", "output["),
    "source": "",
    "draws": 4000,
}
POINT = np.zeros((1, 1), dtype=np.float32)


def draw(data, n):
    """Class of a point, by each of two trees that are told bounds and classes."""
    rows, labels = [[row[0]] for row in data], [int(row[1]) for row in data]
    forest = RandomForestClassifier(2, epsilon=1.0, bounds=(0.0, 1.0), classes=[0, 1], max_depth=1)
    fitted = (forest.fit(rows, labels).estimators_ for _ in range(n))
    return [[int(tree.tree_.predict(POINT).ravel()[1]) for tree in trees] for trees in fitted]


def shows(output):
    """The first tree is of the added row's class, the second one is not."""
    return output == [0, 1]
