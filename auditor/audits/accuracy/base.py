"""Common base of theorems: a statement that has a check of its own."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from auditor.audits.accuracy.errors import Array, ErrorSampler, Setting
from auditor.audits.context import Question
from auditor.audits.dependence import confirm_refutation, looked_at
from auditor.audits.finish import Conclusion, finish_audit, labels_of
from auditor.audits.independence import FEW, UNTESTED, Independence, check_independence
from auditor.audits.loop import ChunkLoop, ChunkRule
from auditor.audits.privacy_loop import Settings
from auditor.audits.verdict import decide_verdict
from auditor.results import AuditResult, Verdict, wealth_fields
from auditor.targets.sampler import Sampler

T = TypeVar("T")

#: Evidence does not depend on chunks, so they only bound how late a verdict is.
CHUNKS = ChunkRule(50, growth=0.25)


class Theorem(ABC):
    """A statement other than a guarantee, with its check."""

    notion: ClassVar[str]
    symbol: ClassVar[str]

    @property
    @abstractmethod
    def level(self) -> float:
        """The claimed number."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Parameters by name."""

    @property
    def drawn(self) -> bool:
        """Whether draws judge it; otherwise it is computed."""
        return True

    def place(self, subject: Any) -> Setting | None:
        """A setting about as costly as any.

        None if nothing is drawn.
        """
        return subject if isinstance(subject, Setting) else None

    @property
    def basis(self) -> str:
        """How it is checked: "measured", "exact" or "computed".

        By draws, by exact numbers, or by a formula.
        """
        return "measured" if self.drawn else "computed"

    @property
    def places(self) -> int:
        """At how many settings there are draws."""
        return 1

    def trial(self, subject: Any) -> tuple[Theorem, Any]:
        """The statement and subject that a control is checked with.

        Of a statement with parts, the part that is checked soonest.
        """
        return self, subject

    def margin(self, found: Mapping[str, Any]) -> dict[str, Any] | None:
        """Describe what would have refuted the statement.

        From ``accuracy`` of a result; None where draws have to tell.

        Returns
        -------
        dict or None
            ``what``, in words, and ``by``: how far it is from what was found, as a factor or a difference of exponents.
        """
        del found
        return None

    @abstractmethod
    def audit(self, subject: Any, settings: Settings, question: Question) -> AuditResult:
        """Check the statement about ``subject``; never raises for what a target does.

        Parameters
        ----------
        subject : object
            What draws or computes: a `Setting`, a function that builds settings, or one that returns rows.
        settings : Settings
            Budget, level and seed.
        question : Question
            Labels of the result.
        """


@dataclass
class Path:
    """The evidence after each chunk of an accuracy audit.

    Attributes
    ----------
    n : int
        Draws so far.
    logs : list of (int, float)
        Draws and natural logarithm of the evidence, after each chunk.
    truncated_by : str or None
        What cut the audit short.
    """

    n: int = 0
    logs: list[tuple[int, float]] = field(default_factory=list)
    truncated_by: str | None = None

    def chunks(self, draw: ErrorSampler, setting: Setting, settings: Settings) -> Iterator[Array]:
        """Errors, chunk after chunk, up to the budget.

        `add` the evidence after each.

        Parameters
        ----------
        draw : ErrorSampler
            Makes the draws.
        setting : Setting
            Where to draw.
        settings : Settings
            Its ``draws``, ``seconds`` and ``chunks`` are the budget.

        Yields
        ------
        ndarray of shape (n,)
            Errors of one chunk.
        """
        loop = ChunkLoop(CHUNKS, settings.draws, settings.seconds, settings.chunks)
        for chunk in loop:
            size = loop.take()
            self.n = loop.used
            draw.expect(setting, (size, chunk), (CHUNKS.size(loop.used, loop.left), chunk + 1))
            yield draw(setting, size, chunk)
        self.truncated_by = loop.truncated_by

    def add(self, log: float) -> None:
        """Evidence after the chunk that came last."""
        self.logs.append((self.n, log))

    @property
    def highest(self) -> float:
        """Running maximum of the evidence, at least 0."""
        return max(0.0, max(log for _, log in self.logs))

    def fields(self) -> dict[str, Any]:
        """What a result holds of it."""
        return {
            "draws": self.n,
            **wealth_fields(self.logs, self.highest),
            "truncated_by": self.truncated_by,
            "record": {"chunks": [[n, log] for n, log in self.logs]},
        }


