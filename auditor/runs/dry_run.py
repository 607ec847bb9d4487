"""Estimates of a run's time, from short pilots of the claims' own mechanisms."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy.base import Theorem
from auditor.audits.adversaries.game import Game
from auditor.audits.context import Question
from auditor.audits.independence import BLOCK, BLOCKS, COMPARISONS
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import CHUNKS, LARGEST, Settings
from auditor.audits.summary import format_duration
from auditor.claims import Claim
from auditor.datasets import Pair
from auditor.errors import TargetError
from auditor.privacy.guarantees import Guarantee, PureDP
from auditor.runs.engine_time import EngineTime
from auditor.runs.run import Run, settings_of, split_alpha
from auditor.targets import Mechanism
from auditor.targets.process_settings import keep_apart
from auditor.targets.sampler import Call, Sampler, parts_of

Clock = Callable[[], float]

#: Seconds of pilots a claim: a hundred claims are estimated in the time that a person waits for an answer.
PILOT = 0.05
#: Seconds that one call of a pilot may take; arbitrary, so that a target that hangs is found out soon.
PILOT_LIMIT = 2.0
#: Largest factor between the sizes of a pilot's batches; arbitrary, so that three of them reach from one draw to the
#: largest chunk.
_STEP = 64
#: Draws in most calls of the independence tests.
_SHORT = BLOCK * BLOCKS
#: The engine's own seconds: for an audit, for each chunk (and coordinate of the outputs in it), and for each output
#: (and coordinate). Measured on the machine of reports/cost.md, on claims of pure DP at 200,000 and 2,000,000 draws
#: with 1, 4 and 10 coordinates (65 to 190 ms an audit); `probe_speed` corrects them for other machines and notions.
_AUDIT, _CHUNK, _CHUNK_COORDINATE, _OUTPUT_COORDINATE = 0.030, 0.8e-3, 0.3e-3, 5e-9
#: Draws of the probe: with some 30 chunks it takes about as long as a pilot.
_PROBE = 4_000
#: By how much a probe is exceeded: audits draw more and learn from more, and an estimate is better too high. With it,
#: the claims of experiments/ take half of their estimates to twice them, and four fifths in the median.
_MARGIN = 1.5
#: Calls of the independence tests on one dataset: short ones, one long one and a repeated one.
_CALLS = COMPARISONS // BLOCKS + 2


@dataclass(frozen=True)
class Estimate:
    """What one claim would take.

    Parameters
    ----------
    claim : Claim
        The claim.
    settings : Settings
        How it would be audited.
    seconds : float or None
        Estimate for its whole budget; None where nothing is drawn, or the target failed.
    failure : str
        What the target did wrong in the pilot; empty if it answered.
    """

    claim: Claim
    settings: Settings
    seconds: float | None
    failure: str = ""


@dataclass(frozen=True)
class Speed:
    """Seconds of a call, by its number of draws.

    With the number of coordinates of an output.
    """

    sizes: tuple[float, ...]
    seconds: tuple[float, ...]
    width: int

    @property
    def each(self) -> float:
        """Seconds of a further draw in a call.

        The largest batch less the smallest.
        """
        if len(self.sizes) == 1:
            return self.seconds[0] / self.sizes[0]
        return max(self.seconds[-1] - self.seconds[0], 0.0) / (self.sizes[-1] - self.sizes[0])

    def call(self, n: float) -> float:
        """Seconds of a call for n draws.

        Between two measured sizes on a line, and above the largest on another.
        """
        if n <= self.sizes[-1]:
            return float(np.interp(n, self.sizes, self.seconds))
        return self.seconds[-1] + (n - self.sizes[-1]) * self.each

    def draw(self, n: int) -> float:
        """Seconds of n draws, in the sampler's calls."""
        calls = len(parts_of(Call(n, ())))
        return calls * self.call(n / calls)


def estimate_claims(run: Run, selected: Sequence[Claim], done: Collection[str] = ()) -> list[Estimate]:
    """Estimate each selected claim.

    Those that are ``done`` (by id) have their share of alpha, and are left out.

    Parameters
    ----------
    run : Run
        Gives budgets, seed and alpha.
    selected : sequence of Claim
        Claims that share alpha.
    done : collection of str
        Ids of claims that are left out; default none.
    """
    alpha = split_alpha(selected, run.alpha)
    factors: dict[str, float] = {}
    found = []
    for claim in selected:
        if claim.id in done:
            continue
        guarantee = claim.draft.guarantee
        with keep_apart(claim.module):
            if guarantee.notion not in factors and claim.draft.draws_any:
                factors[guarantee.notion] = probe_speed(guarantee if isinstance(guarantee, Guarantee) else PureDP(1.0))
            settings = settings_of(claim, run, alpha[claim.id])
            found.append(estimate_claim(claim, settings, factors.get(guarantee.notion, 1.0)))
    return found


