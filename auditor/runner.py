"""Many claims, one run: the split of alpha, work on several cores, the manifest."""

from __future__ import annotations

import hashlib
import platform
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor import registry
from auditor.accuracy.base import Theorem
from auditor.accuracy.controls import add_basis_and_control
from auditor.accuracy.errors import Setting
from auditor.adversaries.game import Game, run_game
from auditor.auditing import run_audit
from auditor.collect import DRAWS, METHODS, Settings
from auditor.conformity import StatedLaw, run_conformity
from auditor.declare import BUDGETS, Claim
from auditor.errors import SpecificationError, finite
from auditor.findings import describe
from auditor.places import located
from auditor.question import Question
from auditor.results import AuditResult, Verdict, document
from auditor.sampling import check_seed
from auditor.targets import source_hash

if TYPE_CHECKING:
    from auditor.backends import HandOut
    from auditor.ledger import Ledger
    from auditor.partners import Ahead

#: Libraries whose versions bear on the numbers.
LIBRARIES = ("numpy", "scipy", "pandas", "scikit-learn", "statsmodels")

Progress = Callable[[AuditResult, float], None]


@dataclass(frozen=True)
class Run:
    """What to run and how.

    Parameters
    ----------
    paths : tuple of str
        Files and folders that declare claims.
    expression : str or None
        Selection, see `registry.select`.
    level : str
        "smoke", "standard" or "full": the budgets of `BUDGETS`.
    alpha : float
        Probability that any claim that holds is called violated, in the whole run.
    seed : int
        Seed of the run.
    jobs : int
        Worker processes on this machine; results do not depend on it.
    backend : str
        Who runs them, "loky" or "dask"; see `auditor.backends`.
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
        File in which evidence of claims at L1 and L2 is carried from run to run, see `auditor.ledger`.
    ledger_key : str
        Whatever else has to stay the same for that evidence to add up.
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
        finite(seconds=self.seconds, detect=self.detect)
        draws = DRAWS if self.draws is None else self.draws
        Settings(alpha=self.alpha, seconds=self.seconds, draws=draws, detect=self.detect, method=self.method)
        check_seed(self.seed)
        if self.ledger_key and self.ledger is None:
            raise SpecificationError(f"a key is for a ledger, got {self.ledger_key!r} without one")


@dataclass
class Outcome:
    """Results of a run in the order of the claims, and what a run was like that the results must not depend on.

    ``lost`` says how the workers were lost; such a run is ``interrupted`` too.
    """

    results: list[AuditResult]
    seconds: dict[str, float]
    interrupted: bool = False
    lost: str = ""


def shares(claims: Sequence[Claim], alpha: float) -> dict[str, float]:
    """Split of alpha: equal shares for the claims expected to be consistent; every other claim uses the same share.

    Valid because: the family-wise error counts claims that hold and are called violated. Claims that hold are among
    those expected to be consistent (or somebody's expectation is wrong, and then the alarm is no false one for the
    reader who expected it), and their shares add up to alpha.
    """
    holding = sum(claim.draft.expected == Verdict.CONSISTENT and claim.draft.draws_any for claim in claims)
    return {claim.id: alpha / max(holding, 1) for claim in claims}


def settings_of(claim: Claim, run: Run, alpha: float) -> Settings:
    """Budgets of one claim at the run's level."""
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
    )


def drawn_from(claim: Claim) -> Any:
    """The target that a claim's draws are from."""
    return claim.draft.subject.mechanism if isinstance(claim.draft.subject, Setting) else claim.draft.mechanism


