"""Tests of the draws that carried a refutation: one that looks dependent has to be reached again, see `asks_again`.

The tests of `auditor.audits.independence` are made beforehand, on calls of their own. What is read here is the very
draws that carried a refutation, in the order in which they were made, through what was bet on: nothing else can have
inflated the evidence.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.audits.independence import UNTESTED, Independence, worst_of
from auditor.targets.outputs import Batch, float_of, hash_outputs, is_number
from auditor.targets.sampler import PARTS, SPLIT, Place
from auditor.targets.values import strip_type

T = TypeVar("T")

Array = NDArray[np.float64]

#: A refutation has to be reached again below this p-value of all tests together, those beforehand and those here. It
#: may be large, as it costs no alpha: of true violations by independent draws one in ten at most is asked for again.
ASK = 0.05
#: From this p-value on it is first to be reached in calls like the first ones, which take a fraction of the time that
#: single draws take. Most true violations by independent draws that are asked for again are in this range; most draws
#: that depend on one another look worse.
UNCLEAR = 0.01
#: The bounds of `doubt_of` exceed the frequency with which independent draws fall below them by this factor, where that
#: is a few per cent; by simulation, with events of probability 0.001 to 0.95 and 480 to 30,000 draws a side.
CONSERVATIVE = 30.0
#: A second refutation, of draws that were taken one a call in random order, is dismissed below this p-value: draws
#: that go together across calls, whatever the order. In a pilot of 150 audits of each case of `benchmarks.dependent`
#: but the longest table all were above 0.007 or below 1e-15; of independent draws one true violation in a thousand of
#: those few is lost.
DISMISS = 0.001
#: Latest draws a side that are kept: as many as the longest call has. Memory does not grow with the budget.
KEPT = 1 << 17
#: Further calls of each dataset that are as long as the longest one: by them it is seen whether the draws of a call
#: share something. They were not chosen by what they refute; they take a third of the draws of the audit so far.
LONG = 8
#: Further calls of each dataset that are a quarter as long, in all half of `KEPT` at most: by them it is seen whether
#: the draws of several calls share something, of which the evidence may have met a few values only.
MANY, SHORTER = 64, 4
#: Calls in a row, of both datasets, whose draws together are compared with those of other calls.
WIDTH = 8
#: Draws of the rarer flag that are expected in a part below which the chi-squared distribution is no approximation.
EXPECTED = 5
#: Draws in all below which nothing is tested: evidence from so few is not inflated by what the first tests missed.
FEWEST = 24
#: Calls apart at which draws in the same place are compared; twice the distance of copies that the benchmark has.
APART = 16
#: Multiples of a period whose correlations are added up: a period of a few draws is then seen at a tenth of the
#: strength that its first multiple needs, and adding all would take a time that is quadratic in the draws.
MULTIPLES = 64


class Record(NamedTuple):
    """Draws of one call, or taken one a call for one chunk.

    Attributes
    ----------
    group : Hashable
        Draws of one group and side have one distribution of scores.
    side : int
        0 for P, 1 for Q; 0 where there is one dataset.
    call : int
        Number of the call in the order of all, the first one where there are several.
    at : ndarray of shape (n,)
        Place of each draw in the order of all.
    scores : ndarray of shape (n,)
        What was bet on says of each.
    """

    group: Hashable
    side: int
    call: int
    at: NDArray[np.int64]
    scores: Array


@dataclass
class Trace:
    """The latest draws of an audit, in order.

    Attributes
    ----------
    records : deque of Record
    own : int or None
        Number of the first call that was made to be looked at, if any was; the evidence rests on those before it.
    """

    records: deque[Record] = field(default_factory=deque)
    own: int | None = None
    _held: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})

    def missing(self, wanted: int, seconds: float | None = None) -> Iterator[int]:
        """Sizes of further chunks, until ``wanted`` draws are held.

        So many a side; then of long and of shorter calls. No chunk begins after ``seconds``.
        """
        begun = time.monotonic()
        for n in self._find_missing(wanted):
            if seconds is not None and time.monotonic() - begun > seconds:
                return
            yield n

    def _find_missing(self, wanted: int) -> Iterator[int]:
        if self.own is None and self.records:
            self.own = max(record.call for record in self.records) + 1
        while (held := min(filter(None, self._held.values()), default=0)) < wanted:
            yield max(8, math.ceil(0.2 * held))
            if held == min(filter(None, self._held.values()), default=0):
                return  # nothing was added
        longest = max((len(r.at) for r in self.records if r.at[-1] - r.at[0] == len(r.at) - 1), default=1)
        if longest > 1:
            shorter = min(max(8, longest // SHORTER), KEPT // (2 * MANY))
            for n, calls in ((longest, LONG), (shorter, MANY)):
                yield from [n] * calls if n * PARTS < SPLIT else [n * PARTS] * (calls // PARTS)

    def add(self, group: Hashable, side: int, place: Place, scores: Any) -> None:
        """Add the scores of a call's draws.

        The oldest draws beyond `KEPT` a side are forgotten.

        Parameters
        ----------
        group : hashable
            Draws are compared within a group, such as a pair with the events that were bet on.
        side : {0, 1}
            The dataset.
        place : Place
            Where the draws were made: their calls, and places in these.
        scores : array_like of shape (n,)
            A number for each draw.
        """
        values, at = np.asarray(scores, dtype=np.float64), place.at()
        first = 0
        for call, n in enumerate(place.sizes or (place.n,), place.call):
            part = slice(first, first + n)
            self.records.append(Record(group, side, call, at[part], values[part]))
            first += n
        self._held[side] += len(values)
        while self._held[side] > KEPT and len(self.records) > 2:
            oldest = self.records.popleft()
            self._held[oldest.side] -= len(oldest.scores)


def scores_of(batch: Batch) -> Array:
    """Map each output to one number.

    It is itself, the sum of a vector, or a number that is another one for another output.

    Like `hash_outputs` it reads each output by itself: the batches without a rare symbol are arrays, and those with it
    are lists, and one score for numbers in arrays and another for numbers in lists would make draws look dependent.
    """
    if isinstance(batch, np.ndarray) and batch.dtype.kind in "biuf" and batch.ndim <= 2:
        rows = batch.astype(np.float64).reshape(len(batch), -1)
        finite = np.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0)
        return finite.sum(axis=1) if rows.shape[1] > 1 else finite[:, 0]
    # The lower half of a key is as good as random; doubles hold it.
    scores = (hash_outputs(batch).astype(np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.float64)
    for i, output in enumerate(batch):
        value = strip_type(output)
        if is_number(value) or isinstance(value, bool):
            scores[i] = np.nan_to_num(float_of(value), nan=0.0, posinf=0.0, neginf=0.0)
        elif isinstance(value, list | tuple) and value and all(is_number(part) for part in value):
            scores[i] = scores_of(np.array([list(map(float_of, value))]))[0]
    return scores


@dataclass(frozen=True)
class Doubt:
    """How dependent the draws look.

    Parameters
    ----------
    p_value : float
        Of all tests together; approximate.
    finding : str
        What looks dependent, in words.
    """

    p_value: float = 1.0
    finding: str = ""


def doubt_of(trace: Trace) -> Doubt:
    """Test whether the scores of draws go together.

    Parameters
    ----------
    trace : Trace
        Draws in the order in which they were made.

    Returns
    -------
    Doubt

    Notes
    -----
    Draws are reduced to flags, a score above a threshold, and these are standardised by the mean of their group. Eight
    families of sums of products of flags are tested. Of two draws of one side: at each distance, at all multiples of a
    period, and at all distances up to a power of 2; each once in the order of all draws, and once within calls. Of a
    draw of one side and one of the other: at each distance, either way. Of two calls up to `APART` calls apart: in the
    same place, either way. Under independence each product has
    mean 0 and variance 1, so that a sum of V products that are at most b in size is bounded by Bennett's inequality,
    which holds for rare flags as well. Sums over multiples and over blocks are quadratic forms, whose heavier tail is
    taken from the chi-squared distribution of the same variance; the larger p-value of the two counts. The distance k
    has the share 1 / (k (k + 1)) of a family's p-value, so that short periods are found in short calls.

    The bounds are divided by `CONSERVATIVE`. Sums of flags over a few calls in a row are also compared with one
    another, and those of the calls that carried the refutation with those of later calls, by chi-squared tests: noise
    that several calls share shows where it takes another value. Of the two p-values the smaller one counts; of 600
    true violations by independent draws 48 were asked for again, 8 of them for these two tests, and all were found.
    Nothing here is a proof that draws are dependent, and nothing that is said to a user rests on it alone: see
    `asks_again`.
    """
    layers = [layer for layer in _layers(trace.records) if sum(len(flags.at) for flags in layer) >= FEWEST]
    if not layers:
        return Doubt()
    found = first_of([doubt for layer in layers for doubt in _tests(layer)])
    found = replace(found, p_value=min(1.0, found.p_value / CONSERVATIVE))
    return min(found, first_of([_over_time(layer, trace.own) for layer in layers]), key=lambda doubt: doubt.p_value)


def looked_at(comparisons: int) -> int:
    """Draws a side that are tested for dependence.

    If need be, beyond those that carried a refutation.

    From a few dozen draws hardly anything can be seen. It is as many as the tests beforehand take, which are fewer for
    slow targets: see `Settings.comparisons`.
    """
    return 10 * comparisons


def asks_again(doubt: Doubt) -> bool:
    """Whether a refutation has to be reached again.

    On new draws: in calls like the first ones if the doubt is slight, one a call in an order that is drawn at random
    if it is not, or if they look dependent as well; see `confirm_refutation`.

    Notes
    -----
    Valid because: an alarm is then raised only if the first refutation came and a further one did. Of draws that are
    independent the alarms are a subset of the first refutations, whatever `doubt` is a function of. So alpha holds
    without any assumption on the tests, which only have to see what inflates evidence, and asking costs nothing but
    draws.
    """
    return doubt.p_value < ASK


def confirm_refutation(
    first: T,
    tests: Sequence[Independence],
    refuted: Callable[[T], bool],
    traces: Callable[[T], Iterable[Trace]],
    again: Callable[[], T],
    afresh: Callable[[], tuple[T, Sequence[Independence]]] | None,
    look: Callable[[T, Independence], Independence] | None = None,
) -> tuple[T, Independence]:
    """Confirm a refutation on new draws where draws look dependent.

    Parameters
    ----------
    first : T
        What was found.
    tests : sequence of Independence
        Outcome of the tests of independence that were made of the target's draws; all of them passed.
    refuted : callable
        Whether what was found refutes the claim.
    traces : callable
        The draws of what was found, each trace by itself, made longer where they are too few to be looked at, see
        `looked_at`. It is asked for after a refutation only.
    again : callable
        Audits once more, on new draws, one a call and in random order.
    afresh : callable or None
        Audits once more, on new draws in calls like the first ones, and tests anew that they are independent; None
        where only draws taken one a call are to count.
    look : callable, optional
        Looks at what was found again, one draw a call; by default `look_again` does.

    Returns
    -------
    T
        What counts: the first, unless it was doubted and not reached again in calls like the first ones; then what was
        found last.
    Independence
        With `Independence.asked` if it was asked for again; with `Independence.still` if the draws look dependent even
        so: then no refutation stands.

    Notes
    -----
    Valid because: see `asks_again`. Where ``afresh`` is asked, a refutation stands if both it and the first came, and
    the draws of one of the two do not look dependent; otherwise it has to be reached by draws taken one a call as well.
    """
    independence = worst_of(tests) if tests else UNTESTED
    if not refuted(first):
        return first, independence
    doubt = _doubt_tested(tests, traces(first))
    if not asks_again(doubt):
        return first, independence
    independence = replace(independence, asked=doubt.finding, asked_p=doubt.p_value)
    if afresh is not None and doubt.p_value >= UNCLEAR:
        second, more = afresh()
        tested = replace(independence, draws=independence.draws + sum(test.draws for test in more), in_calls=True)
        if not refuted(second):
            return second, tested
        doubt = _doubt_tested(more, traces(second))
        if not asks_again(doubt):
            return first, tested
        independence = replace(tested, asked=doubt.finding, asked_p=doubt.p_value, in_calls=False)
    second = again()
    return second, look_again(second, independence, refuted, traces) if look is None else look(second, independence)


def _doubt_tested(tests: Sequence[Independence], traces: Iterable[Trace]) -> Doubt:
    """How dependent the draws of traces look, and those of tests beside them."""
    before = [p for test in tests for p in test.p_values.values()]
    doubts = [Doubt(min(before) * len(before), worst_of(tests).likeliest)] if before else []
    return first_of([*doubts, doubt_of_all(traces)])


def look_again(
    second: T, independence: Independence, refuted: Callable[[T], bool], traces: Callable[[T], Iterable[Trace]]
) -> Independence:
    """Test draws that were taken one a call.

    `Independence.still` is set if a refutation by them does not hold.

    Parameters
    ----------
    second : object
        The evidence of these draws.
    independence : Independence
        What was tested before.
    refuted : callable
        Whether evidence refutes the claim.
    traces : callable
        From evidence to its traces.
    """
    doubt = doubt_of_all(traces(second)) if refuted(second) else Doubt()
    return replace(independence, still=doubt.finding) if doubt.p_value < DISMISS else independence


def doubt_of_all(traces: Iterable[Trace]) -> Doubt:
    """How dependent the draws of several traces look."""
    return first_of([doubt_of(trace) for trace in traces])


def first_of(doubts: Sequence[Doubt]) -> Doubt:
    """The gravest of several doubts, by Bonferroni's inequality."""
    if not doubts:
        return Doubt()
    least = min(doubts, key=lambda doubt: doubt.p_value)
    return Doubt(len(doubts) * least.p_value, least.finding)


