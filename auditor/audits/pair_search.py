"""Choice of the pair to draw from next, and search for pairs of a strategy that are worth an audit."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from auditor.datasets import Pair, Relation
from auditor.datasets.crafted_pairs import hash_dataset
from auditor.datasets.strategies import is_strategy
from auditor.errors import (
    SpecificationError,
    TargetError,
    TargetRaised,
    check_alpha,
    check_positive,
    require_library,
)
from auditor.events.cause_kinds import read_kinds
from auditor.events.event_learner import RESERVOIR, EventLearner, FindKept
from auditor.events.ignored_causes import find_kept_without
from auditor.events.log_likelihood_ratio import own_ratio
from auditor.privacy.guarantees import Guarantee
from auditor.targets import Mechanism
from auditor.targets.outputs import Batch
from auditor.targets.process_settings import keep_apart
from auditor.targets.sampler import Sampler, make_generator

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: Pairs that the draws of a search are meant for, if they suffice for the smallest pilot; arbitrary.
PAIRS = 250
#: Draws a side on each pair. 100 show an event that the claim forbids altogether, and place a threshold; beyond 2,000
#: another pair is worth more than a better look at this one.
SMALLEST, LARGEST = 100, 2_000
#: Least budget of a search: one pair, both sides.
LEAST = 2 * SMALLEST
#: Part of the draws that looks at new pairs; the rest compares the best of them on draws of their own.
EXPLORED = 0.75
#: Runs of hypothesis at most; arbitrary. Each ends after as many examples as pairs can be afforded, but small datasets
#: come more than once and cost no draws then.
ROUNDS = 8
#: Pairs that are compared, for each that is kept; arbitrary.
COMPARED = 4
#: With so many pairs all are looked at before any is drawn from again; with more, they are opened one by one.
AT_ONCE = 30
#: Draws a side of a first chunk where there are more than `AT_ONCE` pairs in no order of promise; chosen by simulation
#: on seeds from 71,000 on. With `auditor.audits.privacy_loop.FIRST` level 2 on one of 200 takes 1.2 times the draws.
FIRST_OF_MANY = 5
#: Part of the draws that opens pairs where there are many, whatever the open ones show; chosen by simulation. With half
#: of it a defect at a random place took nearly twice the draws.
OPENING = 0.25
#: The same part while no open pair shows a level halfway to the one that is to be found, where pairs are in no order of
#: promise. A pair that keeps its claim and was lucky shows it after one of four first chunks, and no longer some ten
#: draws a side later. Chosen by simulation on seeds from 71,000 on; on seeds from 73,000 on level 2 or a leak of
#: probability 0.5 anywhere on 200 pairs takes 0.5 times the draws that it takes without, one of probability 0.1 as
#: many, and on the first pair 1.6 times. With this part whatever the open ones show, lucky ones came up faster than
#: they were dismissed: 3,000 draws found 5 of 12 outright leaks on the first 40 of 200 pairs.
OPENING_EARLY = 0.5
#: Where there are many pairs, the open one with the fewest draws is next if it has less than this part of the mean, so
#: that none is given up because its first draws were unlucky. Without it 200,000 draws found 11 of 16 leaks of
#: probability 0.1 on one of 200 pairs, with it all of them.
EVEN = 0.5
#: Largest part of the draws that go to one of many pairs at last, see `LastDraws`.
LAST = 0.25
#: Largest chunk of a pair, as a part of its draws before, see `auditor.audits.privacy_loop.CHUNKS`.
CHUNK = 0.25
#: The same part where there are up to `AT_ONCE` pairs, most of which were chosen because each shows something. With so
#: many draws a side a pair has shown what it can; more would be taken from the best one, on which resolution and lower
#: bound rest. Chosen by simulation with a leak of probability 0.1 on one of 20 pairs that keep their claim exactly:
#: without it 28 of 30 audits of 200,000 draws found the leak, with it all.
EVEN_OF_FEW, SHOWN = 0.1, 300
#: Draws, both sides, for which one of many pairs is opened: 8 a side are a part `OPENING` of them.
EACH = 64
#: An output is exclusive if only one dataset of one pair gives it. A pair is drawn from for that if it has given one in
#: this many draws more than any other pair. Chosen by simulation on seeds from 55,000 on, as are the next ones: with 1,
#: a defect that shows no such output took 1.2 times as many draws on one of 200 pairs.
APART = 2
#: Part of the draws that go to such pairs. Where every pair has exclusive outputs, one is often ahead by chance: level
#: 2 on one of 200 pairs then takes 1.4 times as many draws (geometric means of 24 audits on seeds from 60,000 on).
EXCLUSIVE = 0.25
#: Fewest pairs that are compared, draws a side of each pair that are looked at, and the growth of all draws after which
#: they are looked at again. Arbitrary, the latter two for time.
BESIDE, LOOKED_AT, LOOK_AGAIN = 8, 512, 1.1
#: Fewest pairs that are compared where there are up to `AT_ONCE`, and draws a side with which such a pair has no more
#: for that: it has shown what it can, and resolution rests on the pair with most draws. Chosen by simulation on seeds
#: from 64,000 on. With 2 pairs a leak of probability 0.1 takes 0.8 times as many draws as without, level 2 takes 1.1
#: times; with 3 it is 0.6 and 1.0. With 1,000 draws a side a leak of probability 0.01 on one of 20 takes twice as many
#: as with 4,000.
BESIDE_OF_FEW, SHOWN_APART = 3, 4_000


class ExclusiveOutputs:
    """Outputs that only one dataset of one pair gives.

    A code for an error, say, or a value that only one row makes possible. It takes far fewer draws to see that no other
    pair gives it than to see, on the pair alone, that its two probabilities differ by more than the claim allows.

    Attributes
    ----------
    spent : int
        Draws a side that pairs had because of such outputs.

    Notes
    -----
    Nothing here bears on validity, see `next_pair`.
    """

    def __init__(self) -> None:
        self.spent = 0
        self._given: tuple[int, int] | None = None  # the pair that had the latest draws so, and its draws before them
        self._found: int | None = None
        self._looked_at = 0

    def next_pair(self, learners: Sequence[EventLearner], most: float = math.inf) -> int | None:
        """Give the index of a pair with an exclusive output.

        None while there is none, or where such pairs have had their part of the draws.

        Parameters
        ----------
        learners : sequence of EventLearner
            Those of the pairs that have been drawn from.
        most : float
            Draws a side from which on a pair is not given.
        """
        if self._given is not None:
            k, before = self._given
            self.spent, self._given = self.spent + learners[k].n - before, None
        total = sum(learner.n for learner in learners)
        if total >= LOOK_AGAIN * self._looked_at:
            self._found, self._looked_at = _find_exclusive(learners), total
        if self._found is None or self.spent >= EXCLUSIVE * total or learners[self._found].n >= most:
            return None
        self._given = self._found, learners[self._found].n
        return self._found


def _find_exclusive(learners: Sequence[EventLearner]) -> int | None:
    """Index of the pair with the most frequent exclusive output, by `APART` at least; None if there is none."""
    sides = [keys[:LOOKED_AT] for keys in chain.from_iterable(learner.reservoir.keys() for learner in learners)]
    side = np.repeat(np.arange(len(sides)), [len(keys) for keys in sides])
    _, output, times = np.unique(np.concatenate(sides), return_inverse=True, return_counts=True)
    first, last = np.full(len(times), len(sides)), np.full(len(times), -1)
    np.minimum.at(first, output, side)
    np.maximum.at(last, output, side)
    most = np.zeros(len(learners), dtype=np.int64)
    alone = first == last
    np.maximum.at(most, first[alone] // 2, times[alone])
    found = int(most.argmax())
    return found if most[found] - np.delete(most, found).max(initial=0) >= APART else None


class LastDraws:
    """The last draws of a budget, which one pair of many takes.

    Pairs that are equally hopeful share the draws, so that none of them has what a pass needs. The pair with most draws
    takes all that are left as soon as it needs them: it is the most promising one, and the one that resolution is
    stated for. None does so where it lacks more than the part `LAST` of the budget.

    Parameters
    ----------
    budget : int
        Draws a side.
    needed : callable
        Draws a side that a pass needs, from the numbers of an output, see `auditor.evidence.power.draws_to_resolve`.

    Notes
    -----
    Valid because: it is a choice of pairs by past draws, see `next_pair`.
    """

    def __init__(self, budget: int, needed: Callable[[int], float]) -> None:
        self.most = LAST * budget
        self.needed = needed
        self._pair: int | None = None

    def next_pair(self, learners: Sequence[EventLearner], left: int, chosen: int) -> int:
        """Give the index of the pair that takes the last draws.

        Before that it is ``chosen``.

        Parameters
        ----------
        learners : sequence of EventLearner
            One for each pair.
        left : int
            Draws a side that are left.
        chosen : int
            Index of the pair that is next otherwise.
        """
        if self._pair is None and left <= self.most:
            k = max(range(len(learners)), key=lambda k: (learners[k].n, -k))
            lacking = self.needed(learners[k].reservoir.width) - learners[k].n
            if 0 < lacking <= left <= lacking + CHUNK * learners[k].n:
                self._pair = k
        return chosen if self._pair is None else self._pair


def next_pair(
    learners: Sequence[EventLearner],
    first: int,
    even: bool = False,
    exclusive: ExclusiveOutputs | None = None,
    promising: float = math.inf,
) -> int:
    """Index of the next pair, a function of past draws.

    Up to `AT_ONCE` pairs are drawn from once each, then the one whose best event may show the highest level. "May show"
    is optimistic: the level of the best event with its counts moved one standard error in its favour. So a pair with
    few draws is tried again until it is clear that it shows less.

    More pairs are opened in their order, with a part `OPENING` of the draws, so that the first ones have their verdict
    early if they are the most promising, and the number of the others costs nothing then. Unless ``even``, it is a part
    `OPENING_EARLY` while no open pair shows a level of ``promising``, and pairs that do are drawn from before all
    others until they no longer do. No pair is left behind the others by more than `EVEN` and `EVEN_OF_FEW` say: its
    first draws may have been unlucky, so that its best event says nothing of it. Before all that, where enough pairs
    are open, a part `EXCLUSIVE` of the draws goes to a pair with an output that only one of its datasets gives, see
    `ExclusiveOutputs`.

    Parameters
    ----------
    learners : sequence of EventLearner
        One for each pair.
    first : int
        Draws a side of a pair's first chunk.
    even : bool
        The pairs are in the order of their promise; treat few as many.
    exclusive : ExclusiveOutputs, optional
        Finds which pair has them, the same for all calls of an audit; by default none has any.
    promising : float
        Level that a pair may have to show before others are opened; by default none shows it.

    Notes
    -----
    Valid because: the choice is a function of past draws, and the chunks of all pairs are factors of one
    supermartingale, so it needs no correction for the number of pairs.
    """
    many = len(learners) > AT_ONCE or even
    opened = next((k for k, learner in enumerate(learners) if learner.n < first), len(learners))
    if opened < len(learners) and not many:
        return opened
    if exclusive is not None and opened >= (BESIDE if many else BESIDE_OF_FEW):
        found = exclusive.next_pair(learners[:opened], math.inf if many else SHOWN_APART)
        if found is not None:
            return found
    if not many:
        return _among_opened(learners, opened, EVEN_OF_FEW, SHOWN)
    if opened < len(learners):
        part = opened * first / max(sum(learner.n for learner in learners), 1)
        shown = [] if even else [k for k in range(opened) if learners[k].shown >= promising]
        if part <= (OPENING if shown or even else OPENING_EARLY):
            return opened
        if shown:
            return _most_hopeful(learners, shown)
    return _among_opened(learners, opened, EVEN)


def _among_opened(learners: Sequence[EventLearner], opened: int, even: float, most: float = math.inf) -> int:
    """The pair that is left behind, or else the most hopeful one, of the first ``opened``.

    With ``most`` draws a side or more a pair is not left behind.
    """
    fewest = min(range(opened), key=lambda k: (learners[k].n, k))
    n = learners[fewest].n
    if n < most and n * opened < even * sum(learner.n for learner in learners):
        return fewest
    return _most_hopeful(learners, range(opened))


def _most_hopeful(learners: Sequence[EventLearner], among: Iterable[int]) -> int:
    # Of equally hopeful pairs the one with fewer draws.
    return max(among, key=lambda k: (learners[k].hope, -learners[k].n, -k))


def keep_affordable(pairs: Sequence[Pair], draws: int) -> list[Pair]:
    """Cut a list of pairs to those within a budget.

    The most promising come first.

    Parameters
    ----------
    pairs : sequence of Pair
        In the order in which they are to be looked at.
    draws : int
        Budget in outputs, both sides together, without what goes to tests of independence.

    Returns
    -------
    list of Pair
        The first ones, at least one: one for every `EACH` draws.

    Notes
    -----
    Of many pairs `next_pair` opens one for every `EACH` draws. Those beyond would not be drawn from, but would stand in
    the report as if they had; a shorter list would leave out pairs that can be looked at, and the first ones, which
    have their draws first, would gain nothing. A target of 20 milliseconds a draw that may take a minute has some 2,000
    draws beside those of the tests of independence, which look at 31 pairs; all 200 of `hard_pairs` need 12,800.
    """
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
        raise SpecificationError(f"draws must be an integer of at least 1, got {draws!r}")
    return list(pairs[: max(1, int(draws) // EACH)])


@keep_apart()
def search_pairs(
    mechanism: Mechanism,
    guarantee: Guarantee,
    strategy: SearchStrategy[Pair],
    *,
    draws: int,
    seed: int = 0,
    keep: int = 5,
    seconds: float | None = None,
    alpha: float = 0.01,
    relation: Relation | None = None,
    limit: float | None = 60.0,
    id: str = "search",  # noqa: A002 - it is the audit's id
    ignore: str | Sequence[str] = (),
) -> list[Pair]:
    """Find pairs on which a mechanism may break its claim.

    They are audited on other draws.

    hypothesis proposes pairs, at first at random, then towards higher scores. The score of a pair is the level of its
    best event on a few draws, pessimistic by what an alarm at ``alpha`` needs. The best pairs are then compared on
    draws of their own, so that luck on the first ones does not decide.

    Parameters
    ----------
    mechanism, guarantee
        As for `audit`.
    strategy : SearchStrategy of Pair
        See `auditor.pairs_of`.
    draws : int
        Budget in outputs, both sides together.
    seed : int
        Same seed, same pairs, for one version of Python and of hypothesis.
    keep : int
        Pairs to return at most.
    seconds : float, optional
        Budget in seconds; the pairs then depend on the machine's speed.
    alpha : float
        Probability of a false alarm of the audit to come.
    relation : Relation, optional
        If given, every pair is checked against it.
    limit : float, optional
        Seconds that one call of the mechanism may take.
    id : str
        The audit's id; it keys the draws.
    ignore : str or sequence of str
        Kinds of causes that are left out, as of the audit to come.

    Returns
    -------
    list of Pair
        The most promising first, all different. What the mechanism's code raises is an output. The search ends at once
        where it crashes, hangs or answers what cannot be read: that pair comes first, so that an audit reports it.

    Raises
    ------
    SpecificationError
        If an argument is not what it must be, or the strategy gives no pairs, or one that is none.

    Notes
    -----
    Valid because: the draws here are keyed by "search", no draws of an audit are. So given the datasets, the audit's
    draws are independent of the pairs that were found, as of any pairs that were fixed beforehand, and its alarm has
    probability at most alpha whatever the search did: it draws from copies, so that a target cannot change a pair
    that is audited. Nothing here is itself evidence. A target that reads entropy from elsewhere is not reproducible by
    the seed; its draws in the audit are new ones all the same.
    """
    if not is_strategy(strategy):
        raise SpecificationError(f"strategy must be a hypothesis strategy of Pair, got {strategy!r}")
    for name, value, least in (("draws", draws, LEAST), ("keep", keep, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise SpecificationError(f"{name} must be an integer of at least {least}, got {value!r}")
    check_alpha(alpha)
    end = math.inf if seconds is None else time.monotonic() + check_positive("seconds", seconds)
    sampler, find_kept = Sampler(mechanism, seed, id, limit, catching=True), find_kept_without(read_kinds(ignore))
    trials = _Trials(sampler, guarantee, alpha, int(draws), relation, end, find_kept)
    with _same_in_every_process():
        for k in range(ROUNDS):
            before = len(trials.pairs)
            _explore(strategy, trials, int(make_generator(seed, id, "search", "strategy", k).integers(2**63)))
            if trials.full or len(trials.pairs) == before:
                break
    best = trials.compare(COMPARED * keep) if trials.failed is None else trials.failed_first()
    return [replace(pair, name=f"found {k + 1}: {pair.name}") for k, pair in enumerate(best[:keep])]


class _SearchFinished(BaseException):
    """The search is at its end. No Exception, so that hypothesis does not take it for a failed test to be replayed."""


@dataclass
class _Trials:
    """Pairs that were tried, and the draws that are left."""

    sampler: Sampler
    guarantee: Guarantee
    alpha: float
    draws: int
    relation: Relation | None
    end: float
    find_kept: FindKept | None = None
    pairs: list[Pair] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    failed: Pair | None = None
    used: int = 0
    _known: dict[Any, float] = field(default_factory=dict)

    @property
    def pilot(self) -> int:
        """Draws a side on each pair."""
        return min(max(SMALLEST, self.draws // (2 * PAIRS)), LARGEST)

    @property
    def explored(self) -> int:
        """Draws for new pairs; all where there would be but one."""
        return max(int(EXPLORED * self.draws), 2 * self.pilot)

    @property
    def full(self) -> bool:
        """Whether no other new pair can be looked at.

        There is no time, or are no draws; or a failure ended the search.
        """
        late = bool(self.pairs) and time.monotonic() > self.end
        return late or self.failed is not None or self.used + 2 * self.pilot > self.explored

    def score(self, pair: Pair) -> float:
        """Score of a pair, from draws if it is a new one."""
        if not isinstance(pair, Pair):
            raise SpecificationError(f"the strategy must give a Pair, got {pair!r}")
        if self.relation is not None:
            self.relation.check(pair)
        key = (hash_dataset(pair.x), hash_dataset(pair.y))
        if key in self._known:
            return self._known[key]
        if self.full:
            raise _SearchFinished
        try:
            found = self._score_pair(pair, self.pilot, "new", len(self.pairs))
        except TargetError:
            self.failed = pair
            raise _SearchFinished from None
        self.pairs.append(pair)
        self.scores.append(found)
        self._known[key] = found
        return found

    def _score_pair(self, pair: Pair, n: int, *key: str | int) -> float:
        """Pessimistic level of the best event on n draws a side."""
        of_x, of_y = _copy_dataset(pair.x), _copy_dataset(pair.y)
        own = own_ratio(self.sampler, of_x, of_y)
        learner = EventLearner(self.guarantee, self.alpha, own=own, find_kept=self.find_kept)
        x = self._draw(of_x, n, *key, "x")
        y = self._draw(of_y, n, *key, "y")
        self.used += 2 * n
        learner.add(x, y, learner.count(x, y))
        learner.learn(False)
        # hypothesis wants finite scores.
        return min(max(0.0, learner.reach), sys.float_info.max)

    def _draw(self, data: Any, n: int, *key: str | int) -> Batch:
        """Draws of the search; one a call where a call for all of them raised, so that exceptions are outputs."""
        try:
            return self.sampler.draw(data, n, "search", *key)
        except TargetRaised:
            return self.sampler.alone().draw(data, n, "search", *key, "alone")

    def compare(self, most: int) -> list[Pair]:
        """Compare the best pairs on the remaining draws.

        The best come first.
        """
        order = sorted(range(len(self.pairs)), key=lambda k: (-self.scores[k], k))[:most]
        n = min((self.draws - self.used) // (2 * max(len(order), 1)), RESERVOIR)
        if n < self.pilot or time.monotonic() > self.end:
            return [self.pairs[k] for k in order]
        again: dict[int, float] = {}
        for k in order:
            try:
                again[k] = self._score_pair(self.pairs[k], n, "again", k)
            except TargetError:
                self.failed = self.pairs[k]
                return self.failed_first()
        return [self.pairs[k] for k in sorted(order, key=lambda k: (-again[k], k))]

    def failed_first(self) -> list[Pair]:
        """The pair on which the mechanism failed, then others."""
        order = sorted(range(len(self.pairs)), key=lambda k: (-self.scores[k], k))
        found = [self.pairs[k] for k in order if self.pairs[k] is not self.failed]
        return found if self.failed is None else [self.failed, *found]


def _copy_dataset(data: Any) -> Any:
    """A copy to draw from; the dataset itself, if its class has none.

    A target that changes its data, as by emptying a list, would else leave two equal datasets to the audit, on which it
    is right whatever it did, or two that are no neighbours.
    """
    try:
        return deepcopy(data)
    except Exception:  # noqa: BLE001 - of a class of somebody else's
        return data


def _explore(strategy: SearchStrategy[Pair], trials: _Trials, seed: int) -> None:
    """Try the pairs that hypothesis proposes, until the draws for new pairs are used."""
    require_library("hypothesis", "the search for pairs")
    import hypothesis
    from hypothesis import HealthCheck, Phase, Verbosity

    # Health checks are about tests; here a slow or much filtered strategy costs time and no more. All that a profile
    # could set otherwise is set.
    options = hypothesis.settings(
        max_examples=max(1, (trials.explored - trials.used) // (2 * trials.pilot)),
        phases=(Phase.generate, Phase.target),
        database=None,
        deadline=None,
        derandomize=False,
        backend="hypothesis",
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
    )

    @hypothesis.seed(seed)
    @options
    @hypothesis.given(strategy)
    def attempt(pair: Pair) -> None:
        hypothesis.target(trials.score(pair))

    try:
        attempt()
    except _SearchFinished:
        pass
    except hypothesis.errors.Unsatisfiable as error:
        if trials.pairs:  # a much filtered strategy may give none in a later round
            return
        raise SpecificationError(f"the strategy {strategy!r} gives no pair: {error}") from error


@contextmanager
def _same_in_every_process() -> Iterator[None]:
    """Keep hypothesis from using constants of the modules that happen to be loaded.

    It mixes the numbers and texts of the source files in use into what it generates, so that the pairs would depend on
    what else the process has imported. There is no option against it. Where the names below are missing, as they may be
    in other versions, nothing is changed, and the pairs are valid ones all the same.
    """
    providers = sys.modules.get("hypothesis.internal.conjecture.providers")
    names = ("_get_local_constants", "CONSTANTS_CACHE")
    if providers is None or not all(hasattr(providers, name) for name in (*names, "GLOBAL_CONSTANTS")):
        yield
        return
    before = [getattr(providers, name) for name in names]
    nothing = type(providers.GLOBAL_CONSTANTS)()
    changed = [lambda: nothing, type(before[1])(before[1].max_size)]
    try:
        for name, value in zip(names, changed, strict=True):
            setattr(providers, name, value)
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(providers, name, value)
