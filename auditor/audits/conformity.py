"""Level L3: tests whether an implementation samples from its stated distribution.

A loose theorem leaves room for wrong samplers, and a sampler can be wrong in ways that cost no privacy. Here a target
is held against a stated distribution: draws fall into cells whose probabilities are known exactly, and an e-process
bets against them. What it finds is a deviation, never by itself a violation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from auditor.audits.context import Question
from auditor.audits.counterexamples.replay_call import ReplayCall
from auditor.audits.defaults import DRAWS
from auditor.audits.dependence import Trace, confirm_refutation, looked_at, scores_of
from auditor.audits.finish import Conclusion, finish_audit, labels_of
from auditor.audits.independence import UNTESTED, Independence, check_independence, worst_of
from auditor.audits.loop import ChunkLoop, ChunkRule
from auditor.audits.partitions import IntArray, LawCells, cells_of
from auditor.audits.privacy_loop import LARGEST, Settings, follow_up_seconds
from auditor.audits.summary import describe_target
from auditor.audits.verdict import decide_verdict, describe_missed
from auditor.errors import SpecificationError, check_id, check_positive
from auditor.evidence.multinomial import (
    Multinomials,
    average_wealths,
    combine_wealths,
    detectable_divergence,
    rejected_level,
)
from auditor.privacy.laws import Law
from auditor.results import AuditResult, Verdict, wealth_fields
from auditor.targets import Mechanism
from auditor.targets.process_settings import keep_apart
from auditor.targets.sampler import Call, Sampler

#: Relative error of stated probabilities that the null is widened by: quadratures state 1e-13, sums to 1 are checked to
#: 1e-9. It costs a hundredth of a nat in 10^7 draws.
ERROR = 1e-9
#: Divergence that is to be found, in nats a draw: a scale that is wrong by 14 %, a total variation of at most
#: 7 %. Arbitrary; some ten thousand draws show it.
DETECT = 0.01
#: Draws on each dataset; arbitrary. Nothing is learned, so chunks only bound how late a verdict is.
CHUNKS = ChunkRule(20, growth=0.25, largest=LARGEST)
#: Cells in the table of a result: what a plot can show, and enough for the coarse view of a distribution with its
#: tails.
SHOWN = 28


class HasLaw(Protocol):
    """A mechanism that states its output distribution."""

    def law(self, data: Any) -> Law:
        """Exact output distribution on ``data``."""
        ...


@dataclass(frozen=True)
class StatedLaw:
    """Claim at level L3: outputs follow the ``reference``'s stated distribution.

    Parameters
    ----------
    reference : HasLaw
        States the distribution; never the object under test itself, unless that is the reference implementation.
    error : float
        Relative error of the stated probabilities: the null is that no cell is more than 1 + error times as probable
        as stated.
    rounding : float or None
        Outputs of a continuous distribution are multiples of this, see `cells_of`.
    """

    reference: HasLaw
    error: float = ERROR
    rounding: float | None = None

    notion: ClassVar[str] = "conformity"
    symbol: ClassVar[str] = "log-ratio"

    def __post_init__(self) -> None:
        if not callable(getattr(self.reference, "law", None)):
            raise SpecificationError(f"expected a reference with a method law(data), got {self.reference!r}")
        check_positive("error", self.error)
        if self.rounding is not None:
            check_positive("rounding", self.rounding)

    @property
    def level(self) -> float:
        """Largest log-ratio, in nats, of a cell's probability to the stated one."""
        return math.log1p(self.error)

    def parameters(self) -> dict[str, float]:
        """The error, and the rounding if there is one."""
        return {"error": self.error} | ({} if self.rounding is None else {"rounding": self.rounding})

    def __str__(self) -> str:
        return f"the distribution of {describe_target(self.reference)}"

    def __repr__(self) -> str:
        # Not the reference's own: that may hold data, or an address that differs between processes.
        return f"StatedLaw({describe_target(self.reference)}, {self.error!r}, {self.rounding!r})"


