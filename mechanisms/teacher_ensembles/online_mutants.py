"""Online release with a part that is broken as the bank of that part breaks it.

Its tests are a sparse vector, so a mutant of sparse vector is one of them; its questions state distances to
instability, and so do those of a distance test.

Source: document 004, Algorithm 3; catalogue 004, oqr, with the banks of svt_mutants and a_stab.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mechanisms.base.mechanism import Dataset, Mutant, require
from mechanisms.selection.sparse_vector import SparseVector
from mechanisms.teacher_ensembles.distance_test import DistanceTest
from mechanisms.teacher_ensembles.online_release import OnlineRelease, QuestionList


def of_tests(found: Mutant[SparseVector]) -> Mutant[OnlineRelease]:
    """The mutant of sparse vector as one of an online release: its row, and when it halts.

    One that changes answers changes distances here: see `of_questions`.
    """

    def build(base: OnlineRelease) -> OnlineRelease:
        tests = found.build(base.tests)
        same = isinstance(tests, SparseVector) and tests.query == base.tests.query
        require(same, "another row of the sparse vector", tests)
        return replace(base, row=tests.spec, epochs=tests.cutoff)  # type: ignore[attr-defined]

    return Mutant(found.name, build, None, found.kind, found.note)


@dataclass(frozen=True)
class QuestionAsTested:
    """A question with the value and the distance that a distance test takes it to have."""

    test: DistanceTest

    def __call__(self, data: Dataset) -> tuple[int, float]:
        """Return both."""
        return self.test.found(data)


def of_questions(found: Mutant[DistanceTest]) -> Mutant[OnlineRelease]:
    """The mutant of the distance test as one of an online release: what it takes values and distances to be."""

    def build(base: OnlineRelease) -> OnlineRelease:
        require(isinstance(base.stream, QuestionList), "a stream of questions", base.stream)
        asked: QuestionList = base.stream  # type: ignore[assignment]
        tests = [found.build(DistanceTest(question, base.epsilon, base.delta)) for question in asked.questions]
        require(all(isinstance(test, DistanceTest) for test in tests), "distance tests", tests)
        return replace(base, stream=replace(asked, questions=tuple(QuestionAsTested(test) for test in tests)))  # type: ignore[arg-type]

    return Mutant(found.name, build, None, found.kind, found.note)