class _Flags(NamedTuple):
    """Standardised flags of one record; ``largest`` bounds their size."""

    side: int
    call: int
    at: NDArray[np.int64]
    values: Array
    largest: float


def _layers(records: Sequence[Record] | deque[Record]) -> Iterator[list[_Flags]]:
    """Flags by each of the thresholds: of a few distinct scores all of them, otherwise the quartiles."""
    groups: dict[tuple[Hashable, int], list[Record]] = {}
    for record in records:
        groups.setdefault((record.group, record.side), []).append(record)
    layers: list[list[_Flags]] = [[] for _ in range(3)]
    for (_, side), members in groups.items():
        scores = np.concatenate([record.scores for record in members])
        for layer, cut in zip(layers, _thresholds(scores), strict=False):
            flags = scores > cut
            p = float(flags.mean())
            if not 0 < p < 1:
                continue
            values = (flags - p) / math.sqrt(p * (1 - p))
            largest = math.sqrt(max(p / (1 - p), (1 - p) / p))
            ends = np.cumsum([len(record.scores) for record in members])[:-1]
            for record, part in zip(members, np.split(values, ends), strict=True):
                layer.append(_Flags(side, record.call, record.at, part, largest))
    for layer in layers:
        if layer:
            yield sorted(layer, key=lambda flags: flags.call)