@dataclass
class Tally:
    """All draws so far, in cells, and the evidence.

    Attributes
    ----------
    cells : list of LawCells
        Of each dataset.
    counts : list of list of ndarray
        Draws in each cell of each view of each dataset.
    draws : list of int
        Draws on each dataset.
    best : list of list of ndarray
        The counts when the evidence was largest.
    path : list of tuple of (int, float)
        Draws on all datasets and logarithm of the wealth at the stated error, after each chunk.
    bound : float
        Largest level rejected so far, see `rejected_level`.
    traces : list of Trace
        The latest draws on each dataset.
    """

    cells: list[LawCells]
    counts: list[list[IntArray]] = field(init=False)
    draws: list[int] = field(init=False)
    best: list[list[IntArray]] = field(init=False)
    path: list[tuple[int, float]] = field(default_factory=list)
    bound: float = 0.0
    truncated_by: str | None = None
    traces: list[Trace] = field(init=False)

    def __post_init__(self) -> None:
        self.traces = [Trace() for _ in self.cells]
        self.counts = [[np.zeros(len(v.labels) + 1, dtype=np.int64) for v in c.views] for c in self.cells]
        self.draws = [0] * len(self.cells)
        self.best = self.counts

    @property
    def highest(self) -> float:
        """Largest logarithm of the wealth so far."""
        return max((log for _, log in self.path), default=0.0)


