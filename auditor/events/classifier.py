"""Learned scores: a classifier between draws of the two datasets, where draws cost more than training.

scikit-learn is imported where it is used: it takes a second to load, and most audits do not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from auditor.errors import SpecificationError, require_library
from auditor.events.features import Feature
from auditor.targets.outputs import Batch
from auditor.targets.threads import one_thread

#: The first fit is at this many draws a side, half of which are trained on; fewer say little about any output.
FIRST_FIT = 100
#: Fitted anew when the draws have grown by this factor: all fits together cost at most twice the last one.
REFIT = 2.0
#: Draws a side that one fit sees: arbitrary, bounds its time to about a quarter of a second at 24 coordinates.
ROWS = 5_000
#: Boosted trees are tried from this many draws a side on; below it they fit noise.
_TREES_FROM = 400

#: Learns features from past draws of the two datasets.
Fitter: TypeAlias = Callable[[Batch, Batch], list[Feature]]
#: What a user gives: the name of fitters, or one of their own.
Learners: TypeAlias = str | Fitter


@dataclass(frozen=True, eq=False)
class Score:
    """A fitted classifier's score that an output is of the first dataset."""

    model: Any
    name: str
    missing: bool

    def __call__(self, batch: Batch) -> NDArray[np.float64]:
        """See `Feature`."""
        with _one_thread():
            return np.asarray(self.model.decision_function(_table(batch, self.missing)), dtype=np.float64)

    def below(self, cut: float) -> str:
        """In words."""
        return f"{self.name} score <= {cut:.4g}"

    def above(self, cut: float) -> str:
        """In words."""
        return f"{self.name} score > {cut:.4g}"


def logistic(x: Batch, y: Batch) -> list[Feature]:
    """Logistic regression on coordinates and, up to 12, their products.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        As many past draws on each dataset.

    Returns
    -------
    list of Feature
        One score; empty if the outputs are lists.
    """
    require_library("sklearn", "classifiers as learners")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    def model(columns: int) -> Any:
        # Products of two coordinates up to 12 coordinates: 90 columns; beyond that the linear score only.
        degree = 2 if columns <= 12 else 1
        return make_pipeline(StandardScaler(), PolynomialFeatures(degree), LogisticRegression(max_iter=200))

    return _fit_scores("logistic", model, x, y)


def boosted_trees(x: Batch, y: Batch) -> list[Feature]:
    """Gradient boosting of trees on the coordinates.

    It is trained from 400 draws a side on.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        As many past draws on each dataset.

    Returns
    -------
    list of Feature
        One score; empty if the outputs are lists or too few.
    """
    if len(x) < _TREES_FROM:
        return []
    require_library("sklearn", "classifiers as learners")
    from sklearn.ensemble import HistGradientBoostingClassifier

    def model(columns: int) -> Any:
        del columns
        return HistGradientBoostingClassifier(max_iter=60, early_stopping=False, random_state=0)

    return _fit_scores("boosted trees", model, x, y)


def classifier(x: Batch, y: Batch) -> list[Feature]:
    """Train classifiers that tell two datasets' outputs apart.

    A logistic regression, and with enough draws gradient boosting.

    Give it as ``learners=classifier``, or by its name "classifiers", to `audit` for mechanisms that take about a
    millisecond a draw or more. Training and scoring take one to three seconds in an audit of 400,000 draws, and some
    tenths of a second in one of 4,000. Outputs that are not numbers are left to the other learners.

    Parameters
    ----------
    x, y : ndarray of shape (n,) or (n, d), or list
        Past draws on the two datasets.

    Returns
    -------
    list of Feature
        Scores; the auditor thresholds them on draws that they were not trained on.
    """
    return logistic(x, y) + boosted_trees(x, y)


#: Fitters by the names that `audit` and declarations take.
NAMED: Mapping[str, tuple[Fitter, ...]] = {
    "logistic": (logistic,),
    "boosted trees": (boosted_trees,),
    "classifiers": (logistic, boosted_trees),
}


def fitters_of(learners: Learners | None) -> tuple[Fitter, ...]:
    """Fitters asked for by name, or the caller's.

    Raises
    ------
    SpecificationError
        If it is neither a known name nor a function.
    """
    if learners is None:
        return ()
    if isinstance(learners, str) or learners is classifier:
        require_library("sklearn", "classifiers as learners")
    if learners is classifier:
        return NAMED["classifiers"]
    if isinstance(learners, str):
        if learners not in NAMED:
            raise SpecificationError(f"learners must be one of {', '.join(map(repr, NAMED))}, got {learners!r}")
        return NAMED[learners]
    if not callable(learners):
        raise SpecificationError(f"learners must be a name or a function of two batches, got {learners!r}")
    return (learners,)


@dataclass
class Training:
    """Fitted features, when they are fitted anew, and what that has cost.

    Attributes
    ----------
    features : list of Feature
        Of the last fits.
    fits, rows : int
        Models fitted so far, and rows that they were trained on, over all fits.
    """

    fitters: tuple[Fitter, ...]
    features: list[Feature] = field(default_factory=list)
    fits: int = 0
    rows: int = 0
    at: int = 0

    def due(self, held: int) -> bool:
        """Whether ``held`` draws a side are enough for new fits."""
        return bool(self.fitters) and held >= max(FIRST_FIT, REFIT * self.at)

    def fit(self, x: Batch, y: Batch, held: int, go_on: Callable[[], bool]) -> bool:
        """Fit all learners anew on some of the draws.

        ``go_on`` is asked before each fit; where it is False, all is left as it was.

        Parameters
        ----------
        x, y : ndarray of shape (n,) or (n, d), or list
            As many past draws of each side, of which the first `ROWS` are used.
        held : int
            Draws a side at hand now; `due` compares later numbers with it.
        go_on : callable
            Without arguments; whether there is time left.

        Returns
        -------
        bool
            Whether the fits were finished, and ``go_on`` still holds after them.
        """
        x, y = x[:ROWS], y[:ROWS]
        found: list[Feature] = []
        fits = 0
        for fitter in self.fitters:
            if not go_on():
                return False
            features = fitter(x, y)
            fits += bool(features)
            found += features
        if not go_on():
            return False
        self.features, self.at = found, held
        self.fits += fits
        self.rows += fits * (len(x) + len(y))
        return True


def _fit_scores(name: str, model: Callable[[int], Any], x: Batch, y: Batch) -> list[Feature]:
    if isinstance(x, list) or isinstance(y, list):
        return []
    missing = bool(np.isnan(x).any() or np.isnan(y).any())
    rows = np.concatenate([_table(x, missing), _table(y, missing)])
    labels = np.concatenate([np.ones(len(x)), np.zeros(len(y))])
    with _one_thread():
        return [Score(model(rows.shape[1]).fit(rows, labels), name, missing)]


def _one_thread() -> AbstractContextManager[Any]:
    import sklearn.ensemble  # noqa: F401 - so that its libraries are loaded

    return one_thread("sklearn")


def _table(batch: Batch, missing: bool) -> NDArray[np.float64]:
    """Coordinates as columns, and with ``missing`` a column for each that says where it was NaN."""
    values = np.asarray(batch, dtype=np.float64)
    values = values.reshape(len(values), -1)
    finite = np.nan_to_num(values, nan=0.0, posinf=1e12, neginf=-1e12)
    return np.hstack([finite, np.isnan(values).astype(np.float64)]) if missing else finite
