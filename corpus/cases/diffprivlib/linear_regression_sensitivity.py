"""diffprivlib 0.6.6: linear regression takes the lower bound of a feature twice for the sensitivity of its square."""

from diffprivlib.models import LinearRegression

CASE = {
    "requires": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "[[0.5, 0.0], [0.5, 1.0], [1.0, 0.0], [1.0, 1.0]]",
    "rows": 4,
    "min_rows": 1,
    "pair": ([[0.5, 1.0]], [[1.0, 1.0]]),
    "level": "unbounded",
    "family": "models",
    "cause": ("value", "threshold", "scale"),
    "source": "https://github.com/IBM/differential-privacy-library/issues/105",
    "draws": 2000,
}


def draw(data, n):
    """Coefficient of a regression through the origin, with both bounds given."""
    x, y = [[float(row[0])] for row in data], [float(row[1]) for row in data]
    model = LinearRegression(epsilon=1.0, bounds_X=(0.0, 1.0), bounds_y=(0.0, 1.0), fit_intercept=False)
    return [float(model.fit(x, y).coef_[0]) for _ in range(n)]


def shows(output):
    """A coefficient beyond 15: noise of one scale is divided by 0.25 or by 1, which have no noise."""
    return abs(output) > 15.0