def _thresholds(scores: Array) -> list[float]:
    distinct = np.unique(scores)
    if len(distinct) <= 4:
        return [float(cut) for cut in distinct[:-1]]
    return sorted({float(np.quantile(scores, share)) for share in (0.25, 0.5, 0.75)})


def _tests(layer: list[_Flags]) -> list[Doubt]:
    """Outcome of each family of tests on one layer of flags."""
    from scipy import fft  # only where a claim was refuted

    first = min(int(flags.at.min()) for flags in layer)
    length = max(int(flags.at.max()) for flags in layer) - first + 1
    values, there = np.zeros((2, length)), np.zeros((2, length))
    for flags in layer:
        values[flags.side, flags.at - first] = flags.values
        there[flags.side, flags.at - first] = 1.0
    bound = max(flags.largest for flags in layer) ** 2
    size = fft.next_fast_len(2 * length, real=True)
    spectrum, mask = fft.rfft(values, size), fft.rfft(there, size)
    sums = fft.irfft((np.abs(spectrum) ** 2).sum(axis=0), size)[:length]
    counts = np.rint(fft.irfft((np.abs(mask) ** 2).sum(axis=0), size)[:length])
    found = [*_same_side(sums, counts, bound, float(length), ""), _compare_aligned_draws(layer, bound)]
    longest = max(len(flags.values) for flags in layer)
    if longest > 1:
        sums, counts = np.zeros(longest), np.zeros(longest)
        calls: dict[int, list[Array]] = {}
        for flags in layer:
            calls.setdefault(len(flags.values), []).append(flags.values)
        for n, those in calls.items():
            padded = fft.next_fast_len(2 * n, real=True)
            power = (np.abs(fft.rfft(np.stack(those), padded)) ** 2).sum(axis=0)
            sums[:n] += fft.irfft(power, padded)[:n]
            counts[:n] += len(those) * np.arange(n, 0, -1)
        sizes = np.array([len(flags.values) for flags in layer], dtype=np.float64)
        found += _same_side(sums, counts, bound, float((sizes**3).sum() / (sizes**2).sum()), " of one call")
    if there.any(axis=1).all():
        sums = fft.irfft(np.conj(spectrum[0]) * spectrum[1], size)
        counts = np.rint(fft.irfft(np.conj(mask[0]) * mask[1], size))
        found.append(_compare_sides(sums, counts, bound, length))
    return found