def collect_cells(
    sampler: Sampler, datasets: Sequence[Any], cells: Sequence[LawCells], level: float, settings: Settings
) -> Tally:
    """Draw on all datasets in turn and bet.

    It ends at the verdict, or at the end of the budget.

    Parameters
    ----------
    sampler : Sampler
        Draws of the target.
    datasets : sequence
        Datasets.
    cells : sequence of LawCells
        Cells of the stated distribution on each.
    level : float
        Natural logarithm of 1 + error.
    settings : Settings
        ``draws`` counts all datasets together.

    Notes
    -----
    Valid because: see `Multinomials.log_wealth` for one view, `combine_wealths` for several datasets. Views of one
    dataset read the same draws: their wealths are averaged, never multiplied. Chunk sizes depend on nothing that was
    drawn.
    """
    tally = Tally(list(cells))
    stated = [Multinomials([view.probabilities for view in one.views]) for one in cells]
    loop = ChunkLoop(CHUNKS, settings.draws // len(datasets), settings.seconds, settings.chunks)
    for chunk in loop:
        n = loop.take()
        calls = [Call(n, (k, "conformity", chunk)) for k in range(len(datasets))]
        sampler.expect(*zip(datasets, calls, strict=True))
        for k, data in enumerate(datasets):
            batch = sampler.draw(data, n, *calls[k].key)
            tally.traces[k].add("output", 0, sampler.place, scores_of(batch))
            drawn = cells[k].counts(batch)
            tally.counts[k] = [total + new for total, new in zip(tally.counts[k], drawn, strict=True)]
            tally.draws[k] += n
        logs = [average_wealths(m.log_wealth(c)) for m, c in zip(stated, tally.counts, strict=True)]
        log = combine_wealths(logs, tally.draws, level)
        if log > tally.highest or not tally.path:
            tally.best = [list(counts) for counts in tally.counts]
        tally.path.append((sum(tally.draws), log))
        tally.bound = max(tally.bound, rejected_level(logs, tally.draws, settings.alpha))
        if log >= -math.log(settings.alpha) and settings.stop == "verdict":
            break
    tally.truncated_by = loop.truncated_by
    return tally


def run_conformity(
    target: Mechanism,
    stated: StatedLaw,
    datasets: Sequence[Any],
    names: Sequence[str],
    settings: Settings,
    question: Question,
) -> AuditResult:
    """Audit a target against a stated distribution.

    It never raises for what the target does.

    Parameters
    ----------
    target : Mechanism
        What is audited.
    stated : StatedLaw
        The claim.
    datasets, names : sequence
        Datasets, and each in words.
    settings : Settings
        How; ``detect`` is a divergence in nats a draw, default `DETECT`.
    question : Question
        The claim's id and labels.

    Returns
    -------
    AuditResult
        ``lower_bound`` is the certified largest log-ratio, in nats, of a cell's probability to the stated one (see
        `rejected_level`); ``resolves`` the divergence, in nats a draw, that would have been flagged with
        probability 0.9 on the finest view (see `detectable_divergence`). There is no ``ceiling``: one impossible output
        certifies an infinite log-ratio.

    Notes
    -----
    Valid because: "deviation" is returned only if the wealth reached 1/alpha, which has probability at most alpha for
    a target that follows the distribution (see `collect_cells`), and did so again if the draws looked dependent (see
    `confirm_refutation`), or if the draws failed the tests of independence, for which that probability is
    `auditor.audits.independence.FALSE_ALARM` a dataset.
    """
    detect = DETECT if settings.detect is None else settings.detect
    labels = labels_of(target, stated, "L3", settings, question, detect=detect, pair="; ".join(names))
    cells = [cells_of(stated.reference.law(data), stated.rounding) for data in datasets]
    threshold = -math.log(settings.alpha)

    begun = time.monotonic()

    def refuted(tally: Tally) -> bool:
        return tally.highest >= threshold

    def collected(sampler: Sampler, settings: Settings = settings) -> tuple[Tally, Sampler]:
        return collect_cells(sampler, datasets, cells, stated.level, settings), sampler

    def traces(made: tuple[Tally, Sampler]) -> list[Trace]:
        tally, sampler = made
        seconds = follow_up_seconds(settings, begun)
        for k, (data, trace) in enumerate(zip(datasets, tally.traces, strict=True)):
            for i, n in enumerate(trace.missing(looked_at(settings.comparisons), seconds)):
                scores = scores_of(sampler.draw(data, n, k, "conformity", f"look {i}"))
                trace.add("output", 0, sampler.place, scores)
        return tally.traces

    def tested(sampler: Sampler) -> list[Independence]:
        return [check_independence(sampler, data, k, "conformity") for k, data in enumerate(datasets)]

    def drawn(sampler: Sampler) -> tuple[Independence, Tally | None]:
        if not settings.independence:
            return UNTESTED, collected(sampler)[0]
        tests = tested(sampler)
        if not (worst := worst_of(tests)).passed:
            return worst, None
        (tally, _), independence = confirm_refutation(
            collected(sampler),
            tests,
            lambda made: refuted(made[0]),
            traces,
            lambda: collected(sampler.alone(), settings.of_second_opinion),
            lambda: (collected(other := sampler.afresh(), settings.of_second_opinion), tested(other)),
        )
        return independence, tally

    def deviates(found: tuple[Independence, Tally | None]) -> bool:
        return found[1] is None or found[0].alone or refuted(found[1])

    def collect() -> tuple[Independence, Tally | None]:
        with question.helped(datasets) as ahead:
            sampler = Sampler(target, settings.seed, question.id, settings.limit, ahead=ahead)
            return sampler.reviewed(drawn, deviates)

    def conclude(made: tuple[Independence, Tally | None]) -> Conclusion:
        independence, tally = made
        if tally is None:
            return Conclusion(decide_verdict(Verdict.DEVIATION, False, independence=independence), {}, independence)
        found = _describe_tally(tally, names, settings)
        decided = decide_verdict(
            Verdict.DEVIATION,
            refuted(tally),
            f"outputs do not follow {stated}: {found['event']}",
            lambda: describe_missed("a divergence below {} nats", found["resolves"], detect),
            independence,
        )
        return Conclusion(decided, found, independence)

    return finish_audit(labels, question.private, collect, conclude)


def _describe_tally(tally: Tally, names: Sequence[str], settings: Settings) -> dict[str, Any]:
    """Bounds, power and the cell that deviates most."""
    wealths = [
        Multinomials([view.probabilities for view in cells.views]).log_wealth(counts)
        for cells, counts in zip(tally.cells, tally.counts, strict=True)
    ]
    k = max(range(len(wealths)), key=lambda i: float(wealths[i].max()))
    views, counts = tally.cells[k].views, tally.counts[k]
    best = int(np.argmax(wealths[k]))
    small = [i for i, view in enumerate(views) if len(view.labels) <= SHOWN]
    shown = max(small, key=lambda i: float(wealths[k][i]), default=best)
    where = f" on {names[k]}" if len(names) > 1 else ""
    # Flagged by the finest view of one dataset alone: its wealth, averaged with all others that are at worst 0.
    finest = max(range(len(views)), key=lambda i: len(views[i].labels))
    terms = len(names) + (len(names) > 1)
    threshold = -math.log(settings.alpha) + math.log(len(views)) + math.log(terms)
    return {
        "draws": sum(tally.draws),
        "lower_bound": tally.bound,
        "resolves": detectable_divergence(len(views[finest].labels), tally.draws[k], threshold),
        **wealth_fields(tally.path, tally.highest),
        "event": views[best].worst(counts[best]) + where,
        "cells": {"dataset": names[k], **views[shown].table(counts[shown], SHOWN)},
        "truncated_by": tally.truncated_by,
        "record": {
            "chunks": [[n, log] for n, log in tally.path],
            # From these the largest wealth, which decides, can be computed again.
            "counts": [[c.tolist() for c in several] for several in tally.best],
        },
    }


@keep_apart()
def check_conformity(
    mechanism: Mechanism,
    *data: Any,
    reference: HasLaw | None = None,
    error: float = ERROR,
    rounding: float | None = None,
    id: str = "audit/L3/conformity/given",  # noqa: A002 - it is the claim's id
    alpha: float = 0.01,
    draws: int = DRAWS,
    seconds: float | None = None,
    stop: str = "verdict",
    seed: int = 0,
    detect: float | None = None,
    limit: float | None = 60.0,
) -> AuditResult:
    """Hold a mechanism against the distribution that a reference states.

    Parameters
    ----------
    mechanism : callable
        ``(data, n, rng) -> outputs``.
    *data : any
        One or several datasets.
    reference : HasLaw, optional
        States the distribution; default the mechanism itself.
    error, rounding : float, optional
        See `StatedLaw`.
    id, alpha, draws, seconds, stop, seed, limit
        As for `auditor.audit`; ``draws`` counts all datasets together.
    detect : float, optional
        Divergence in nats a draw that is to be found, default `DETECT`.

    Returns
    -------
    AuditResult
        Of verdict "deviation", "consistent", "inconclusive" or "error".

    Raises
    ------
    SpecificationError
        If an argument is not what it must be.
    """
    if not data:
        raise SpecificationError("expected at least one dataset, got none")
    if not callable(mechanism):
        raise SpecificationError(f"mechanism must be callable as (data, n, rng), got {mechanism!r}")
    check_id(id)
    stated = StatedLaw(mechanism if reference is None else reference, error, rounding)  # type: ignore[arg-type]
    settings = Settings(alpha=alpha, draws=draws, seconds=seconds, stop=stop, seed=seed, detect=detect, limit=limit)
    call = ReplayCall()
    listed = [call.show_data(dataset, f"data{k}") for k, dataset in enumerate(data, 1)]
    arguments = [call.name_object(mechanism, "mechanism"), *listed]
    if reference is not None:
        arguments.append(f"reference={call.name_object(reference, 'reference')}")
    options = {"error": error, "rounding": rounding, "alpha": alpha, "draws": draws, "stop": stop, "seed": seed}
    replay = call.write_line("check_conformity", arguments, {**options, "id": id})
    question = Question(id=id, replay=replay)
    return run_conformity(mechanism, stated, data, dataset_names(len(data)), settings, question)


def dataset_names(count: int) -> tuple[str, ...]:
    """Names of datasets that have none."""
    return tuple(f"dataset {k + 1}" for k in range(count))
