"""Document 002, section 3.1: the compression version of Occam's razor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, accuracy, broken, conformity, entry, expectation, inequality, privacy
from auditor.datasets import Pair
from auditor.privacy.exact import FiniteLaw, PrivacyCurve, curve
from auditor.privacy.guarantees import PureDP
from experiments.common import REPLACE
from mechanisms.learning.occam import MUTANTS, DoublingLearner, FreshExamples, schedule, share

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# -------------------------------------------------------------------------------------- privacy

#: Three rounds of 16, 32 and 64 examples; privacy holds whatever the sizes are.
_SMALL = DoublingLearner(16, (2, 3, 3), 0.4, 1.0)
#: Halves of a round, and largest noisy number of errors at which it stops.
_HALVES = (8, 16, 32)
_ALLOWED = tuple(_SMALL.allowed(half) for half in _HALVES)
#: A point beyond all descriptions: every hypothesis says 0, so with label 1 it is an error whatever was learned.
_BEYOND = 7


@dataclass(frozen=True)
class OutcomeLaw:
    """Distribution of the round in which a learner stops, and of its hypothesis."""

    learner: DoublingLearner

    def law(self, data: Any) -> FiniteLaw:
        """Exact distribution on `data`."""
        return self.learner.outcomes(data)


def _examples(errors: Sequence[int], learned: Sequence[tuple[int, int]] = ()) -> IntArray:
    """Examples of three rounds with the given numbers of errors on each test half; round 0 learns from ``learned``."""
    rows: list[tuple[int, int]] = []
    for j, (half, wrong) in enumerate(zip(_HALVES, errors, strict=True)):
        train = list(learned) if j == 0 else []
        rows += train + [(0, i % 2) for i in range(half - len(train))]
        rows += [(_BEYOND, 1)] * wrong + [(_BEYOND, 0)] * (half - wrong)
    return np.array(rows, dtype=np.int64)


def _pair(data: IntArray, index: int, example: tuple[int, int], name: str) -> Pair:
    changed = data.copy()
    changed[index] = example
    return Pair(data, changed, name)


def _tested_label_pair(index: int, errors: Sequence[int]) -> Pair:
    """The label of the first tested example of a round: an error in the first dataset, and none in the other."""
    place = sum(2 * half for half in _HALVES[:index]) + _HALVES[index]
    return _pair(_examples(errors), place, (_BEYOND, 0), f"an error less on the test half of round {index}")


def _with_known_curve(draft: Draft) -> Draft:
    """The claim with the exact curve of the learner's outcomes, which is what `auditor.claims.exact` would check."""
    learner = draft.mechanism
    if not isinstance(learner, DoublingLearner):
        raise TypeError(f"expected a DoublingLearner, got {learner!r}")

    def of_pair(pair: Pair) -> PrivacyCurve:
        return curve(learner.outcomes(pair.x), learner.outcomes(pair.y))

    return replace(draft, curve_of=of_pair, exact_level=None)


def _replacements() -> list[Row]:
    """Largest level over all replacements of one example of two rounds, by place; points and labels at random."""
    learner, own = DoublingLearner(8, (2, 3), 0.4, 1.0), np.random.default_rng(0)
    data = np.column_stack([own.integers(0, 5, 24), own.integers(0, 2, 24)])
    before, rows = learner.outcomes(data), []
    for place in range(len(data)):
        levels = []
        # Points of both descriptions, of the longer one only, and of none.
        for example in itertools.product((0, 2, 4), (0, 1)):
            after = data.copy()
            after[place] = example
            levels.append(curve(before, learner.outcomes(after)).epsilon(0.0))
        rows.append((f"example {place}", max(levels), learner.epsilon))
    return rows


# ------------------------------------------------------------------------------------- accuracy

_ALPHA, _BETA, _EPSILON, _ROUNDS = 0.2, 0.1, 1.0, 6
_SCHEDULE = schedule(_ALPHA, _BETA, _EPSILON, _ROUNDS)
#: First round whose descriptions reach the concept of the claims below.
_REACHED = 2


def _all_points(points: int) -> FloatArray:
    """All of so many points are in the concept, and are equally likely: no shorter description does."""
    return np.column_stack([np.full(points, 1.0 / points), np.ones(points)])


def _uneven_masses() -> FloatArray:
    """As many points as the round before the last needed one describes hold 79 % of the mass, others 21 %.

    That round errs on 21 %: just above alpha, so that it should not be stopped by. Every third point is not in the
    concept.
    """
    short, long = _SCHEDULE.lengths[_REACHED - 1], _SCHEDULE.lengths[_REACHED]
    weights = np.concatenate([np.full(short, 0.79 / short), np.full(long - short, 0.21 / (long - short))])
    labels = np.ones(long)
    labels[: short - 1 : 3] = 0.0
    return np.column_stack([weights, labels])