class Sampled(Theorem):
    """A theorem that is judged by errors at one setting."""

    exact: float | None

    @property
    @abstractmethod
    def detect(self) -> float:
        """Level that is to be found, if the claim names none."""

    @abstractmethod
    def collect(self, draw: ErrorSampler, setting: Setting, settings: Settings) -> dict[str, Any]:
        """Draw and bet; fields of the result.

        Parameters
        ----------
        draw : ErrorSampler
            Makes the draws.
        setting : Setting
            Where to draw.
        settings : Settings
            Budget, level and when to stop.
        """

    @abstractmethod
    def refuted(self, found: dict[str, Any]) -> str:
        """Describe the evidence that has reached 1/alpha."""

    @abstractmethod
    def missed(self, found: dict[str, Any], detect: float) -> str:
        """Describe what too few draws may have missed.

        Empty if they were enough.

        Parameters
        ----------
        found : dict
            Fields of the result, from `collect`.
        detect : float
            What was to be found, in the unit of the statement.
        """

    def audit(self, subject: Any, settings: Settings, question: Question) -> AuditResult:
        """Draw errors at the setting ``subject``.

        See `Theorem.audit`.

        Notes
        -----
        Valid because: "deviation" is returned only if the evidence reached 1/alpha, see `collect`, and did so again if
        the draws looked dependent, see `confirm_refutation`, or if the draws failed the tests of independence.
        """
        setting: Setting = subject
        detect = self.detect if settings.detect is None else settings.detect
        labels = labels_of(setting.mechanism, self, "L4", settings, question, detect=detect, exact=self.exact)
        threshold = -math.log10(settings.alpha)

        def refuted(made: dict[str, Any]) -> bool:
            return bool(made["log10_max_e_value"] >= threshold)

        def drawn(sampler: Sampler) -> tuple[Independence, dict[str, Any] | None]:
            tested = independence_of(sampler, setting, settings)
            if not tested.passed:
                return tested, None
            draw = ErrorSampler(settings.seed, question.id, settings.limit, sampler.ahead)
            made, _, looked = measured_again(
                lambda draw: self.collect(draw, setting, settings),
                refuted,
                draw,
                settings,
                [tested],
                lambda draw: self.collect(draw, setting, settings.of_second_opinion),
                lambda draw: [independence_of(draw.sampler(setting), setting, settings)],
            )
            return looked, made

        def collect() -> tuple[Independence, dict[str, Any] | None]:
            with question.helped([setting.data]) as ahead:
                sampler = ErrorSampler(settings.seed, question.id, settings.limit, ahead).sampler(setting)
                return sampler.reviewed(drawn, lambda made: made[1] is None or made[0].alone or refuted(made[1]))

        def conclude(made: tuple[Independence, dict[str, Any] | None]) -> Conclusion:
            tested, found = made
            if found is None:
                return Conclusion(decide_verdict(Verdict.DEVIATION, False, independence=tested), {}, tested)
            decided = decide_verdict(
                Verdict.DEVIATION, refuted(found), self.refuted(found), lambda: self.missed(found, detect), tested
            )
            return Conclusion(decided, found, tested)

        return finish_audit(labels, question.private, collect, conclude)


def measured_again(
    measure: Callable[[ErrorSampler], T],
    refuted: Callable[[T], bool],
    draw: ErrorSampler,
    settings: Settings,
    tests: Sequence[Independence] = (),
    again: Callable[[ErrorSampler], T] | None = None,
    test: Callable[[ErrorSampler], Sequence[Independence]] = lambda _: (),
    place: Callable[[], Setting | None] = lambda: None,
) -> tuple[T, ErrorSampler, Independence]:
    """Measure errors; repeat a refutation by seemingly dependent draws.

    It is repeated on other draws, see `confirm_refutation`. A statement that is not refuted is not to stand on
    dependent draws either: of a call in which all draws share their noise, all are right or none is.

    Parameters
    ----------
    measure : callable
        Draws and measures; each time from the same state.
    refuted : callable
        Whether what was measured refutes the statement.
    draw : ErrorSampler
        Draws at any number of settings; all of those that were drawn at are looked at.
    settings : Settings
    tests : sequence of Independence
        What was tested beforehand.
    again : callable, optional
        Measures another time, where that may end earlier.
    test : callable, optional
        Makes such tests on other draws.
    place : callable, optional
        Builds a setting whose draws are tested where the statement was not refuted and nothing was tested beforehand.

    Returns
    -------
    T
        What counts.
    ErrorSampler
        What it was drawn with.
    Independence
        See `confirm_refutation`; or a test at the setting of ``place`` that failed. One that passed leaves no trace.

    Notes
    -----
    Valid because: a test at ``place`` never refutes what is measured. Of independent draws it fails with the
    probability `auditor.audits.independence.FALSE_ALARM` at most, and comes once an audit.
    """

    def remeasure(other: ErrorSampler) -> tuple[T, ErrorSampler]:
        return (again or measure)(other), other

    if not settings.independence:
        return measure(draw), draw, UNTESTED
    (found, used), independence = confirm_refutation(
        (measure(draw), draw),
        tests,
        lambda made: refuted(made[0]),
        lambda made: made[1].look_on(looked_at(settings.comparisons)),
        lambda: remeasure(draw.alone()),
        lambda: (remeasure(other := draw.afresh()), test(other)),
    )
    if not tests and not independence.asked and not refuted(found) and (setting := place()) is not None:
        few = min(FEW, settings.comparisons)  # each setting has few draws
        tested = check_independence(used.sampler(setting), setting.data, "accuracy", comparisons=few)
        if not tested.passed:
            return found, used, tested
    return found, used, independence


def independence_of(sampler: Sampler, setting: Setting, settings: Settings) -> Independence:
    """Test that draws at a setting are independent.

    Passed without a draw where tests are not asked for.

    Parameters
    ----------
    sampler : Sampler
        Draws of the setting's mechanism.
    setting : Setting
        Its dataset is drawn on.
    settings : Settings
        Says whether to test.
    """
    if not settings.independence:
        return UNTESTED
    return check_independence(sampler, setting.data, "accuracy")
