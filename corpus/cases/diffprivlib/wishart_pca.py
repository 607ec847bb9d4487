"""diffprivlib 0.3.0: the Wishart mechanism of PCA adds noise that is never negative.

Its scikit-learn has no wheel for Python 3.11: what the import asks of an older one is filled in. PCA uses none of it.
"""

from importlib.metadata import version

import numpy as np
import sklearn.decomposition
import sklearn.linear_model._logistic
import sklearn.utils.fixes

CASE = {
    "requires": "diffprivlib==0.3.0 scikit-learn==1.2.2 numpy==1.24.4 scipy==1.10.1",
    "fixed": "diffprivlib==0.6.6 scikit-learn==1.8.0",
    "claim": "epsilon=1",
    "relation": "replace-one",
    "domain": "[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]",
    "rows": 3,
    "min_rows": 2,
    "pair": ([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]]),
    "level": "unbounded",
    "family": "models",
    "cause": ("coordinate", "output[", "only", "never", "support", "value"),
    "source": "https://github.com/IBM/differential-privacy-library/issues/23",
    "draws": 2000,
}
if version("diffprivlib") == "0.3.0":
    sklearn.linear_model._logistic._logistic_loss_and_grad = None
    sklearn.utils.fixes._joblib_parallel_args = None
    del sklearn.decomposition.PCA.n_features_

from diffprivlib.models import PCA  # noqa: E402 - after what it needs is there


def draw(data, n):
    """Both variances that a principal component analysis explains, of rows whose norm is at most 1."""
    rows = np.array(data)
    return [PCA(2, epsilon=1.0, data_norm=1.0, centered=True).fit(rows).explained_variance_.tolist() for _ in range(n)]


def shows(output):
    """A smaller variance below that of two orthogonal rows without noise: noise only adds to it."""
    return min(output) < 0.999