def _same_side(sums: Array, counts: Array, bound: float, run: float, where: str) -> list[Doubt]:
    """Draws of one side at each distance, at all multiples of each period, and up to each power of 2.

    ``run`` is the usual length of what they are taken from, and ``where`` says what that is.
    """
    length = len(sums)
    lags = np.arange(1, length)
    log = _bennett(sums[1:], counts[1:], bound) + _prior(lags)
    found = [_smallest_doubt(log, lags, f"draws{where} look alike at a distance of {{}}")]
    total, over = np.zeros(length), np.zeros(length)
    for multiple in range(1, min(MULTIPLES, length - 1) + 1):
        periods = (length - 1) // multiple
        total[1 : periods + 1] += sums[multiple::multiple][:periods]
        over[1 : periods + 1] += counts[multiple::multiple][:periods]
    rows = 1 + np.minimum(run / lags, MULTIPLES)
    log = np.maximum(_bennett(total[1:], over[1:], bound), _log_quadratic_tail(total[1:], over[1:], rows))
    found.append(_smallest_doubt(log + _prior(lags), lags, f"draws{where} look alike with a period of {{}}"))
    widths = np.unique(np.append(2 ** np.arange(max(int(math.log2(length)), 1)), length - 1))
    widths = widths[(widths > 0) & (widths < length)]
    total, over = np.cumsum(sums[1:])[widths - 1], np.cumsum(counts[1:])[widths - 1]
    rows = 1 + np.minimum(run, widths)
    log = np.maximum(_bennett(total, over, bound), _log_quadratic_tail(total, over, rows)) + math.log(len(widths))
    found.append(_smallest_doubt(log, widths, f"draws{where} look alike up to a distance of {{}}"))
    return found


