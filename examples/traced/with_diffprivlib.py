"""Models and tools of IBM's diffprivlib, as `benchmarks.traced_libraries` traces them."""

import warnings

import numpy as np
from diffprivlib import mechanisms, models, tools

warnings.simplefilter("ignore")  # of scikit-learn, on small data


def regression(data, bound):
    """Coefficients of a linear regression through zero; features from 0 to 10, told to be within the bounds."""
    rows = np.array(data, dtype=float)
    model = models.LinearRegression(epsilon=1.0, bounds_X=(bound, 10.0), bounds_y=(0.0, 1.0), fit_intercept=False)
    return model.fit(rows[:, :-1], rows[:, -1]).coef_.tolist()


def regression_with_intercept(data):
    """Coefficient and intercept of a linear regression."""
    rows = np.array(data, dtype=float)
    model = models.LinearRegression(epsilon=1.0, bounds_X=(-1.0, 1.0), bounds_y=(-1.0, 1.0))
    model.fit(rows[:, :-1], rows[:, -1])
    return [*model.coef_.tolist(), float(model.intercept_)]


def naive_bayes(data):
    """All that a Gaussian naive Bayes model has learned of features from 50 to 60; labels are in the last column."""
    rows = np.array(data, dtype=float)
    model = models.GaussianNB(epsilon=1.0, bounds=(50.0, 60.0)).fit(rows[:, :-1], rows[:, -1].astype(int))
    return {"counts": model.class_count_.tolist(), "means": model.theta_.tolist(), "variances": model.var_.tolist()}


def cluster_centers(data):
    """Centres of two clusters."""
    rows = np.array(data, dtype=float)
    return models.KMeans(2, epsilon=1.0, bounds=(0.0, 10.0)).fit(rows).cluster_centers_.tolist()


def mean_of_known(data):
    """Mean of the values that are known."""
    return float(tools.nanmean(np.array(data, dtype=float), epsilon=1.0, bounds=(0.0, 10.0)))


def scaler(data):
    """Means and variances that a scaler has learned."""
    model = models.StandardScaler(epsilon=1.0, bounds=(0.0, 10.0)).fit(np.array(data, dtype=float))
    return {"means": model.mean_.tolist(), "variances": model.var_.tolist()}


def principal_axes(data):
    """Axes and their variances."""
    model = models.PCA(2, epsilon=1.0, bounds=(0.0, 1.0), data_norm=2.0).fit(np.array(data, dtype=float))
    return {"means": model.mean_.tolist(), "axes": model.components_.tolist()}


def triangles(data, cap):
    """Number of triangles of a graph; an edge is told to be in at most so many of them."""
    nodes, edges = data["nodes"], {tuple(edge) for edge in data["edges"]}
    near = [[(a, b) in edges or (b, a) in edges for b in range(nodes)] for a in range(nodes)]
    count = 0
    for a in range(nodes):
        for b in range(a):
            for c in range(b):
                count += near[a][b] and near[b][c] and near[a][c]
    return mechanisms.Geometric(epsilon=1.0, sensitivity=cap).randomise(count)


def two_releases(data, share):
    """Mean and deviation of a column."""
    column = np.array(data, dtype=float)
    mean = tools.mean(column, epsilon=share, bounds=(0.0, 10.0))
    return {"mean": float(mean), "deviation": float(tools.std(column, epsilon=share, bounds=(0.0, 10.0)))}
