"""Event learner: proposes the events to bet on next, from past draws of one pair."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.events.candidates import (
    PREFERRED,
    VAGUE,
    Candidates,
    Prior,
    candidates_of,
    compute_wilson_interval,
    prefer_candidates,
)
from auditor.events.classifier import Learners, Training, fitters_of
from auditor.events.elements import read_once
from auditor.events.feature_detection import WIDE, Survey
from auditor.events.features import (
    MAX_COORDINATES,
    Additive,
    Feature,
    LatticeExponent,
    Linear,
    Numeric,
    Part,
    Rank,
    fixed_features,
)
from auditor.events.fitting import (
    learn_additive,
    learn_distance,
    learn_histogram,
    learn_lattices,
    learn_linear,
    learn_symbols,
)
from auditor.events.float_bits import near_answers
from auditor.events.learners import PENALTIES
from auditor.events.log_likelihood_ratio import OwnRatio
from auditor.events.normal_prior import add_priors
from auditor.events.parametric_features import learn_clipped, learn_marked
from auditor.events.reservoir import Reservoir
from auditor.events.spread_shifts import LEAST_COORDINATES, add_shifts, penalise_others
from auditor.events.structure import Structure, structure_of
from auditor.evidence.power import divergence_rate
from auditor.evidence.two_sample_bet import Stake, find_spread
from auditor.privacy.guarantees import Guarantee
from auditor.targets.outputs import Batch, pool_outputs, read_column, show_output
from auditor.targets.threads import one_thread

Array = NDArray[np.float64]
#: From past draws of each side to the rule that a feature may be bet on.
FindKept: TypeAlias = Callable[[Batch, Batch], Callable[[Feature], bool]]

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
#: One finalist has log-odds of at most this, a probability of 0.05 to 0.95. Of thousands of rare events some had lucky
#: counts, and such could fill the race: two of twelve claims of few coordinates then stayed at 0.7 to 0.9 of what an
#: event of probability 0.5 shows.
_COMMON = 3.0
#: Finalists of one feature differ by at least so much in the log-odds of their probability; arbitrary.
_APART = 1.0
#: Draws a side of which outputs that never vary are said never to vary; arbitrary, those of a fair coin are alike once
#: in 16,000 times.
LEAST_ALIKE = 15
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
_PENALTIES: dict[type, float] = {Rank: 3.0, Linear: 3.0, Additive: 1.5}
#: Events of a chain that a bet is spread over, beside the best ones, and the least part of the best one's growth that
#: one of them has. Chosen by simulation: 15 do no better than 7.
_SPREAD, _GROWTH = 7, 0.3
#: A finalist's score is at least this part of the best one's; arbitrary, others would not catch up.
_CLOSE = 0.4


@dataclass(frozen=True)
class Chain:
    """Nested events of a feature's cuts, outermost first.

    They are {feature <= cut} (side "below") or {feature > cut} ("above").
    """

    feature: Feature
    side: str
    cuts: tuple[float, ...]

    def cells(self, batch: Batch) -> tuple[int, ...]:
        """Count the outputs in exactly the first 0, ..., k events."""
        return self.cells_of(self.feature(batch))

    def cells_of(self, values: Array) -> tuple[int, ...]:
        """Count as `cells` does, from the values of the chain's feature."""
        inside = [len(values), *(int(np.count_nonzero(self._member(values, cut))) for cut in self.cuts), 0]
        return tuple(a - b for a, b in itertools.pairwise(inside))

    def depth(self, values: Array) -> NDArray[np.uint8]:
        """Number of events in which each output lies.

        It is found from the values of the chain's feature.
        """
        depth: NDArray[np.uint8] = np.sum([self._member(values, cut) for cut in self.cuts], axis=0, dtype=np.uint8)
        return depth

    def _member(self, values: Array, cut: float) -> NDArray[np.bool_]:
        return values <= cut if self.side == "below" else values > cut

    def words(self) -> tuple[str, ...]:
        """Each event in words."""
        say = self.feature.below if self.side == "below" else self.feature.above
        return tuple(say(cut) for cut in self.cuts)