def probe_speed(guarantee: Guarantee, clock: Clock = time.perf_counter) -> float:
    """Speed of this machine, relative to the constants above.

    An audit of randomised response is timed, with a margin.

    Parameters
    ----------
    guarantee : Guarantee
        Claim that the audit is of; the cost of the engine depends on its notion.
    clock : callable
        Gives seconds; default the time of the machine.

    Returns
    -------
    float
        Cost of the engine here over its cost where it was measured, with a margin; above 1 on a slower machine.
    """
    settings = Settings(draws=_PROBE, stop="budget", independence=False)
    pair = Pair(np.array([0]), np.array([1]))
    begun = clock()
    run_audit(_respond, guarantee, [pair], settings, Question("probe"))
    return _MARGIN * (clock() - begun) / (_AUDIT + _engine(len(chunk_sizes(_PROBE // 2, 1)), _PROBE, 1))


def _respond(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Randomised response at epsilon = 1."""
    return np.asarray(np.where(rng.random(n) < 1 / (1 + math.exp(-1.0)), data[0], 1 - data[0]))


def estimate_claim(claim: Claim, settings: Settings, factor: float = 1.0, clock: Clock = time.perf_counter) -> Estimate:
    """Estimate one claim by a pilot on its first pair.

    With ``stop="verdict"`` it is an estimate from above, as an audit that refutes its claim stops early.

    Parameters
    ----------
    claim : Claim
        What is declared.
    settings : Settings
        Its budgets.
    factor : float
        Cost of the engine here over its cost where it was measured, see `probe_speed`.
    clock : callable
        Gives seconds; default the time of the machine.
    """
    draft = claim.draft
    if isinstance(draft.guarantee, Theorem):
        return _accuracy_estimate(claim, draft.guarantee, settings, clock)
    datasets = [draft.pairs[0].x, draft.pairs[0].y] if draft.pairs else [data for _, data in draft.datasets]
    mechanism = draft.mechanism
    if isinstance(draft.subject, Game):
        mechanism, datasets = draft.subject, [None]  # it makes up data
    if draft.level == "L0" or mechanism is None or not datasets:
        return Estimate(claim, settings, None)
    try:
        speed = time_calls(mechanism, (datasets[0], datasets[-1]), settings.seed, claim.id, clock)
    except TargetError as error:
        return Estimate(claim, settings, None, str(error))
    return Estimate(claim, settings, audit_seconds(speed, settings, max(len(draft.pairs), 1), factor))


def _accuracy_estimate(claim: Claim, theorem: Theorem, settings: Settings, clock: Clock) -> Estimate:
    """Estimate a claim of accuracy, which costs what its draws cost; a computed statement has none."""
    try:
        place = theorem.place(claim.draft.subject) if claim.draft.draws_any else None
        if place is None:
            return Estimate(claim, settings, None)
        speed = time_calls(place.mechanism, (place.data, place.data), settings.seed, claim.id, clock)
    except TargetError as error:
        return Estimate(claim, settings, None, str(error))
    return Estimate(claim, settings, speed.draw(settings.draws))


def time_calls(
    mechanism: Mechanism, datasets: tuple[Any, Any], seed: int, key: str, clock: Clock = time.perf_counter
) -> Speed:
    """Time calls of a target for growing batches.

    About `PILOT` seconds, or some nine calls of one draw.

    The draws are keyed apart from those of an audit, and come from the two datasets in turn. The first call is not
    counted, because it may load or compute what later calls find. A target that takes half a second for one draw is
    asked for one only, twice.

    Parameters
    ----------
    mechanism : Mechanism
        The target.
    datasets : tuple of two datasets
        Drawn from in turn.
    seed : int
        Seed of the run.
    key : str
        Id of the claim; keys the draws.
    clock : callable
        Gives seconds; default the time of the machine.

    Raises
    ------
    TargetError
        If the target fails, or a call takes longer than `PILOT_LIMIT` seconds.
    """
    sampler = Sampler(mechanism, seed, f"pilot/{key}", limit=PILOT_LIMIT)
    calls = 0

    def timed(n: int) -> tuple[float, Any]:
        nonlocal calls
        before = clock()
        outputs = sampler.draw(datasets[calls % 2], n, calls)
        calls += 1
        return clock() - before, outputs

    # The first call may load what all share, the second may compute something of the other dataset.
    begun, first = clock(), timed(1)[0]
    if first < PILOT_LIMIT / 4:
        timed(1)
    warm = clock()
    took, outputs = timed(1)
    width = int(np.prod(outputs.shape[1:])) if isinstance(outputs, np.ndarray) else 1
    speed, drawn = Speed((1,), (took,), max(width, 1)), 1
    # One larger batch at least tells a call's own cost from that of a draw. A call that takes long itself gets more
    # time: by a line through 0, 20 million draws of calls of 0.1 s would take 23 days, whatever a further draw costs.
    slow = warm - begun > PILOT
    if slow:
        begun = warm
    budget = max(PILOT, 4 * took) if slow else PILOT
    while took < PILOT_LIMIT / 4 and clock() - begun < (budget if len(speed.sizes) > 1 else 2 * budget):
        # So many draws should take half a pilot, beside the call's own cost.
        most = int(budget / 2 / speed.each) if speed.each > 0 else LARGEST
        n = min(drawn * _STEP, most if len(speed.sizes) > 1 else max(most, 2), LARGEST)
        if n <= drawn:
            break
        parts, drawn = len(parts_of(Call(n, ()))), n
        speed = replace(speed, sizes=(*speed.sizes, n / parts), seconds=(*speed.seconds, timed(n)[0] / parts))
    return speed


def audit_seconds(
    speed: Speed, settings: Settings, pairs: int, factor: float = 1.0, engine: EngineTime | None = None
) -> float:
    """Seconds of an audit that exhausts its budget.

    Drawing, independence tests, and the engine's cost.

    Parameters
    ----------
    speed : Speed
        Of the target.
    settings : Settings
        Budgets of the audit.
    pairs : int
        Pairs of datasets, at least 1.
    factor : float
        Cost of the engine here over its cost where it was measured, see `probe_speed`.
    engine : EngineTime or None
        The engine's own time on outputs of the target, if that was measured.
    """
    sizes = chunk_sizes(settings.draws // 2, pairs)
    chunks = sum(times for _, times in sizes)
    drawing = 2 * sum(times * speed.draw(n) for n, times in sizes)
    testing = 2 * _CALLS * speed.call(_SHORT) if settings.independence else 0.0
    own = factor * _engine(chunks, settings.draws, speed.width)
    if engine is not None:
        own = engine.of_pairs(settings.draws // 2, pairs)
    learning = drawing + own
    if settings.seconds is not None:
        learning = min(learning, settings.seconds + 2 * speed.draw(max(sizes)[0]))  # the last chunk is drawn to its end
    return factor * _AUDIT + testing + learning


def _engine(chunks: int, draws: int, width: int) -> float:
    return chunks * (_CHUNK + _CHUNK_COORDINATE * width) + draws * width * _OUTPUT_COORDINATE


def chunk_sizes(side: int, pairs: int) -> list[tuple[int, int]]:
    """Sizes of chunks a side, with their numbers, in order.

    ``side`` draws are taken to be spread evenly over the pairs, which makes the most chunks.

    Parameters
    ----------
    side : int
        Draws a side, over all pairs.
    pairs : int
        Pairs of datasets, at least 1.

    Returns
    -------
    list of (int, int)
        Draws of a chunk, and how many chunks of this size follow one another.
    """
    sizes: list[tuple[int, int]] = []
    for k in range(pairs):
        drawn, budget = 0, side // pairs + (k < side % pairs)
        while drawn < budget:
            n = CHUNKS.size(drawn, budget - drawn)
            times = (budget - drawn) // LARGEST if n == LARGEST else 1
            sizes.append((n, times))
            drawn += n * times
    return sizes


def total_seconds(found: Sequence[Estimate], jobs: int, start: float) -> float:
    """Seconds of the run on ``jobs`` workers.

    Each takes ``start`` seconds to load the claims.

    Valid because: a worker takes the next claim when it is free, and such a schedule ends no later than
    sum / jobs + (1 - 1 / jobs) * longest (Graham 1966).

    Parameters
    ----------
    found : sequence of Estimate
        Those without seconds count as 0.
    jobs : int
        Workers, at least 1.
    start : float
        Seconds that a worker takes to load the claims.
    """
    seconds = [part.seconds or 0.0 for part in found]
    if jobs == 1:
        return sum(seconds)
    return start + sum(seconds) / jobs + (1 - 1 / jobs) * max(seconds, default=0.0)


def format_estimates(found: Sequence[Estimate], jobs: int, start: float) -> list[str]:
    """Table of the estimates, with total and failures below.

    Parameters
    ----------
    found : sequence of Estimate
        One a row.
    jobs : int
        Workers, at least 1.
    start : float
        Seconds that a worker takes to load the claims.
    """
    rows = [("id", "claimed", "expected", "budget", "share of alpha", "time")]
    for part in found:
        draft, share, takes = part.claim.draft, "-", "-"
        budget = "computed" if isinstance(draft.guarantee, Theorem) else "exact distribution"
        if draft.draws_any:
            budget, share = f"{part.settings.draws:,} draws", f"{part.settings.alpha:.3g}"
        if part.failure:
            takes = "FAILS"
        elif part.seconds is not None:
            takes = f"{'at most' if part.settings.stop == 'verdict' else 'about'} {format_duration(part.seconds)}"
        rows.append((part.claim.id, str(draft.guarantee), str(draft.expected), budget, share, takes))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    failed = [f"FAILS in its pilot: {part.claim.id}: {part.failure}" for part in found if part.failure]
    draws = sum(part.settings.draws for part in found if part.seconds is not None)
    most = "at most " if any(part.settings.stop == "verdict" for part in found) else ""
    workers = f"{jobs} worker{'s' * (jobs != 1)}"
    return [
        *table,
        "",
        *failed,
        f"{len(found)} claim{'s' * (len(found) != 1)} would run: {draws:,} draws, {most}about "
        f"{format_duration(total_seconds(found, jobs, start))} on {workers}",
        f"These are estimates, from pilots of about {1e3 * PILOT:.0f} ms a claim"
        + ("; audits that refute their claim stop early" if most else "")
        + ("; claims that fail are not counted" if failed else ""),
    ]