@dataclass(frozen=True)
class TrueErrorOfLearned:
    """Error of what was learned; 1 where nothing was."""

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n outputs of shape (n, 2)."""
        return np.asarray(outputs, dtype=np.float64)[:, 1]


@dataclass(frozen=True)
class RequestedExamples:
    """Examples that a run requested."""

    learner: FreshExamples

    def __call__(self, outputs: Any) -> FloatArray:
        """Numbers of n outputs of shape (n, 2)."""
        return self.learner.requested(np.asarray(outputs)[:, 0]).astype(np.float64)


def _decisions() -> list[Row]:
    """Exact probabilities of a wrong decision of the test, against half of the round's share of beta."""
    learner = _fresh_examples()
    rows = []
    for j in range(3):
        _, good_goes_on = learner.wrong_decision(_ALPHA / 2, j)
        bad_stops, _ = learner.wrong_decision(_ALPHA, j)
        rows.append((f"round {j} goes on with an error of alpha / 2", good_goes_on, share(_BETA, j) / 2))
        rows.append((f"round {j} stops with an error of alpha", bad_stops, share(_BETA, j) / 2))
    return rows


def _fresh_examples() -> FreshExamples:
    return FreshExamples(_SCHEDULE.first, _SCHEDULE.lengths, _ALPHA, _EPSILON)


@entry(
    "002/occam_compression_doubling",
    title="Rounds with twice the sample and longer descriptions",
    source=Source("002", "section 3.1, The compression version of Occam's razor"),
)
def occam() -> Iterator[Draft]:
    """The catalogue's form of what the document leaves out, for sets of points; the round of the stop is published.

    Derived theorem, at the sizes of `learning.occam.schedule`, for a concept that round J describes: the learner errs
    by more than alpha, or learns nothing, with probability at most beta; and it requests at most 2 n_J = first 2^(J+1)
    examples in expectation. Because: a round goes on with probability at most b/2 beyond what its exponential mechanism
    misses, which is b = beta / 2^(j+2) from round J on, and stops with an error above alpha with probability at most
    b/2. So the failures sum to at most beta/4 + 3 beta/8. Rounds up to J request n_J 2 - first; round i > J is reached
    with probability at most (3/2) beta / 2^(i+1), and requests first 2^i: together less than first, for the finitely
    many rounds here.
    """
    claim = PureDP(_SMALL.epsilon)
    enough = [allowed + 1 for allowed in _ALLOWED]
    # Six examples of one point with label 0 and two with label 1, or five and three.
    learned = _examples((0, 0, 0), [(0, 1)] * 2 + [(0, 0)] * 6)
    for case, pair in (
        ("stops_in_round_0", _tested_label_pair(0, enough)),
        ("stops_in_round_1", _tested_label_pair(1, (_HALVES[0], enough[1], 0))),
        ("training_example", _pair(learned, 7, (0, 1), "a label of an example that round 0 learns from")),
    ):
        yield _with_known_curve(privacy(_SMALL, claim, pair, case=case, relation=REPLACE))
        yield conformity(_SMALL, pair, case=case, reference=OutcomeLaw(_SMALL), draws={"smoke": 100_000})

    yield inequality(
        _replacements,
        statement="whatever example of a small database is replaced, and by what, no outcome's probability changes by "
        "more than a factor of e^eps",
        case="every_replacement",
        derived=True,
    )

    # Errors on all the test halves so far are one more than allowed, or just as many, in every round.
    together = [_SMALL.allowed(sum(_HALVES[: j + 1])) + 1 for j in range(len(_HALVES))]
    added = [together[0], *(after - before for before, after in itertools.pairwise(together))]
    once = _examples((0, 0, 0), [(1, 1), (1, 1), (0, 1)] + [(1, 1)] * 5)
    for name, pair in (
        ("earlier_rounds_reused", _tested_label_pair(0, added)),
        ("unnoised_stopping_test", _tested_label_pair(0, enough)),
        ("class_built_from_data", _pair(once, 2, (1, 1), "an example of a point that occurs only once")),
    ):
        yield _with_known_curve(broken(MUTANTS[name], _SMALL, pair, relation=REPLACE, exact_level=math.inf))

    learner, points = _fresh_examples(), _SCHEDULE.lengths[_REACHED]
    few = {"smoke": 1_000, "standard": 5_000}
    for case, distribution in (("all_points", _all_points(points)), ("uneven", _uneven_masses())):
        yield accuracy(
            learner,
            distribution,
            TrueErrorOfLearned(),
            at_most=_ALPHA,
            beta=_BETA,
            case=case,
            draws=few,
            derived=True,
            note=f"a concept of {points} bits, examples until a round of {_SCHEDULE.first << _REACHED} stops",
        )
        yield expectation(
            learner,
            distribution,
            RequestedExamples(learner),
            at_most=float(_SCHEDULE.first << (_REACHED + 1)),
            case=f"requested_{case}",
            draws=few,
            derived=True,
            note="twice the examples of the first round whose descriptions reach the concept",
        )
    yield inequality(
        _decisions,
        statement="the noisy test takes a hypothesis of error alpha/2 for a bad one, or one of error alpha for a good "
        "one, with probability at most half of the round's share of beta",
        level="L4",
        case="test_of_a_round",
        derived=True,
    )
