"""Which events to bet on next, from past draws of one pair."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.events.classifier import Learners, Training, fitters_of
from auditor.events.elements import read_once
from auditor.events.features import Additive, Distance, Feature, LatticeExponent, Linear, Rank, fixed_features
from auditor.events.fitting import (
    learn_additive,
    learn_distance,
    learn_histogram,
    learn_lattices,
    learn_linear,
    learn_symbols,
)
from auditor.events.learned import learn_clipped, learn_marked, near_answers
from auditor.events.outputs import Batch, concatenate
from auditor.events.own_ratio import OwnRatio
from auditor.events.reservoir import Reservoir
from auditor.events.structure import Structure, structure_of
from auditor.evidence.power import divergence_rate
from auditor.guarantees import Guarantee

Array = NDArray[np.float64]

#: Draws a side that learners see. 20,000 place a threshold within 0.4 % of probability; memory does not grow with
#: the budget.
RESERVOIR = 20_000
#: Events are learned anew when the draws have grown by this factor; from `LATE` draws a side on by the second one.
RELEARN, LATE_RELEARN = 1.2, 1.5
LATE = 2_000
#: The structure of outputs is looked at anew when the draws have grown by this factor: arbitrary, four times in all.
RESTRUCTURE = 8
#: Events that stay in the race when the reservoir is full; the best by all draws is bet on. Arbitrary: each costs one
#: comparison a draw.
FINALISTS = 6
#: Finalists of one feature differ by at least so much in the log-odds of their probability; arbitrary.
_APART = 1.0
#: Symbols beyond this number are not ordered one by one.
MOST_SYMBOLS = 1_024
#: Histogram cells; learned only from the draws that fill them with 20 draws each.
CELLS = 24
#: Cells of each coordinate in sums of log-likelihood ratios; arbitrary, few so that each has many draws.
COORDINATE_CELLS = 10
#: The claim is what events are chosen against while past draws speak against it with so many nats; otherwise the
#: largest level within reach is. Chosen by simulation.
_NATS = 2.0
#: Nats by which the rating of events is pessimistic beyond ln(1/alpha), because the best of many candidates looks
#: better than it is. Chosen by simulation.
_EXTRA = 3.0
#: Nats by which an event of a learned feature must beat the best of the simpler ones, which are judged on more draws:
#: directions and histogram sets are many and noisy, sums of coordinate scores cost more than most to evaluate. All are
#: chosen by simulation.
_PENALTIES: dict[type, float] = {Rank: 3.0, Linear: 3.0, Additive: 1.5, Distance: 1.5}
#: A finalist's score is at least this part of the best one's; arbitrary, others would not catch up.
_CLOSE = 0.4
#: Estimates add this to the count and twice this to the number of draws.
_SHRINK = 1.0


@dataclass(frozen=True)
class Chain:
    """Nested events {feature <= cut} (side "below") or {feature > cut} ("above"), outermost first."""

    feature: Feature
    side: str
    cuts: tuple[float, ...]

    def cells(self, batch: Batch) -> tuple[int, ...]:
        """Count the outputs that lie in exactly the first 0, 1, ..., k events."""
        return self.cells_of(self.feature(batch))

    def cells_of(self, values: Array) -> tuple[int, ...]:
        """Count as `cells` does, from the values of the chain's feature."""
        inside = [len(values), *(int(np.count_nonzero(self._member(values, cut))) for cut in self.cuts), 0]
        return tuple(a - b for a, b in itertools.pairwise(inside))

    def _member(self, values: Array, cut: float) -> NDArray[np.bool_]:
        return values <= cut if self.side == "below" else values > cut

    def words(self) -> tuple[str, ...]:
        """Each event in words."""
        say = self.feature.below if self.side == "below" else self.feature.above
        return tuple(say(cut) for cut in self.cuts)


