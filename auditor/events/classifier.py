"""Learned scores: a classifier between draws of the two datasets, where draws cost more than training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.events.features import Feature
from auditor.events.outputs import Batch

#: Boosted trees are tried from this many draws a side on; below it they fit noise.
_TREES_FROM = 400


@dataclass(frozen=True, eq=False)
class Score:
    """A fitted classifier's score that an output is of the first dataset."""

    model: Any
    name: str
    missing: bool

    def __call__(self, batch: Batch) -> NDArray[np.float64]:
        """See `Feature`."""
        return np.asarray(self.model.decision_function(_table(batch, self.missing)), dtype=np.float64)

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self.name} score <= {cut:.4g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self.name} score > {cut:.4g}"


def classifier(x: Batch, y: Batch) -> list[Feature]:
    """Train a logistic regression, and with enough draws gradient boosting, to tell two datasets' outputs apart.

    Give it as ``learners=classifier`` to `audit` for mechanisms that take about a millisecond a draw or more: training
    is repeated about 25 times an audit and takes some seconds in all. Outputs that are not numbers are left to the
    other learners.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws on the two datasets.

    Returns
    -------
    list of Feature
        Scores; the auditor thresholds them on draws that they were not trained on.
    """
    if isinstance(x, list) or isinstance(y, list):
        return []
    # Imported here: scikit-learn takes a second to load, and most audits do not need it.
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler
    from threadpoolctl import threadpool_limits

    missing = bool(np.isnan(x).any() or np.isnan(y).any())
    rows = np.concatenate([_table(x, missing), _table(y, missing)])
    labels = np.concatenate([np.ones(len(x)), np.zeros(len(y))])
    # Products of two coordinates up to 12 coordinates: 90 columns; beyond that the linear score only.
    degree = 2 if rows.shape[1] <= 12 else 1
    models = {"logistic": make_pipeline(StandardScaler(), PolynomialFeatures(degree), LogisticRegression(max_iter=200))}
    if len(x) >= _TREES_FROM:
        models["boosted trees"] = HistGradientBoostingClassifier(max_iter=60, early_stopping=False, random_state=0)
    with threadpool_limits(1):  # results must not depend on the number of threads
        return [Score(model.fit(rows, labels), name, missing) for name, model in models.items()]


def _table(batch: Batch, missing: bool) -> NDArray[np.float64]:
    """Coordinates as columns, and with ``missing`` a column for each that says where it was NaN."""
    values = np.asarray(batch, dtype=np.float64)
    values = values.reshape(len(values), -1)
    finite = np.nan_to_num(values, nan=0.0, posinf=1e12, neginf=-1e12)
    return np.hstack([finite, np.isnan(values).astype(np.float64)]) if missing else finite
