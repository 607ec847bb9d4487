"""One run: its options, its split of alpha, its outcome and exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.audits.defaults import DRAWS, METHODS
from auditor.audits.privacy_loop import Settings
from auditor.claims import BUDGETS, Claim
from auditor.errors import DpauditError, SpecificationError, has_library
from auditor.events.cause_kinds import read_kinds
from auditor.results import FLAGGED, AuditResult, Verdict
from auditor.targets.sampler import check_seed

if TYPE_CHECKING:
    from auditor.claims import Draft
    from auditor.runs.index import ListedClaim

Progress = Callable[[AuditResult, float], None]
#: A result, and the seconds that it took.
Done = tuple[AuditResult, float]
#: Audits the claims of some ids, with their shares of alpha, and yields each result as it comes, in any order.
HandOut = Callable[[Sequence[str], Mapping[str, float]], Iterator[Done]]
#: Says a line of progress.
Say = Callable[[str], None]


class WorkersLost(DpauditError):  # noqa: N818 - it is what happened
    """No worker is left to audit the other claims.

    Results that are finished are kept.
    """


@dataclass(frozen=True)
class Run:
    """What to run and how.

    Parameters
    ----------
    paths : tuple of str
        Files and folders that declare claims.
    expression : str or None
        Selection, see `auditor.runs.selection.select_claims`.
    level : str
        "smoke", "standard" or "full": the budgets of `BUDGETS`.
    alpha : float
        Probability that any claim that holds is called violated, in the whole run.
    seed : int
        Seed of the run.
    jobs : int
        Worker processes on this machine; results do not depend on it.
    backend : str
        Who runs them, "loky" or "dask"; see `auditor.runs.workers`.
    scheduler : str or None
        Address of a dask scheduler, whose workers are used instead.
    draws, seconds : int or None, float or None
        Budgets of each claim that replace the level's.
    detect : float or None
        Level that is to be found, of every claim at L1 and L2, in place of what the claims say.
    method : str
        How claims at L1 and L2 are judged, see `Settings`.
    chunks : mapping of str to int
        Number of chunks of claims that time had truncated, to reproduce them.
    ledger : Path or None
        File in which evidence of claims at L1 and L2 is carried from run to run, see `auditor.runs.ledger`.
    ledger_key : str
        Whatever else has to stay the same for that evidence to add up.
    ignore : str or sequence of str
        Kinds of causes that audits at L1 and L2 leave out, beside those that a claim ignores, see `Settings`.
    also : bool
        After a violation of such a kind search on without it, see `Settings`.
    files : tuple of str
        Files of ``paths`` that declare all that is selected, where they are known; else all of ``paths`` are loaded.
    """

    paths: tuple[str, ...] = ("experiments",)
    expression: str | None = None
    level: str = "smoke"
    alpha: float = 0.01
    seed: int = 0
    jobs: int = 1
    backend: str = "loky"
    scheduler: str | None = None
    draws: int | None = None
    seconds: float | None = None
    chunks: dict[str, int] = field(default_factory=dict)
    detect: float | None = None
    method: str = METHODS[0]
    ledger: Path | None = None
    ledger_key: str = ""
    ignore: str | Sequence[str] = ()
    also: bool = False
    files: tuple[str, ...] = ()

    @property
    def loaded(self) -> tuple[str, ...]:
        """Files and folders to load."""
        return self.files or self.paths

    def __post_init__(self) -> None:
        if self.level not in BUDGETS:
            raise SpecificationError(f"level must be one of {', '.join(BUDGETS)}, got {self.level!r}")
        if not isinstance(self.jobs, int) or self.jobs < 1:
            raise SpecificationError(f"jobs must be an integer of at least 1, got {self.jobs!r}")
        if self.backend not in ("loky", "dask"):
            raise SpecificationError(f'backend must be "loky" or "dask", got {self.backend!r}')
        if self.scheduler is not None and self.backend != "dask":
            raise SpecificationError(
                f'a scheduler is of the back end "dask", got {self.scheduler!r} with {self.backend!r}'
            )
        if self.scheduler is not None and self.ledger is not None:
            raise SpecificationError(
                f"a ledger is a file of this machine, which workers of the scheduler {self.scheduler!r} cannot share, "
                f"got {str(self.ledger)!r}; without a scheduler the workers run here"
            )
        draws = DRAWS if self.draws is None else self.draws
        Settings(alpha=self.alpha, seconds=self.seconds, draws=draws, detect=self.detect, method=self.method)
        check_seed(self.seed)
        object.__setattr__(self, "ignore", read_kinds(self.ignore))
        if self.ledger_key and self.ledger is None:
            raise SpecificationError(f"a key is for a ledger, got {self.ledger_key!r} without one")


@dataclass
class Outcome:
    """Results of a run in the claims' order, with circumstances.

    The results must not depend on the circumstances.

    ``lost`` says how the workers were lost; such a run is ``interrupted`` too.
    """

    results: list[AuditResult]
    seconds: dict[str, float]
    interrupted: bool = False
    lost: str = ""


def choose_jobs(asked: int | None) -> int:
    """Choose the number of worker processes.

    As asked for; else as many as there are cores, or one where the library that starts several is not installed.
    """
    if asked is not None:
        return asked
    return os.cpu_count() or 1 if has_library("joblib") else 1


#: How alpha is split, in words; see `split_alpha`.
ALPHA_SPLIT = (
    "equal shares over the claims that draw and are not expected to be refuted; other claims use the same share"
)


def split_alpha(claims: Sequence[Claim], alpha: float) -> dict[str, float]:
    """Split alpha equally among claims that may hold.

    These are all that draw, but for those that are expected to be refuted.

    Every other claim uses the same share.

    Valid because: the family-wise error counts claims that hold, are not expected to be refuted, and are called
    violated; the shares of all that are not expected to be refuted add up to alpha. It is assumed that what is expected
    to be refuted does not hold: an alarm about such a claim is as expected and is not counted, though it may be false.
    A claim that is expected to be inconclusive, as its budget is too small, may hold as well.

    Parameters
    ----------
    claims : sequence of Claim
        Claims of a run.
    alpha : float
        Probability of a false alarm in the whole run, in (0, 1).

    Returns
    -------
    dict of str to float
        Shares by claim id.
    """
    return dict.fromkeys((claim.id for claim in claims), share_alpha(alpha, [claim.draft for claim in claims]))


def share_alpha(alpha: float, claims: Iterable[Draft | ListedClaim]) -> float:
    """Share of alpha of each claim.

    Parameters
    ----------
    alpha : float
        Of the whole run.
    claims : iterable of Draft or ListedClaim
        All claims of the run. Those that draw and are not expected to be refuted share alpha.
    """
    holding = sum(claim.expected not in FLAGGED and claim.draws_any for claim in claims)
    return alpha / max(holding, 1)


def settings_of(claim: Claim, run: Run, alpha: float) -> Settings:
    """Budgets of one claim at the run's level.

    Parameters
    ----------
    claim : Claim
        What is declared.
    run : Run
        What was asked for; its budgets replace those of its level.
    alpha : float
        The claim's share of alpha, in (0, 1).
    """
    draws, stop = claim.draft.budgets[run.level]
    on_outputs = claim.draft.level in ("L1", "L2")
    return Settings(
        alpha=alpha,
        draws=run.draws if run.draws is not None else draws,
        seconds=run.seconds,
        stop=stop,
        seed=run.seed,
        detect=run.detect if run.detect is not None and on_outputs else claim.draft.detect,
        method=run.method if on_outputs else METHODS[0],
        chunks=run.chunks.get(claim.id),
        learners=claim.draft.learners,
        independence=claim.draft.independence,
        ignore=(*claim.draft.ignore, *(run.ignore if on_outputs else ())),
        also=run.also and on_outputs and run.ledger is None,
    )


def exit_code(results: Sequence[AuditResult], interrupted: bool = False) -> int:
    """Exit code of a run.

    0 all as expected; 1 an unexpected finding; 2 an error or failed sandwich; 3 inconclusive; 130 interrupted.

    The worst wins: 130, 2, 1, 3. Findings that a baseline holds do not count.

    Parameters
    ----------
    results : sequence of AuditResult
        What was found; a baseline may have marked them.
    interrupted : bool
        The run did not reach its end.
    """
    if interrupted:
        return 130
    unexpected = [result for result in results if not result.ok and not result.known]
    if any(r.verdict == Verdict.ERROR or r.sandwich.startswith("failed") for r in unexpected):
        return 2
    if any(r.verdict != Verdict.INCONCLUSIVE for r in unexpected):
        return 1
    return 3 if unexpected else 0
