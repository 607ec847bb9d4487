"""One training run with canaries: fair coins, a training, scores, and the audit of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.audits.given_numbers import read_numbers
from auditor.audits.summary import describe_target
from auditor.audits.training.scores import NOTHING, audit_scores, check_scores_audit
from auditor.audits.training.training_call import write_training_call
from auditor.datasets.rows import count_rows, join_rows, select_rows
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import Guarantee
from auditor.results import AuditResult
from auditor.targets.process_settings import keep_apart
from auditor.targets.sampler import check_seed, make_generator

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PlantedCanaries:
    """A dataset with some of the canaries, each by a fair coin.

    Parameters
    ----------
    data : array, DataFrame, list or dict of arrays
        To train on: the dataset, and then the canaries whose coins say so.
    canaries : array, DataFrame, list or dict of arrays
        All of them.
    included : ndarray of bool of shape (n_canaries,)
        The coins.
    """

    data: Any
    canaries: Any
    included: NDArray[np.bool_]

    def split_scores(self, scores: ArrayLike) -> tuple[Array, Array]:
        """Scores of the canaries that are in, and of the others.

        Parameters
        ----------
        scores : array_like of shape (n_canaries,)
            In the order of the canaries.

        Raises
        ------
        SpecificationError
            If there is not one number for each canary.
        """
        values = read_numbers("scores must be numbers, one for each canary", scores)
        if values.shape != self.included.shape:
            raise SpecificationError(
                f"expected {len(self.included)} scores, one for each canary, got an array of shape {values.shape}"
            )
        return values[self.included], values[~self.included]


def plant_canaries(data: Any, canaries: Any, *, seed: int = 0) -> PlantedCanaries:
    """Add each canary to a dataset by a fair coin.

    Parameters
    ----------
    data : array, DataFrame, list, tuple or dict of equally long arrays
        What would be trained on; a row is an example.
    canaries : of the same kind
        Examples that are each in or not. Whether an example is in ``data`` too does not matter.
    seed : int
        Seed of the coins, which training must not know.

    Raises
    ------
    SpecificationError
        If there are fewer than two canaries, or their rows are not like those of the data.
    """
    check_seed(seed)
    m = count_rows(canaries)
    if m < 2:
        raise SpecificationError(f"expected at least 2 canaries, got {m}")
    included = make_generator(seed, "canaries", "coins").random(m) < 0.5
    # Copies: a training that changes rows in place would show in the canaries that are scored which were in.
    return PlantedCanaries(join_rows(data, copy.deepcopy(select_rows(canaries, included))), canaries, included)


@keep_apart()
def audit_one_run(
    train: Callable[[Any, np.random.Generator], Any],
    data: Any,
    canaries: Any,
    score: Callable[[Any, Any], ArrayLike],
    claim: Guarantee,
    *,
    assume: str = NOTHING,
    alpha: float = 0.01,
    guesses: int | None = None,
    detect: float | None = None,
    seed: int = 0,
    id: str = "one-run/L1/claim/given",  # noqa: A002 - it is the result's id
) -> AuditResult:
    """Train once with about half of the canaries, and audit their scores.

    Parameters
    ----------
    train : callable
        ``(data, rng) -> model``: the training that is audited. It is called once.
    data : array, DataFrame, list, tuple or dict of equally long arrays
        What is trained on beside the canaries; may have no rows.
    canaries : of the same kind
        See `plant_canaries`.
    score : callable
        ``(model, canaries) -> ndarray of shape (n_canaries,)``: any function of the model, such as the loss of each
        canary. It is not told which canaries are in.
    claim : Guarantee
        What is claimed of the training, for adding or removing one example.
    assume, alpha, guesses, detect
        See `auditor.audit_scores`.
    seed : int
        Seed of the coins, of the training's generator, and of the order of canaries: three independent streams.
    id : str
        The result's id.

    Returns
    -------
    AuditResult
        See `auditor.audit_scores`.

    Raises
    ------
    SpecificationError
        If an argument is not what it must be; what the training raises is not caught.

    Notes
    -----
    Valid because: coins are fair and independent, training sees the dataset only, and scores are computed from the
    model and all canaries, so that they depend on the coins through the model alone; see `auditor.audit_scores`.
    """
    for name, function in (("train", train), ("score", score)):
        if not callable(function):
            raise SpecificationError(f"{name} must be callable, got {function!r}")
    planted = plant_canaries(data, canaries, seed=seed)
    audit: dict[str, Any] = {
        "assume": assume,
        "alpha": alpha,
        "guesses": guesses,
        "detect": detect,
        "seed": seed,
        "id": id,
    }
    # Before a long training.
    check_scores_audit(len(planted.included), claim, assume, alpha, guesses, detect, seed, id)
    model = train(planted.data, make_generator(seed, "one run", "training"))
    result = audit_scores(*planted.split_scores(score(model, canaries)), claim, **audit)
    name = describe_target(train)
    given = {"train": train, "data": data, "canaries": canaries, "score": score}
    again = write_training_call("audit_one_run", given, claim, audit)
    return replace(result, mechanism=name, title=f"One run of {name}", replay=again)
