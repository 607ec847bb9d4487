"""Records of a claim, an entry and an erratum."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from auditor.audits.accuracy.base import Theorem
from auditor.audits.adversaries.game import Game
from auditor.audits.conformity import StatedLaw
from auditor.audits.privacy_loop import Settings
from auditor.claims.errata import WRONG, Erratum, Role, Shows
from auditor.datasets import Pair, Relation
from auditor.errors import SpecificationError
from auditor.events.cause_kinds import read_kinds
from auditor.events.classifier import Learners
from auditor.privacy.exact import PrivacyCurve
from auditor.privacy.guarantees import Guarantee
from auditor.results import FLAGGED, Verdict, make_plain
from auditor.targets import Mechanism

#: Outputs drawn for a claim, both sides together, at each level, and when to stop.
BUDGETS: Mapping[str, tuple[int, str]] = {
    "smoke": (200_000, "verdict"),
    "standard": (2_000_000, "budget"),
    "full": (20_000_000, "budget"),
}

#: The same for claims of accuracy: an error is one number of many draws of a mechanism, and counts tell it soon.
ACCURACY_BUDGETS: Mapping[str, tuple[int, str]] = {
    "smoke": (20_000, "verdict"),
    "standard": (200_000, "budget"),
    "full": (2_000_000, "budget"),
}

#: Games that an adversary plays, each with data of its own: one may take seconds, and what counts is the score of each.
GAME_BUDGETS: Mapping[str, tuple[int, str]] = {
    "smoke": (100, "verdict"),
    "standard": (500, "budget"),
    "full": (5_000, "budget"),
}

#: Draws at the full level for each one at standard: above, and for claims that state theirs at standard only.
FULLER = 10

_ID = re.compile(r"[A-Za-z0-9_.+-]+")

#: Verdicts that a claim may expect. An error says nothing about a claim, and no run of claims says "holds".
EXPECTED = (Verdict.CONSISTENT, *FLAGGED, Verdict.INCONCLUSIVE)


@dataclass(frozen=True)
class Source:
    """Place of a statement in a document."""

    document: str
    place: str


@dataclass(frozen=True, eq=False)
class Draft:
    """A claim as an entry's function yields it.

    See `privacy`, `component`, `exact`, `conformity`, `mutant` and `accuracy` for the fields. ``guarantee`` is what is
    claimed, whatever the level; ``datasets`` holds names and datasets where the claim is not about pairs; ``subject``
    is what a `Theorem` is checked on; ``curve_of`` is the exact curve of a pair, where it is known; ``shows`` is what
    the claim shows of an erratum; without ``independence`` the draws are taken to be independent, and not tested;
    ``controls`` are broken versions that a claim of accuracy has to refute, by what they are, as a subject each;
    ``ignore`` are kinds of causes that an audit of outputs leaves out.
    """

    level: str
    case: str
    guarantee: Guarantee | StatedLaw | Theorem
    mechanism: Mechanism | None
    pairs: tuple[Pair, ...]
    expected: Verdict = Verdict.CONSISTENT
    curve_of: Callable[[Pair], PrivacyCurve] | None = None
    exact_level: float | None = None
    draws: Mapping[str, int] = field(default_factory=dict)
    detect: float | None = None
    learners: Learners | None = None
    is_mutant: bool = False
    note: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    datasets: tuple[tuple[str, Any], ...] = ()
    relation: Relation | None = None
    subject: Any = None
    shows: Shows | None = None
    independence: bool = True
    controls: Mapping[str, Any] = field(default_factory=dict)
    ignore: str | Sequence[str] = ()

    @property
    def privacy_guarantee(self) -> Guarantee:
        """The claimed guarantee.

        SpecificationError for a claim of conformity or accuracy, which has none.
        """
        if isinstance(self.guarantee, StatedLaw | Theorem):
            raise SpecificationError(f"case {self.case}: a claim of level {self.level} has no privacy guarantee")
        return self.guarantee

    @cached_property
    def curves(self) -> tuple[PrivacyCurve, ...]:
        """Exact curve of each pair, computed on demand.

        None where no distribution is known.
        """
        return () if self.curve_of is None else tuple(map(self.curve_of, self.pairs))

    @property
    def draws_any(self) -> bool:
        """Whether the audit draws: not for distributions and computed statements."""
        return self.guarantee.drawn if isinstance(self.guarantee, Theorem) else self.level != "L0"

    @property
    def budgets(self) -> Mapping[str, tuple[int, str]]:
        """Draws and stopping rule, at each level.

        "full" has `FULLER` times those stated for "standard".
        """
        if isinstance(self.subject, Game):
            usual = GAME_BUDGETS
        else:
            usual = ACCURACY_BUDGETS if isinstance(self.guarantee, Theorem) else BUDGETS
        own = dict(self.draws)
        if "standard" in own:
            own.setdefault("full", FULLER * own["standard"])
        return {level: (own.get(level, draws), stop) for level, (draws, stop) in usual.items()}

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, Guarantee | StatedLaw | Theorem):
            raise SpecificationError(
                f"case {self.case}: what is claimed must be such as PureDP(1.0), got {self.guarantee!r}"
            )
        if not isinstance(self.draws, Mapping):
            raise SpecificationError(
                f"case {self.case}: draws must be by level, such as {{'smoke': 100_000}}, got {self.draws!r}"
            )
        unknown = sorted(set(self.draws) - set(BUDGETS))
        if unknown:
            raise SpecificationError(f"case {self.case}: draws for unknown levels {unknown}, expected {list(BUDGETS)}")
        for draws in self.draws.values():
            Settings(draws=draws)
        Settings(detect=self.detect, learners=self.learners)
        self._check_reported()
        object.__setattr__(self, "ignore", read_kinds(self.ignore))

    def _check_reported(self) -> None:
        """Raise for what no result can hold, before anything is drawn."""
        exact = self.exact_level
        if exact is not None and (not isinstance(exact, int | float | np.number) or not exact >= 0):
            raise SpecificationError(f"case {self.case}: the exact level must be a number of at least 0, got {exact!r}")
        if not isinstance(self.note, str):
            raise SpecificationError(f"case {self.case}: note must be a text, got {self.note!r}")
        if not isinstance(self.parameters, Mapping):
            raise SpecificationError(f"case {self.case}: parameters must be by name, got {self.parameters!r}")
        for name, value in self.parameters.items():
            try:
                make_plain(value)
            except TypeError:
                shown = f"a number, a text or a list of these, got {value!r}"
                raise SpecificationError(f"case {self.case}: the parameter {name!r} must be {shown}") from None


@dataclass(frozen=True, eq=False)
class Claim:
    """A draft with its id and source.

    ``origin`` is the entry that declares it.
    """

    id: str
    entry: str
    title: str
    source: Source
    draft: Draft
    origin: Entry | None = None

    @property
    def module(self) -> str:
        """Name of the module that declares it; empty if no entry does."""
        return "" if self.origin is None else self.origin.function.__module__


@dataclass(frozen=True)
class Entry:
    """A catalogue entry: a function that yields drafts.

    With the facts known about it.
    """

    id: str
    title: str
    source: Source
    function: Callable[[], Iterable[Draft]]
    errata: tuple[Erratum, ...] = ()

    def _drafts(self) -> Iterator[Draft]:
        """Drafts of the function; what is wrong in one names the entry."""
        try:
            declared = self.function()
            if not isinstance(declared, Iterable):
                raise SpecificationError(f"the function has to yield claims, such as privacy(...), got {declared!r}")
            for draft in declared:
                if not isinstance(draft, Draft):
                    raise SpecificationError(f"expected a claim, such as privacy(...), got {draft!r}")
                yield draft
        except SpecificationError as error:
            if type(error) is not SpecificationError or self.id in str(error):
                raise
            raise SpecificationError(f"entry {self.id}: {error}") from error

    def claims(self) -> Iterator[Claim]:
        """Claims of this entry, with ids ``entry/level/notion/case``."""
        seen: set[str] = set()
        shown: set[str] = set()
        known = [erratum.id for erratum in self.errata]
        for draft in self._drafts():
            notion = draft.guarantee.notion.replace(" ", "_").lower()
            name = f"{self.id}/{draft.level}/{notion}/{draft.case}"
            if name in seen:
                raise SpecificationError(f"two claims have the id {name!r}")
            seen.add(name)
            if draft.shows is not None and draft.shows.erratum not in known:
                raise SpecificationError(f"{name}: shows the erratum {draft.shows.erratum!r}, the entry lists {known}")
            if draft.shows is not None and draft.shows.role in WRONG:
                shown.add(draft.shows.erratum)
            yield Claim(name, self.id, self.title, self.source, draft, self)
        for erratum in known:
            if erratum not in shown:
                raise SpecificationError(
                    f"entry {self.id}: nothing that is expected to be refuted shows the erratum {erratum!r}"
                )


def entry(
    id: str,  # noqa: A002 - it is the entry's id
    *,
    title: str,
    source: Source,
    errata: Sequence[Erratum] = (),
) -> Callable[[Callable[[], Iterable[Draft]]], Entry]:
    """Decorate a function that yields claims.

    Parameters
    ----------
    id : str
        ``document/name``, for example "003/laplace_mechanism".
    title : str
        What the entry is, in a few words.
    source : Source
        Where the document states it.
    errata : sequence of Erratum
        What is wrong in the statement as printed.

    Returns
    -------
    callable
        From the function, without parameters, to its `Entry`.

    Raises
    ------
    SpecificationError
        If the id is not of the form ``document/name``.
    """
    parts = id.split("/")
    if len(parts) != 2 or not all(_ID.fullmatch(part) for part in parts):
        raise SpecificationError(f"an entry's id must be document/name, got {id!r}")

    def wrap(function: Callable[[], Iterable[Draft]]) -> Entry:
        return Entry(id, title, source, function, tuple(errata))

    return wrap


def check_case(case: str) -> None:
    """Raise `SpecificationError` unless ``case`` can be the last part of an id."""
    if not isinstance(case, str) or not _ID.fullmatch(case):
        raise SpecificationError(f"a case must be of letters, digits and . _ + -, got {case!r}")


def read_expected(text: str, case: str) -> Verdict:
    """Read the verdict that a claim expects.

    Parameters
    ----------
    text : str
        The verdict.
    case : str
        Case of the claim, for the message.

    Raises
    ------
    SpecificationError
        If it is not one of `EXPECTED`.
    """
    if text not in EXPECTED:
        raise SpecificationError(f"case {case}: expected must be one of {', '.join(EXPECTED)}, got {text!r}")
    return Verdict(text)


def as_printed(erratum: str, draft: Draft) -> Draft:
    """Tag a statement as it is printed, expected to be refuted.

    Parameters
    ----------
    erratum : str
        Its id, which the entry lists.
    draft : Draft
        The claim, of any kind.

    Raises
    ------
    SpecificationError
        Unless the claim expects a violation or a deviation.
    """
    return _tag_draft(erratum, "as printed", draft)


def as_corrected(erratum: str, draft: Draft) -> Draft:
    """Tag a statement as it should be, expected to hold.

    Parameters
    ----------
    erratum, draft
        As for `as_printed`.

    Raises
    ------
    SpecificationError
        Unless the claim expects to be consistent.
    """
    return _tag_draft(erratum, "as corrected", draft)


def proof_step(erratum: str, draft: Draft) -> Draft:
    """Tag a printed step of a proof, expected to be refuted.

    Parameters
    ----------
    erratum, draft
        As for `as_printed`.

    Raises
    ------
    SpecificationError
        Unless the claim expects a violation or a deviation.
    """
    return _tag_draft(erratum, "printed step", draft)


def statement_holds(erratum: str, draft: Draft) -> Draft:
    """Tag a statement whose printed proof has a wrong step.

    Parameters
    ----------
    erratum, draft
        As for `as_printed`.

    Raises
    ------
    SpecificationError
        Unless the claim expects to be consistent.
    """
    return _tag_draft(erratum, "statement", draft)


def _tag_draft(erratum: str, role: Role, draft: Draft) -> Draft:
    refuted = draft.expected in FLAGGED
    if refuted != (role in WRONG):
        wanted = "violation or deviation" if role in WRONG else "consistent"
        raise SpecificationError(
            f"case {draft.case}: shows {erratum!r} {role}, so it must expect {wanted}, not {draft.expected}"
        )
    return replace(draft, shows=Shows(erratum, role))