@dataclass
class Proposal:
    """A chain with the counts on which its estimates rest; ``best`` is the index of its best event."""

    chain: Chain
    best: int
    x: Array
    y: Array
    n: int

    def add(self, x: Sequence[int], y: Sequence[int], n: int) -> None:
        """Count a chunk, by cells."""
        self.x = self.x + np.cumsum(np.asarray(x)[::-1])[::-1][1:]
        self.y = self.y + np.cumsum(np.asarray(y)[::-1])[::-1][1:]
        self.n += n

    def estimates(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Shrunken estimates of the events' probabilities under P and Q."""
        return tuple(_shrunken(self.x, self.n).tolist()), tuple(_shrunken(self.y, self.n).tolist())


@dataclass(frozen=True)
class _Candidates:
    """Events of one feature and side, with their counts."""

    feature: Feature
    side: str
    cuts: Array
    x: Array
    y: Array
    n: int
    penalty: float = 0.0


class EventLearner:
    """Proposes events for one pair from a bounded, deterministic reservoir: its first 20,000 draws a side.

    Parameters
    ----------
    guarantee : Guarantee
        The claim.
    alpha : float
        Level of the test; sets what is within reach.
    extra : str or callable, optional
        Features that cost more to learn: the name of classifiers, or a function that maps two batches (draws of P and
        of Q) to a list of features. They are fitted at doublings of the draws, when `fit` is called, on the even draws,
        and judged on the odd ones.
    own : OwnRatio, optional
        The mechanism's own log-likelihood ratio on the pair.

    Notes
    -----
    Nothing here bears on validity: a proposal is a function of past draws, whatever it is.
    """

    def __init__(
        self,
        guarantee: Guarantee,
        alpha: float,
        extra: Learners | None = None,
        own: OwnRatio | None = None,
    ) -> None:
        self.guarantee = guarantee
        self.nats = math.log(1 / alpha)
        self.training = Training(fitters_of(extra))
        self.own = own
        self.n = 0
        self.finalists: list[Proposal] = []
        self.reach = 0.0  # pessimistic level of the best event
        self.hope = math.inf  # optimistic level of the same event
        self._past = Reservoir(RESERVOIR)
        self._learned_at = 0
        self._fixed: list[Feature] | None = None
        self._structure = Structure()
        self._structured_at = 0

    @property
    def proposal(self) -> Proposal | None:
        """The finalist to bet on next: the first, they are in the order of their scores."""
        return self.finalists[0] if self.finalists else None

    def count(self, x: Batch, y: Batch) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """How a chunk falls into the cells of each finalist."""
        x, y = read_once(x), read_once(y)
        values = {feature: (feature(x), feature(y)) for feature in {f.chain.feature for f in self.finalists}}
        pairs = [(f.chain, *values[f.chain.feature]) for f in self.finalists]
        return [(chain.cells_of(a), chain.cells_of(b)) for chain, a, b in pairs]

    def add(self, x: Batch, y: Batch, counts: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        """Take in a chunk of draws, and how it fell into the cells of the finalists."""
        n = len(x)
        self.n += n
        self._past.add(x, y)
        for finalist, (a, b) in zip(self.finalists, counts, strict=True):
            finalist.add(a, b, n)

    def learn(self, rejected: bool) -> None:
        """Propose events anew if enough new draws are in the reservoir.

        Parameters
        ----------
        rejected : bool
            The claimed level is rejected already, only the lower bound is still of interest.
        """
        factor = RELEARN if self._learned_at < LATE else LATE_RELEARN
        full = self._past.held == RESERVOIR > self._learned_at
        if full or self._past.held > factor * self._learned_at:
            self._learned_at = self._past.held
            self._learn(rejected)
        elif self.finalists:
            score = self._race(rejected)
            # At each doubling of the draws past the reservoir the worst one goes, so that late draws cost little.
            room = max(1, FINALISTS - int(math.log2(max(self.n / RESERVOIR, 1.0))))
            kept = sorted(range(len(score)), key=lambda k: (-score[k], k))[:room]
            self.finalists = [self.finalists[k] for k in kept]
            self._rate(self.finalists[0])

    def fit(self, rejected: bool, go_on: Callable[[], bool] = lambda: True) -> bool:
        """Fit what costs more to learn, if it is due, and propose events anew.

        Parameters
        ----------
        rejected : bool
            As for `learn`.
        go_on : callable
            Asked before each fit and after the last; where it says False, nothing changes.

        Returns
        -------
        bool
            False if ``go_on`` said so.
        """
        if not self.training.due(self._past.held):
            return True
        x, y = self._past.draws()
        before = self.training.features
        if not self.training.fit(x[::2], y[::2], self._past.held, go_on):
            return False
        for feature in before:
            self._past.forget(feature)
        if self.training.features:
            self._learn(rejected)
        return True

    def _race(self, rejected: bool) -> Array:
        """Scores of the finalists by all their draws."""
        x, y = (np.array([getattr(f, side)[f.best] for f in self.finalists]) for side in ("x", "y"))
        return self._score(x, y, np.array([float(f.n) for f in self.finalists]), rejected)[0]

    def _rate(self, best: Proposal) -> None:
        p, q = np.array([best.x[best.best] / best.n]), np.array([best.y[best.best] / best.n])
        self.reach = float(self._pessimistic(p, q, best.n, self.nats + _EXTRA)[0])
        low, _ = _wilson(q, best.n, 1.0)
        _, high = _wilson(p, best.n, 1.0)
        # No less than one draw in all: else an event that was never seen on either side looks hopeful for ever.
        self.hope = float(self.guarantee.level_of(high, np.maximum(low, 1.0 / best.n))[0])

    def _pessimistic(self, p: Array, q: Array, n: Array | float, nats: float) -> Array:
        """Level of (p, q) when each is moved towards the other by half of ``nats``."""
        low, _ = _wilson(p, n, math.sqrt(nats))
        _, high = _wilson(q, n, math.sqrt(nats))
        return self.guarantee.level_of(low, high)

    def _learn(self, rejected: bool) -> None:
        x, y = self._past.draws()
        if self._fixed is None:
            self._fixed = fixed_features(concatenate([x, y]))
            if self.own is not None:
                self.own.check(x)
                self._fixed.append(self.own)
        if len(x) >= RESTRUCTURE * self._structured_at:
            self._structured_at = len(x)
            self._structure = self._structure.joined(structure_of(x, y))
        groups = [group for feature in self._fixed for group in _candidates(feature, *self._past.values(feature))]
        for feature, a, b in self._learned(x, y):
            symbols = isinstance(feature, Rank) and feature.base is None
            penalty = 0.0 if symbols else _PENALTIES.get(type(feature), 0.0)
            groups += [replace(group, penalty=penalty) for group in _candidates(feature, a, b)]
        # Floats of shape (n,) on no coarse lattice.
        fine = near_answers(x, y) if LatticeExponent() in self._fixed else []
        for feature in (*self._structure.features, *fine):
            groups += _candidates(feature, *self._past.values(feature))
        if groups:
            self._select(groups, rejected)

    def _learned(self, x: Batch, y: Batch) -> Iterator[tuple[Feature, Array, Array]]:
        """Features learned on the even draws and their values on the odd ones, so that a noisy fit looks no better.

        Those with two parameters a coordinate or less are learned and judged on all draws: they hardly fit noise, and a
        few dozen draws are too few to halve.
        """
        even_x, even_y, odd_x, odd_y = x[::2], y[::2], x[1::2], y[1::2]
        key_x, key_y = self._past.keys()
        symbols = learn_symbols(even_x, even_y, MOST_SYMBOLS, (key_x[::2], key_y[::2]))
        if symbols is not None:
            yield symbols, symbols.of_keys(key_x[1::2]), symbols.of_keys(key_y[1::2])
        found: list[Feature | None] = []
        quick: Feature | None = None
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.shape[1:] == y.shape[1:]:
            if x.ndim == 2 and x.shape[1] > 1:
                # Transcripts have no centres.
                quick = None if self._structure.features else learn_clipped(x, y)
                found.append(learn_linear(even_x, even_y))
                found.append(learn_additive(even_x, even_y, COORDINATE_CELLS))
            elif x.ndim == 1 and symbols is None and self._fixed:
                quick = learn_marked(x, y)
                found.append(learn_distance(even_x, even_y))
                if len(x) >= 2 * 20 * CELLS:
                    base = self._fixed[0]
                    found.append(learn_histogram(base, base(even_x), base(even_y), CELLS))
            if x.ndim == 1:
                found += learn_lattices(even_x, even_y)
        if quick is not None:
            yield quick, quick(x), quick(y)
        for feature in found:
            if feature is not None:
                yield feature, feature(odd_x), feature(odd_y)
        for feature in self.training.features:
            a, b = self._past.values(feature)
            yield feature, a[1::2], b[1::2]
        for part in self._structure.parts:
            key_x, key_y = self._past.keys(part)
            symbols = learn_symbols(part(even_x), part(even_y), MOST_SYMBOLS, (key_x[::2], key_y[::2]))
            if symbols is not None:
                yield replace(symbols, part=part), symbols.of_keys(key_x[1::2]), symbols.of_keys(key_y[1::2])

    def _score(self, x: Array, y: Array, n: Array, rejected: bool) -> tuple[Array, Array]:
        """Score of events with the given counts, to be maximised, and their growth against the same level."""
        p, q = _shrunken(x, n), _shrunken(y, n)
        growth = divergence_rate(p, q, self.guarantee, self.guarantee.level)
        if not rejected and float((growth * n).max()) >= _NATS:
            return growth, growth
        reach = self._pessimistic(x / n, y / n, n, self.nats + _EXTRA)
        frontier = float(reach.max())
        growth = divergence_rate(p, q, self.guarantee, frontier)
        return np.where(growth > 0, growth, reach - frontier - 1.0), growth

    def _select(self, groups: list[_Candidates], rejected: bool) -> None:
        x = np.concatenate([g.x for g in groups])
        y = np.concatenate([g.y for g in groups])
        n = np.concatenate([np.full(len(g.cuts), g.n) for g in groups]).astype(float)
        penalty = np.concatenate([np.full(len(g.cuts), g.penalty) for g in groups]) / n
        score, growth = self._score(x, y, n, rejected)
        score = np.where(growth > 0, np.maximum(growth - penalty, 1e-300), score)
        sizes = np.cumsum([0, *(len(g.cuts) for g in groups)])
        owner = np.repeat(np.arange(len(groups)), np.diff(sizes))
        p, q = _shrunken(x, n), _shrunken(y, n)
        odds = special.logit(p)
        left, self.finalists = score.copy(), []
        floor = _CLOSE * max(float(score.max()), 0.0)
        while len(self.finalists) < FINALISTS and left.max() > -np.inf and (not self.finalists or left.max() >= floor):
            best = int(np.argmax(left))
            group, first = groups[owner[best]], int(sizes[owner[best]])
            here = slice(first, first + len(group.cuts))
            partner = _partner(p[here], q[here], growth[here], best - first)
            self.finalists.append(_proposal(group, best - first, partner))
            left[(owner == owner[best]) & (np.abs(odds - odds[best]) < _APART)] = -np.inf
        self._rate(self.finalists[0])


def _partner(p: Array, q: Array, growth: Array, best: int) -> int | None:
    """The best event of the same chain on the other side of the diagonal p = 1 - q.

    There the cap has its other slope, so that the two events say different things about the pair.
    """
    other = ((p > 1 - q) != (p[best] > 1 - q[best])) & (growth > 0)
    if growth[best] <= 0 or not other.any():
        return None
    return int(np.argmax(np.where(other, growth, -1.0)))


def _shrunken(count: Array, n: Array | float) -> Array:
    """Estimate of a probability that is never 0 or 1."""
    return (count + _SHRINK) / (n + 2 * _SHRINK)


def _wilson(p: Array, n: Array | float, z: float) -> tuple[Array, Array]:
    """Wilson's interval for a probability: the points z standard errors away."""
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


@lru_cache(maxsize=256)
def _positions(m: int) -> NDArray[np.int64]:
    """Ranks among m sorted draws at which to cut: sixteenths, and a geometric ladder into both tails."""
    middle = (np.arange(1, 16) / 16 * m).astype(np.int64)
    tail = np.concatenate([[0], 2 ** np.arange(1, 12) - 1])
    tail = tail[tail < m // 8]
    return np.unique(np.concatenate([tail, middle, m - 1 - tail]))


def _candidates(feature: Feature, x: Array, y: Array) -> list[_Candidates]:
    """Events of a feature with the given values on draws of each side."""
    a, b = np.sort(x), np.sort(y)  # NaN go last
    valid_a, valid_b = len(a) - int(np.isnan(a).sum()), len(b) - int(np.isnan(b).sum())
    picks = [v[_positions(m)] for v, m in ((a, valid_a), (b, valid_b)) if m > 0]
    if not picks:
        return []
    cuts = np.unique(np.concatenate(picks))
    below_a = np.searchsorted(a[:valid_a], cuts, side="right").astype(float)
    below_b = np.searchsorted(b[:valid_b], cuts, side="right").astype(float)
    return [
        _Candidates(feature, "below", cuts, below_a, below_b, len(a)),
        _Candidates(feature, "above", cuts, valid_a - below_a, valid_b - below_b, len(a)),
    ]


def _proposal(group: _Candidates, best: int, partner: int | None) -> Proposal:
    indices = [best] if partner is None else [best, partner]
    order = sorted(indices, key=lambda k: -group.cuts[k] if group.side == "below" else group.cuts[k])
    cuts = tuple(float(group.cuts[k]) for k in order)
    chain = Chain(group.feature, group.side, cuts)
    return Proposal(chain, order.index(best), group.x[order], group.y[order], group.n)