def _compare_sides(sums: Array, counts: Array, bound: float, length: int) -> Doubt:
    """A draw of one side and one of the other at each distance, in both directions, alike or opposite."""
    lags = np.arange(1, length)
    log = np.stack([_bennett(np.abs(part), count, bound) for part, count in _both_ways(sums, counts, length)])
    log += _prior(lags) + math.log(4)
    return _smallest_doubt(log.min(axis=0), lags, "draws on the two datasets go together at a distance of {}")


def _both_ways(sums: Array, counts: Array, length: int) -> Iterator[tuple[Array, Array]]:
    yield sums[1:length], counts[1:length]
    yield sums[::-1][: length - 1], counts[::-1][: length - 1]


def _compare_aligned_draws(layer: list[_Flags], bound: float) -> Doubt:
    """Draws in the same place of two calls, of one dataset or of two, alike or opposite."""
    sums, counts = _sum_aligned_products(layer)
    log = _bennett(np.abs(sums), counts, bound) + math.log(2 * sums.size)
    return _smallest_doubt(
        log.min(axis=0), np.arange(1, APART + 1), "draws in the same place of calls {} apart go together"
    )


def _sum_aligned_products(layer: list[_Flags]) -> tuple[Array, Array]:
    """Sums of products of draws in the same place of two calls, and their number, each of shape (2, `APART`).

    The rows are for two calls on one dataset and for calls on two, the columns for calls 1, 2, ... apart.
    """
    sums, counts = np.zeros((2, APART)), np.zeros((2, APART))
    sizes = np.array([len(flags.values) for flags in layer])
    calls, sides = (np.array([getattr(flags, name) for flags in layer]) for name in ("call", "side"))
    first = 0
    while first < sizes.max():  # places of calls from `first` to `last`, as a table that has few gaps
        last = max(4 * first, 64)
        those = np.flatnonzero(sizes > first)
        values = np.zeros((len(those), last - first))
        for row, which in zip(values, those, strict=True):
            part = layer[which].values[first:last]
            row[: len(part)] = part
        for k in range(1, len(those)):
            one, other = those[:-k], those[k:]
            apart = calls[other] - calls[one]
            if apart.min() > APART:  # so are those of later ones, as calls are in order
                break
            near = (apart >= 1) & (apart <= APART)
            at = np.where(sides[one] == sides[other], 0, APART)[near] + apart[near] - 1
            products = np.einsum("ij,ij->i", values[:-k], values[k:])[near]
            sums += np.bincount(at, products, 2 * APART).reshape(2, APART)
            if first == 0:
                counts += np.bincount(at, np.minimum(sizes[one], sizes[other])[near], 2 * APART).reshape(2, APART)
        first = last
    return sums, counts