def audit_claim(
    claim: Claim, run: Run, alpha: float, ahead: Callable[[Sequence[Any]], Ahead] | None = None
) -> AuditResult:
    """Audit one declared claim; a failure of ours is an "error" and never stops the run."""
    draft = claim.draft
    labels: dict[str, Any] = {
        "entry": claim.entry,
        "source": {"document": claim.source.document, "place": claim.source.place},
        "title": claim.title if not draft.note else f"{claim.title}: {draft.note}",
        "level": draft.level,
        "expected": draft.expected,
        "parameters": {**draft.guarantee.parameters(), **draft.parameters},
    }
    # The share of alpha is given, so that the claim alone is judged as it was among the others.
    replay = (
        f"dpaudit run {shlex.join(run.paths)} -k {shlex.quote(claim.id)} --level {run.level} --seed {run.seed} "
        f"--alpha {alpha:.8g}"
        + (f" --draws {run.draws}" if run.draws is not None else "")
        + (f" --detect {run.detect!r}" if run.detect is not None else "")
        + (f" --method {run.method}" if run.method != METHODS[0] else "")
        + (f" --ledger {shlex.quote(str(run.ledger))}" if run.ledger is not None else "")
        + (f" --ledger-key {shlex.quote(run.ledger_key)}" if run.ledger_key else "")
    )
    question = Question(claim.id, draft.curves, draft.exact_level, labels, replay, ledger=_ledger(run), ahead=ahead)
    settings = settings_of(claim, run, alpha)
    if isinstance(draft.guarantee, Theorem):
        result = draft.guarantee.audit(draft.subject, settings, question)
        return add_basis_and_control(result, draft.guarantee, draft.subject, settings, question, draft.controls)
    if draft.mechanism is None or draft.level == "L0":
        return _exact_result(claim, {**labels, "replay": replay}, alpha)
    if isinstance(draft.subject, Game):
        return run_game(draft.subject, draft.privacy_guarantee, settings, question)
    if isinstance(draft.guarantee, StatedLaw):
        names, datasets = zip(*draft.datasets, strict=True)
        if draft.pairs:
            labels["pair"] = "; ".join(pair.name for pair in draft.pairs)
        return run_conformity(draft.mechanism, draft.guarantee, datasets, names, settings, question)
    return run_audit(draft.mechanism, draft.guarantee, draft.pairs, settings, question)


def _ledger(run: Run) -> Ledger | None:
    if run.ledger is None:
        return None
    from auditor.ledger import Ledger

    return Ledger(run.ledger.absolute(), run.ledger_key)


def _exact_result(claim: Claim, labels: dict[str, Any], alpha: float) -> AuditResult:
    """L0: compare the exact level of the stated law with the claim.

    A curve that is known within bounds is pessimistic, and has an ``optimistic`` one beside it.

    Notes
    -----
    Valid because: the true level on a pair lies between the levels of the two curves. The claim is refuted only if the
    lower of them exceeds it on some pair, and consistent only if the higher of them does on none.
    """
    draft = claim.draft
    guarantee = draft.privacy_guarantee
    # Exact levels come out of floating point with relative errors of about 1e-12.
    within = guarantee.level * (1 + 1e-9) + 1e-12
    high = [guarantee.exact_level(curve) for curve in draft.curves]
    low = [guarantee.exact_level(getattr(curve, "optimistic", curve)) for curve in draft.curves]
    broken, holds = max(low) > within, max(high) <= within
    levels = low if broken else high
    worst = max(range(len(levels)), key=lambda k: levels[k])
    message = ""
    if broken:
        message = f"the stated law has {guarantee.symbol} = {levels[worst]:.6g} on this pair"
        if high[worst] > low[worst]:
            message = f"the stated law has {guarantee.symbol} of at least {low[worst]:.6g} on this pair"
    elif not holds:
        message = (
            f"on this pair the stated law has {guarantee.symbol} between {low[worst]:.6g} and {high[worst]:.6g}: the "
            "curve is not known precisely enough"
        )
    return AuditResult(
        id=claim.id,
        notion=guarantee.notion,
        symbol=guarantee.symbol,
        claimed=str(guarantee),
        claimed_level=guarantee.level,
        alpha=alpha,
        verdict=Verdict.VIOLATION if broken else Verdict.CONSISTENT if holds else Verdict.INCONCLUSIVE,
        exact=levels[worst],
        pair=draft.pairs[worst].name,
        mechanism=describe(draft.mechanism),
        source_hash=source_hash(draft.mechanism),
        message=message,
        **labels,
    )