@dataclass
class Proposal:
    """A chain with the counts that its estimates rest on.

    Parameters
    ----------
    chain : Chain
        The events.
    best : int
        Index of the best one.
    x, y : ndarray of shape (n_events,)
        How often each happened on either side.
    n : int
        Draws a side.
    few : tuple of int
        Indices of the best event and its partner; by default all are meant.
    prior : Prior
        Estimates before the counts.
    """

    chain: Chain
    best: int
    x: Array
    y: Array
    n: int
    few: tuple[int, ...] = ()
    prior: Prior = VAGUE

    def add(self, x: Sequence[int], y: Sequence[int], n: int) -> None:
        """Count a chunk, by cells.

        Parameters
        ----------
        x, y : sequence of int
            Draws of each side in each cell of the chain, from outside of all events to the innermost.
        n : int
            Draws a side.
        """
        self.x = self.x + np.cumsum(np.asarray(x)[::-1])[::-1][1:]
        self.y = self.y + np.cumsum(np.asarray(y)[::-1])[::-1][1:]
        self.n += n

    def estimates(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Shrunken estimates of the events' probabilities under P and Q."""
        p, q = self.prior.estimate(self.x, self.y, self.n)
        return tuple(p.tolist()), tuple(q.tolist())

    def stake_on(self, number: int, guarantee: Guarantee, unchosen: bool = False) -> Stake:
        """Bet on the chain, without counts.

        Parameters
        ----------
        number : int
            Number of the chain in the record.
        guarantee : Guarantee
            The claim.
        unchosen : bool
            There was no other event to choose, see `Stake.draws`.
        """
        p, q = self.prior.estimate(self.x, self.y, self.n)
        spread = find_spread(p, q, guarantee) if 0 < len(self.few) < len(p) else 0.0
        draws = self.n + self.prior.weight if unchosen else 0.0
        return Stake(number, self.best, tuple(p.tolist()), tuple(q.tolist()), (), (), self.few, spread, draws)


class EventLearner:
    """Proposes events for one pair from a bounded, deterministic reservoir.

    The reservoir holds the first 20,000 draws a side.

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
    find_kept : callable, optional
        From past draws of each side to the rule that a feature may be bet on; by default all may. See
        `auditor.events.ignored_causes.IgnoredCauses`.
    alone : bool
        No other pair is audited together with this one.

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
        find_kept: FindKept | None = None,
        alone: bool = False,
    ) -> None:
        self.guarantee = guarantee
        self.nats = math.log(1 / alpha)
        self.training = Training(fitters_of(extra))
        self.own = own
        self._find_kept = find_kept
        self._alone = alone
        self._unchosen = False  # the pair is alone, and its outputs have two values at most
        self.n = 0
        self.finalists: list[Proposal] = []
        self.reach = 0.0  # pessimistic level of the best event
        self.hope = math.inf  # optimistic level of the same event
        self._shown = -1, 0.0  # draws, and the level that they show
        #: Number of events of the first finalist's chain in which each output of the latest chunk lies, on each side.
        self.depths: tuple[NDArray[np.uint8], NDArray[np.uint8]] = (np.zeros(0, np.uint8), np.zeros(0, np.uint8))
        self._past = Reservoir(RESERVOIR)
        self._learned_at = 0
        self._labels: defaultdict[Part | None, dict[int, str]] = defaultdict(dict)  # symbols in words, by their keys
        self._fixed: list[Feature] | None = None
        self._structure = Structure()
        self._structured_at = 0
        self._survey = Survey()

    @property
    def proposal(self) -> Proposal | None:
        """The finalist to bet on next, the one of highest score."""
        return self.finalists[0] if self.finalists else None

    @property
    def shown(self) -> float:
        """Level of the best event by its shrunken estimates, 0 without one."""
        if self._shown[0] != self.n:
            best, level = self.proposal, 0.0
            if best is not None:
                p, q = best.prior.take(best.best).estimate(best.x[best.best], best.y[best.best], best.n)
                level = float(self.guarantee.level_of(np.atleast_1d(p), np.atleast_1d(q))[0])
            self._shown = self.n, level
        return self._shown[1]

    def stake_on(self, number: int) -> Stake | None:
        """Bet on the proposal, without counts; None without one.

        Parameters
        ----------
        number : int
            Number of its chain in the record.
        """
        found = self.proposal
        return None if found is None else found.stake_on(number, self.guarantee, self._unchosen)

    @property
    def reservoir(self) -> Reservoir:
        """Past draws."""
        return self._past

    def recall(self, n: int, draws: tuple[Batch, Batch] | None, finalists: Sequence[Proposal]) -> None:
        """Take up what an earlier learner of the pair knew.

        It is called before any draw of the learner itself.

        Parameters
        ----------
        n : int
            Draws a side that it had seen.
        draws : tuple of two batches, or None
            Its reservoir, or the beginning of it.
        finalists : sequence of Proposal
            Its events in the race, but for those that hold functions or fitted models: such are learned anew.
        """
        self.n = n
        if draws is not None:
            self._past.add(*draws)
            if self._past.room:
                self._survey.saw(*draws)
            self._learned_at = self._past.held
            self._learn(False)
        if finalists:
            chains = {finalist.chain for finalist in finalists}
            self.finalists = [*finalists, *(f for f in self.finalists if f.chain not in chains)]
            score = self._score_finalists(False)
            order = sorted(range(len(score)), key=lambda k: (-score[k], k))
            self.finalists = [self.finalists[k] for k in order[:FINALISTS]]
            self._rate(self.finalists[0])

    @property
    def never_varies(self) -> bool:
        """Whether each side has one value, and the two differ."""
        if self._past.held < LEAST_ALIKE:
            return False
        x, y = self._past.keys()
        return bool((x == x[0]).all() and (y == y[0]).all() and x[0] != y[0])

    def cancels(self, feature: Feature) -> bool:
        """Whether noise cancels in a difference of coordinates.

        Past draws vary, and yet the difference is one value on each side.
        """
        if not (isinstance(feature, Numeric) and feature.kind in ("difference", "half")) or self.never_varies:
            return False
        return self._past.held >= LEAST_ALIKE and all(len(np.unique(v)) == 1 for v in self._past.values(feature))

    def count(self, x: Batch, y: Batch) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Count the outputs of a chunk in each finalist's cells.

        Of the first finalist, `depths` has the cell of each output.

        Parameters
        ----------
        x, y : ndarray of shape (n,) or (n, d), or list
            As many draws of each side.

        Returns
        -------
        list of tuple
            For each finalist the draws of each side in its cells.
        """
        x, y = read_once(x), read_once(y)
        values = {feature: (feature(x), feature(y)) for feature in {f.chain.feature for f in self.finalists}}
        pairs = [(f.chain, *values[f.chain.feature]) for f in self.finalists]
        if pairs:
            chain, a, b = pairs[0]
            self.depths = chain.depth(a), chain.depth(b)
        return [(chain.cells_of(a), chain.cells_of(b)) for chain, a, b in pairs]

    def add(self, x: Batch, y: Batch, counts: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        """Take in a chunk of draws and its counts in cells.

        Parameters
        ----------
        x, y : ndarray of shape (n,) or (n, d), or list
            As many draws of each side.
        counts : sequence of tuple
            What `count` returned for them.
        """
        n = len(x)
        self.n += n
        self._past.add(x, y)
        if self._past.room:
            self._survey.saw(x, y)
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
        full = not self._past.room and self._past.held > self._learned_at
        if full or self._past.held > factor * self._learned_at:
            self._learned_at = self._past.held
            self._learn(rejected)
        elif self.finalists:
            if len(self.finalists) > 1:
                score = self._score_finalists(rejected)
                # At each doubling of the draws past the reservoir the worst one goes, so that late draws cost little.
                room = max(1, FINALISTS - int(math.log2(max(self.n / RESERVOIR, 1.0))))
                kept = sorted(range(len(score)), key=lambda k: (-score[k], k))[:room]
                self.finalists = [self.finalists[k] for k in kept]
            self._rate(self.finalists[0])

    def fit(self, rejected: bool, go_on: Callable[[], bool] = lambda: True) -> bool:
        """Fit costly features if it is due, and propose events.

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

    def _score_finalists(self, rejected: bool) -> Array:
        """Scores of the finalists by all their draws."""
        x, y, n = np.array([(f.x[f.best], f.y[f.best], float(f.n)) for f in self.finalists]).T
        priors = [f.prior.take(f.best) for f in self.finalists]
        p, q = np.array([prior.estimate(*draws) for prior, *draws in zip(priors, x, y, n, strict=True)]).T
        return self._score(x, y, n, p, q, rejected)[0]

    def _rate(self, best: Proposal) -> None:
        shares = np.array([best.x[best.best] / best.n, best.y[best.best] / best.n])
        lows, highs = compute_wilson_interval(shares, best.n, math.sqrt(self.nats + _EXTRA))
        low, high = compute_wilson_interval(shares, best.n, 1.0)
        self.reach = float(self.guarantee.level_of(lows[:1], highs[1:])[0])
        # No less than one draw in all: else an event that was never seen on either side looks hopeful for ever, and so
        # does one that was always seen on both.
        rare = np.maximum(low[1:], 1.0 / best.n)
        self.hope = 0.0 if (shares == 1.0).all() else float(self.guarantee.level_of(high[:1], rare)[0])

    def _pessimistic_level(self, p: Array, q: Array, n: Array | float, nats: float) -> Array:
        """Level of (p, q) when each is moved towards the other by half of ``nats``."""
        low, high = compute_wilson_interval(np.array([p, q]), n, math.sqrt(nats))
        return self.guarantee.level_of(low[0], high[1])

    def _learn(self, rejected: bool) -> None:
        x, y = self._past.draws()
        # Matrices of long outputs; small ones are not worth a second thread anyway.
        long = isinstance(x, np.ndarray) and x.ndim == 2 and x.shape[1] > MAX_COORDINATES
        with one_thread() if long else nullcontext():
            self._propose(x, y, rejected)

    def _propose(self, x: Batch, y: Batch, rejected: bool) -> None:
        if self._fixed is None:
            self._fixed = fixed_features(pool_outputs(x, y))
            if self.own is not None:
                self.own.check(x)
                self._fixed.append(self.own)
        if len(x) >= RESTRUCTURE * self._structured_at:
            self._structured_at = len(x)
            self._structure = self._structure.joined(structure_of(x, y))
        self._unchosen = self._alone and _have_two_values(*self._past.keys())
        self._survey.look(self._past)
        keeps = _keep_all if self._find_kept is None else self._find_kept(x, y)
        groups: list[Candidates] = []
        for feature in filter(keeps, self._fixed):
            groups += candidates_of(feature, *self._past.values(feature))
        for feature, a, b in self._learned_features(x, y, keeps):
            symbols = isinstance(feature, Rank) and feature.base is None
            penalty = 0.0 if symbols else _PENALTIES.get(type(feature), 0.0)
            groups += [replace(group, penalty=penalty) for group in candidates_of(feature, a, b)]
        # Floats of shape (n,) on no coarse lattice.
        fine = near_answers(read_column(x), read_column(y)) if LatticeExponent() in self._fixed else []
        for feature in filter(keeps, dict.fromkeys((*self._structure.features, *fine))):
            groups += candidates_of(feature, *self._past.values(feature))
        for feature in filter(keeps, dict.fromkeys(self._survey.features)):
            groups += _weigh_candidates(feature, candidates_of(feature, *self._past.values(feature)))
        for feature in filter(keeps, dict.fromkeys(self._survey.chosen)):
            a, b = self._past.values(feature)
            groups += _weigh_candidates(feature, candidates_of(feature, a[1::2], b[1::2]))
        ranks = [group.feature for group in groups if isinstance(group.feature, Rank)]
        symbols = any(rank.base is None and rank.part is None for rank in ranks)
        rows = isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.ndim == 2 and x.shape[1:] == y.shape[1:]
        # Transcripts have no centres, and of rows that repeat symbols say all that there is to say.
        if rows and np.shape(x)[1] <= WIDE and not (symbols or self._structure.features):
            groups = add_shifts(x, y, groups)
        if groups:
            self._select(add_priors(x, y, groups), rejected)

    def _learned_features(
        self, x: Batch, y: Batch, keeps: Callable[[Feature], bool]
    ) -> Iterator[tuple[Feature, Array, Array]]:
        """Features learned on the even draws and their values on the odd ones, so that a noisy fit looks no better.

        Those with two parameters a coordinate or less are learned and judged on all draws: they hardly fit noise, and a
        few dozen draws are too few to halve.
        """
        even_x, even_y, odd_x, odd_y = x[::2], y[::2], x[1::2], y[1::2]
        key_x, key_y = self._past.keys()
        known = (key_x[::2], key_y[::2])
        symbols = learn_symbols(even_x, even_y, MOST_SYMBOLS, known, labels=self._labels[None])
        if symbols is not None and keeps(symbols):
            yield symbols, symbols.of_keys(key_x[1::2]), symbols.of_keys(key_y[1::2])
        found: list[Feature | None] = []
        quick: list[Feature | None] = []
        plain = isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.shape[1:] == y.shape[1:]
        if isinstance(x, np.ndarray) and plain and x.ndim == 2:
            d = x.shape[1]
            if d > WIDE:
                found.append(_of_columns(even_x, even_y, self._survey.columns))
            elif d > 1:
                # Transcripts have no centres. The centres of many coordinates fit few draws, see `spread_shifts`.
                few = d < LEAST_COORDINATES or symbols is not None
                if not self._structure.features and (few or len(x) >= LATE):
                    quick, late = ([learn_clipped(x, y)], []) if few else ([], [learn_clipped(even_x, even_y)])
                    found += late
                found.append(learn_linear(even_x, even_y))
                found.append(learn_additive(even_x, even_y, COORDINATE_CELLS))
        elif plain or self._survey.numbers is not None:
            base = self._survey.numbers or (self._fixed[0] if self._fixed else None)
            if symbols is None and base is not None:
                quick = [learn_marked(x, y), learn_distance(x, y)]
                if len(x) >= 2 * 20 * CELLS:
                    found.append(learn_histogram(base, base(even_x), base(even_y), CELLS))
            found += learn_lattices(even_x, even_y)
        for feature in quick:
            if feature is not None and keeps(feature):
                yield feature, feature(x), feature(y)
        for feature in found:
            if feature is not None and keeps(feature):
                yield feature, feature(odd_x), feature(odd_y)
        for feature in filter(keeps, self.training.features):
            a, b = self._past.values(feature)
            yield feature, a[1::2], b[1::2]
        for part in (*self._structure.parts, *self._survey.parts):
            if not keeps(Rank(None, (), (), (), part)):
                continue
            key_x, key_y = self._past.keys(part)
            label = getattr(part, "label", show_output)
            known = (key_x[::2], key_y[::2])
            symbols = learn_symbols(even_x, even_y, MOST_SYMBOLS, known, label, part, self._labels[part])
            if symbols is not None:
                yield replace(symbols, part=part), symbols.of_keys(key_x[1::2]), symbols.of_keys(key_y[1::2])

    def _score(self, x: Array, y: Array, n: Array, p: Array, q: Array, rejected: bool) -> tuple[Array, Array]:
        """Score of events by their counts and estimates, to be maximised, and their growth against the same level."""
        growth = divergence_rate(p, q, self.guarantee, self.guarantee.level)
        if not rejected and float((growth * n).max()) >= _NATS:
            return growth, growth
        reach = self._pessimistic_level(x / n, y / n, n, self.nats + _EXTRA)
        frontier = float(reach.max())
        growth = divergence_rate(p, q, self.guarantee, frontier)
        return np.where(growth > 0, growth, reach - frontier - 1.0), growth

    def _select(self, groups: list[Candidates], rejected: bool) -> None:
        x = np.concatenate([g.x for g in groups])
        y = np.concatenate([g.y for g in groups])
        counts = np.array([len(g.cuts) for g in groups])
        n = np.repeat([float(g.n) for g in groups], counts)
        estimates = [group.prior.estimate(group.x, group.y, group.n) for group in groups]
        p, q = (np.concatenate(side) for side in zip(*estimates, strict=True))
        score, growth = self._score(x, y, n, p, q, rejected)
        further = penalise_others(groups, growth * n)
        penalty = np.repeat([g.penalty + more for g, more in zip(groups, further, strict=True)], counts) / n
        # What is preferred is so where it has gained much, not where it has gained little and may be luck.
        penalty = np.maximum(penalty, -PREFERRED * growth)
        score = np.where(growth > 0, np.maximum(growth - penalty, 1e-300), score)
        ends = np.cumsum(counts)
        odds = special.logit(p)
        left, self.finalists = score.copy(), []
        floor = _CLOSE * max(float(score.max()), 0.0)
        common, found = np.abs(odds) <= _COMMON, False
        while len(self.finalists) < FINALISTS and (top := left.max()) > -np.inf:
            close = not self.finalists or top >= floor
            if not found and (not close or len(self.finalists) == FINALISTS - 1) and (left[common] > -np.inf).any():
                left = np.where(common, left, -np.inf)
            elif not close:
                break
            best = int(np.argmax(left))
            found = found or bool(common[best])
            owner = int(ends.searchsorted(best, side="right"))
            group, first = groups[owner], int(ends[owner] - counts[owner])
            here = slice(first, first + len(group.cuts))
            partner = _partner(p[here], q[here], growth[here], best - first)
            events = [best - first] if partner is None else [best - first, partner]
            spread = not self.finalists and n[best] < LATE
            others = _choose_spread(odds[here], growth[here], best - first) if spread else set()
            self.finalists.append(_proposal(group, events, others))
            left[here][np.abs(odds[here] - odds[best]) < _APART] = -np.inf
        self._rate(self.finalists[0])


def _weigh_candidates(feature: Feature, groups: list[Candidates]) -> list[Candidates]:
    """Events of the survey: preferred to others, unless their feature was learned and has a penalty."""
    penalty = PENALTIES.get(type(feature))
    return prefer_candidates(groups) if penalty is None else [replace(one, penalty=penalty) for one in groups]


def _have_two_values(x: NDArray[np.int64], y: NDArray[np.int64]) -> bool:
    """Whether there are no more than two distinct numbers."""
    both = np.concatenate([x, y])
    others = both[both != both[0]]
    return bool((others == others[:1]).all())


def _keep_all(feature: Feature) -> bool:
    del feature
    return True


def _of_columns(x: Batch, y: Batch, columns: tuple[int, ...]) -> Linear | None:
    """A linear score of some coordinates of long rows."""
    if not columns:
        return None
    a, b = (np.asarray(side)[:, list(columns)] for side in (x, y))
    found = learn_linear(a, b)
    return None if found is None else replace(found, columns=columns, width=np.shape(x)[1])


def _partner(p: Array, q: Array, growth: Array, best: int) -> int | None:
    """The best event of the same chain on the other side of the diagonal p = 1 - q.

    There the cap has its other slope, so that the two events say different things about the pair.
    """
    other = ((p > 1 - q) != (p[best] > 1 - q[best])) & (growth > 0)
    if growth[best] <= 0 or not other.any():
        return None
    return int(np.argmax(np.where(other, growth, -1.0)))


def _choose_spread(odds: Array, growth: Array, best: int) -> set[int]:
    """Events evenly spaced in log-odds, of those that grow at a part of the best one's rate."""
    if growth[best] <= 0:
        return set()
    good = np.flatnonzero(growth >= _GROWTH * growth[best])
    wanted = np.linspace(odds[good].min(), odds[good].max(), _SPREAD)
    return set(good[np.abs(odds[good] - wanted[:, None]).argmin(axis=1)].tolist())


def _proposal(group: Candidates, few: list[int], others: set[int]) -> Proposal:
    """Chain of the best event, which comes first in ``few``, its partner if it has one, and others."""
    sign = -1.0 if group.side == "below" else 1.0
    order = sorted({*few, *others}, key=lambda k: sign * group.cuts[k])
    chain = Chain(group.feature, group.side, tuple(group.cuts[order].tolist()))
    indices = tuple(sorted(order.index(k) for k in few))
    prior = group.prior.take(order)
    return Proposal(chain, order.index(few[0]), group.x[order], group.y[order], group.n, indices, prior)