def _over_time(layer: list[_Flags], own: int | None) -> Doubt:
    """Draws of parts of the calls: of a few in a row each, and of those before the call ``own`` and from it on."""
    calls = np.array([flags.call for flags in layer])
    parts = {f"draws of {WIDTH} calls in a row go together": np.arange(len(layer)) // WIDTH}
    if own is not None:
        parts["the draws that carried the refutation differ from those after it"] = np.asarray(calls >= own, dtype=int)
    sides, sums = np.array([flags.side for flags in layer]), np.array([flags.values.sum() for flags in layer])
    sizes, largest = np.array([len(flags.values) for flags in layer]), np.array([flags.largest for flags in layer])
    found = []
    for finding, part in parts.items():
        total, freedom = 0.0, 0
        for side in (0, 1):
            here = sides == side
            size, least = np.bincount(part[here], sizes[here]), EXPECTED * np.max(largest[here], initial=0.0) ** 2
            enough = (size > 0) & (size >= least)
            total += float((np.bincount(part[here], sums[here])[enough] ** 2 / size[enough]).sum())
            freedom += max(int(enough.sum()) - 1, 0)
        if freedom:
            found.append(Doubt(float(special.gammaincc(freedom / 2, total / 2)), finding))
    return first_of(found)


def _bennett(sums: Array, counts: Array, bound: float) -> Array:
    """Logarithm of Bennett's bound on the probability of a sum so large, of ``counts`` products of variance 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.maximum(sums, 0.0) * bound / counts
        log = -(counts / bound**2) * ((1 + u) * np.log1p(u) - u)
    # Rounding of the transforms leaves sums of about 1e-9 where there is nothing to add.
    return np.where((counts > 0) & (sums > 1e-6), log, 0.0)


def _log_quadratic_tail(sums: Array, counts: Array, rows: Array) -> Array:
    """Logarithm of the tail of a quadratic form: of ``rows`` draws in each of nu classes, with the same variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        nu = np.maximum(2 * counts / rows**2, 1.0)
        scaled = np.maximum(2 * sums / rows + nu, 0.0)
        log = np.log(special.gammaincc(nu / 2, scaled / 2))
    tail: Array = np.where(np.isnan(log), 0.0, log)
    return tail


def _prior(lags: NDArray[np.int64]) -> Array:
    """What is added to the logarithm of a p-value at a distance, for its share."""
    share: Array = np.log(lags) + np.log(lags + 1.0)
    return share


def _smallest_doubt(log: Array, lags: NDArray[np.int64], finding: str) -> Doubt:
    k = int(np.argmin(log))
    return Doubt(math.exp(min(float(log[k]), 9.0)), finding.format(f"{int(lags[k]):,}"))