def execute(
    run: Run,
    selected: Sequence[Claim],
    progress: Progress | None = None,
    only: Mapping[str, float] | None = None,
    finished: Mapping[str, tuple[AuditResult, float]] | None = None,
    hand_out: HandOut | None = None,
) -> Outcome:
    """Audit the selected claims; Ctrl-C, or the loss of all workers, keeps what is done.

    Parameters
    ----------
    run : Run
        How.
    selected : sequence of Claim
        What; alpha is split over them.
    progress : callable, optional
        Called with each result, as it comes, and the seconds that it took.
    only : mapping of str to float, optional
        Ids of the claims to audit, with their shares of alpha; default all, with those of `shares`.
    finished : mapping, optional
        Results with their seconds, by claim id, that an interrupted run left: these claims are not audited again.
    hand_out : callable, optional
        Workers that wait for work; by default, those of `auditor.backends.workers`.

    Raises
    ------
    SpecificationError
        If there can be no workers.
    """
    from auditor.backends import WorkersLost, workers  # they do the work of this module

    alpha = shares(selected, run.alpha) if only is None else only
    done = {id_: result for id_, (result, _) in (finished or {}).items()}
    seconds = {id_: took for id_, (_, took) in (finished or {}).items()}
    wanted = [claim.id for claim in selected if (only is None or claim.id in only) and claim.id not in done]
    interrupted, lost = False, ""
    try:
        with workers(run) if hand_out is None else nullcontext(hand_out) as available:
            for result, took in available(wanted, alpha):
                done[result.id], seconds[result.id] = result, took
                if progress is not None:
                    progress(result, took)
    except KeyboardInterrupt:
        interrupted = True
    except WorkersLost as error:
        interrupted, lost = True, str(error)
    ordered = [done[claim.id] for claim in selected if claim.id in done]
    return Outcome(ordered, seconds, interrupted, lost)


def without_addresses(text: str) -> str:
    """Text that shows objects, without where in memory they lie: that is another place in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def manifest(run: Run, selected: Sequence[Claim]) -> dict[str, Any]:
    """What the results depend on: versions, seed, options, and hashes of the specification and of what was audited."""
    alpha = shares(selected, run.alpha)
    specification = "\n".join(
        f"{c.id}|{c.draft.guarantee!r}|{c.draft.expected}|{describe(c.draft.mechanism)}|"
        f"{[p.name for p in c.draft.pairs] or [name for name, _ in c.draft.datasets]}|"
        f"{replace(settings_of(c, run, alpha[c.id]), seconds=None, chunks=None)}"
        for c in selected
    )
    sources = sorted(
        {source_hash(c.draft.subject if c.draft.mechanism is None else c.draft.mechanism) for c in selected}
    )
    return {
        "dpaudit": metadata.version("dpaudit"),
        "python": platform.python_version(),
        "libraries": {name: metadata.version(name) for name in LIBRARIES},
        "paths": list(run.paths),
        "selection": run.expression,
        "level": run.level,
        "seed": run.seed,
        "alpha": run.alpha,
        "alpha_split": "equal shares over the claims expected to be consistent; other claims use the same share",
        "draws": run.draws,
        "seconds": run.seconds,
        "detect": run.detect,
        "method": run.method,
        **({"ledger": str(run.ledger)} if run.ledger is not None else {}),
        **({"ledger_key": run.ledger_key} if run.ledger_key else {}),
        "specification_hash": hashlib.sha256(without_addresses(specification).encode()).hexdigest()[:16],
        "source_hash": hashlib.sha256("".join(sources).encode()).hexdigest()[:16],
        "claims_selected": len(selected),
    }


def errata(run: Run, selected: Sequence[Claim]) -> list[dict[str, Any]]:
    """Errata of the entries that were run, with the claims that show what is wrong and what is right."""
    entries = {claim.entry for claim in selected}
    return [
        {
            "id": erratum.id,
            "entry": entry.id,
            "class": erratum.kind,
            "source": {"document": entry.source.document, "place": entry.source.place},
            "summary": erratum.summary,
            "fails": erratum.fails,
            "correction": erratum.correction,
            "claims": {
                claim.id: claim.draft.shows.role
                for claim in selected
                if claim.entry == entry.id and claim.draft.shows and claim.draft.shows.erratum == erratum.id
            },
        }
        for entry in registry.load(run.paths)
        if entry.id in entries
        for erratum in entry.errata
    ]


def results_document(run: Run, selected: Sequence[Claim], outcome: Outcome) -> dict[str, Any]:
    """The content of results.json."""
    about = manifest(run, selected)
    if outcome.interrupted:
        about["interrupted"] = True
    results = located(outcome.results, selected, registry.load(run.paths))
    return document(about, results, errata(run, selected))


def exit_code(results: Sequence[AuditResult], interrupted: bool = False) -> int:
    """0 all as expected; 1 an unexpected finding; 2 an error or failed sandwich; 3 inconclusive; 130 interrupted.

    The worst wins: 130, 2, 1, 3. Findings that a baseline holds do not count.
    """
    if interrupted:
        return 130
    unexpected = [result for result in results if not result.ok and not result.known]
    if any(r.verdict == Verdict.ERROR or r.sandwich.startswith("failed") for r in unexpected):
        return 2
    if any(r.verdict != Verdict.INCONCLUSIVE for r in unexpected):
        return 1
    return 3 if unexpected else 0
