"""How experiments declare claims.

An entry is a function that yields claims; the decorator `entry` names it::

    @entry("000/geometric_mechanism", source=Source("000", "section 2"))
    def geometric() -> Iterator[Draft]:
        mechanism = TwoSidedGeometric(Count("age", 65), a=math.e)
        yield exact(mechanism, PureDP(1.0), pairs)
        yield privacy(mechanism, PureDP(1.0), pairs)
        yield conformity(mechanism, pairs)
        yield mutant("one_sided", OneSided(...), PureDP(1.0), pairs, true_level=math.inf)

Nothing is registered anywhere: `auditor.registry` finds entries in the modules that it loads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from auditor.collect import Settings
from auditor.conformity import ERROR, HasLaw, StatedLaw, dataset_names
from auditor.errors import SpecificationError
from auditor.events.classifier import Learners
from auditor.exact import PrivacyCurve, curve
from auditor.findings import describe
from auditor.guarantees import Guarantee
from auditor.neighbors import Pair, Relation, check_pairs
from auditor.results import Verdict
from auditor.targets import Mechanism

#: Outputs drawn for a claim, both sides together, at each level, and when to stop.
BUDGETS: Mapping[str, tuple[int, str]] = {
    "smoke": (200_000, "verdict"),
    "standard": (2_000_000, "budget"),
    "full": (20_000_000, "budget"),
}

_ID = re.compile(r"[A-Za-z0-9_.+-]+")


@dataclass(frozen=True)
class Source:
    """Where a statement stands."""

    document: str
    place: str


@dataclass(frozen=True)
class Erratum:
    """A statement that is wrong as printed: ``kind`` is "false" or "proof", see the catalogue's classes."""

    id: str
    kind: str
    summary: str


@dataclass(frozen=True, eq=False)
class Draft:
    """A claim as an entry's function yields it.

    See `privacy`, `component`, `exact`, `conformity` and `mutant` for the fields. ``guarantee`` is what is claimed,
    whatever the level; ``datasets`` holds names and datasets where the claim is not about pairs.
    """

    level: str
    case: str
    guarantee: Guarantee | StatedLaw
    mechanism: Mechanism | None
    pairs: tuple[Pair, ...]
    expected: Verdict = Verdict.CONSISTENT
    curves: tuple[PrivacyCurve, ...] = ()
    exact_level: float | None = None
    draws: Mapping[str, int] = field(default_factory=dict)
    detect: float | None = None
    learners: Learners | None = None
    is_mutant: bool = False
    note: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    erratum: str | None = None
    datasets: tuple[tuple[str, Any], ...] = ()

    @property
    def privacy_guarantee(self) -> Guarantee:
        """The claimed guarantee; SpecificationError for a claim of conformity, which has none."""
        if isinstance(self.guarantee, StatedLaw):
            raise SpecificationError(f"case {self.case}: a claim of level {self.level} has no privacy guarantee")
        return self.guarantee

    def __post_init__(self) -> None:
        unknown = sorted(set(self.draws) - set(BUDGETS))
        if unknown:
            raise SpecificationError(f"case {self.case}: draws for unknown levels {unknown}, expected {list(BUDGETS)}")
        for draws in self.draws.values():
            Settings(draws=draws)
        Settings(detect=self.detect, learners=self.learners)


@dataclass(frozen=True, eq=False)
class Claim:
    """A draft with its id and source."""

    id: str
    entry: str
    title: str
    source: Source
    draft: Draft


@dataclass(frozen=True)
class Entry:
    """A catalogue entry: a function that yields drafts, and what is known about it."""

    id: str
    title: str
    source: Source
    function: Callable[[], Iterable[Draft]]
    errata: tuple[Erratum, ...] = ()

    def claims(self) -> Iterator[Claim]:
        """Claims of this entry, with ids ``entry/level/notion/case``."""
        seen: set[str] = set()
        for draft in self.function():
            notion = draft.guarantee.notion.replace(" ", "_").lower()
            name = f"{self.id}/{draft.level}/{notion}/{draft.case}"
            if name in seen:
                raise SpecificationError(f"two claims have the id {name!r}")
            seen.add(name)
            yield Claim(name, self.id, self.title, self.source, draft)


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
    """
    parts = id.split("/")
    if len(parts) != 2 or not all(_ID.fullmatch(part) for part in parts):
        raise SpecificationError(f"an entry's id must be document/name, got {id!r}")

    def wrap(function: Callable[[], Iterable[Draft]]) -> Entry:
        return Entry(id, title, source, function, tuple(errata))

    return wrap


def privacy(
    mechanism: Mechanism,
    guarantee: Guarantee,
    pairs: Pair | Sequence[Pair],
    *,
    case: str = "reference",
    relation: Relation | None = None,
    expected: str = "consistent",
    exact_level: float | None = None,
    draws: Mapping[str, int] | None = None,
    detect: float | None = None,
    learners: Learners | None = None,
    note: str = "",
    parameters: Mapping[str, Any] | None = None,
    erratum: str | None = None,
) -> Draft:
    """Claim at level L1: the outputs satisfy the guarantee.

    Parameters
    ----------
    mechanism : Mechanism
        What is audited. If it has a method ``law(data)``, the exact curve of each pair is computed from it.
    guarantee : Guarantee
        What is claimed.
    pairs : Pair or sequence of Pair
        Neighbouring datasets.
    case : str
        Last part of the claim's id.
    relation : Relation, optional
        Each pair is checked against it, at load.
    expected : str
        Verdict that is expected.
    exact_level : float, optional
        Exact level on the pairs where there is no law.
    draws : mapping of str to int, optional
        Budgets that differ from `BUDGETS`, by level.
    detect : float, optional
        Level that is to be detectable.
    learners : str or callable, optional
        Further event learners, see `audit`.
    note : str
        A sentence for the report.
    parameters : mapping, optional
        Parameters for the report, beside the guarantee's own.
    erratum : str, optional
        Id of the erratum that this claim shows.
    """
    listed = _pairs(pairs, relation)
    _check_case(case)
    return Draft(
        "L1",
        case,
        guarantee,
        mechanism,
        listed,
        Verdict(expected),
        curves_of(mechanism, listed) if exact_level is None else (),
        exact_level,
        draws or {},
        detect,
        learners,
        False,
        note,
        parameters or {},
        erratum,
    )


def component(
    mechanism: Mechanism, guarantee: Guarantee, pairs: Pair | Sequence[Pair], *, case: str = "reference", **options: Any
) -> Draft:
    """Claim at level L2: a part (one epoch, one noise draw) satisfies its own, tight, bound.

    Takes what `privacy` takes. A part that breaks its bound is a violation of that bound; a looser claim of the whole
    may still stand.
    """
    return replace(privacy(mechanism, guarantee, pairs, case=case, **options), level="L2")


def conformity(
    mechanism: Mechanism,
    *data: Any,
    reference: HasLaw | None = None,
    case: str = "reference",
    expected: str = "consistent",
    draws: Mapping[str, int] | None = None,
    detect: float | None = None,
    error: float = ERROR,
    rounding: float | None = None,
    note: str = "",
    parameters: Mapping[str, Any] | None = None,
    erratum: str | None = None,
) -> Draft:
    """Claim at level L3: the mechanism samples from the law that a reference states.

    Parameters
    ----------
    mechanism : Mechanism
        What is audited.
    *data : any
        One or several datasets. A `Pair` stands for both of its datasets.
    reference : HasLaw, optional
        States the law by ``law(data)``; default the mechanism itself. A mutant is held against the mechanism that it
        was made from, never against its own law.
    expected : str
        "deviation" makes the claim one of a mutant.
    detect : float, optional
        Divergence in nats a draw that is to be detectable, default `auditor.conformity.DETECT`.
    error, rounding : float, optional
        See `auditor.conformity.StatedLaw`.
    case, draws, note, parameters, erratum
        As for `privacy`.

    Raises
    ------
    SpecificationError
        If there are no data or no law.
    """
    _check_case(case)
    if not data:
        raise SpecificationError(f"case {case}: expected at least one dataset or Pair, got none")
    pairs = tuple(one for one in data if isinstance(one, Pair))
    plain = [one for one in data if not isinstance(one, Pair)]
    sides = [side for pair in pairs for side in ((f"x ({pair.name})", pair.x), (f"x' ({pair.name})", pair.y))]
    return Draft(
        "L3",
        case,
        StatedLaw(mechanism if reference is None else reference, error, rounding),  # type: ignore[arg-type]
        mechanism,
        pairs,
        Verdict(expected),
        draws=draws or {},
        detect=detect,
        is_mutant=Verdict(expected) == Verdict.DEVIATION,
        note=note,
        parameters=parameters or {},
        erratum=erratum,
        datasets=(*sides, *zip(dataset_names(len(plain)), plain, strict=True)),
    )


def exact(
    mechanism: Mechanism,
    guarantee: Guarantee,
    pairs: Pair | Sequence[Pair],
    *,
    case: str = "reference",
    relation: Relation | None = None,
    expected: str = "consistent",
    note: str = "",
    parameters: Mapping[str, Any] | None = None,
    erratum: str | None = None,
) -> Draft:
    """Claim at level L0: the mechanism's stated law satisfies the guarantee on the pairs; no draws, and certain."""
    listed = _pairs(pairs, relation)
    _check_case(case)
    curves = curves_of(mechanism, listed)
    if not curves:
        raise SpecificationError(f"{describe(mechanism)} states no law, so there is nothing to check at L0")
    return Draft(
        "L0",
        case,
        guarantee,
        mechanism,
        listed,
        Verdict(expected),
        curves,
        note=note,
        parameters=parameters or {},
        erratum=erratum,
    )


def mutant(
    case: str,
    mechanism: Mechanism,
    guarantee: Guarantee,
    pairs: Pair | Sequence[Pair],
    *,
    expected: str = "violation",
    true_level: float | None = None,
    **options: Any,
) -> Draft:
    """Claim of a broken mechanism, expected to be refuted; takes what `privacy` takes.

    ``true_level`` is the exact level on the pairs, where it is known and the mutant states no law.
    """
    draft = privacy(mechanism, guarantee, pairs, case=case, expected=expected, **options)
    if true_level is not None and not draft.curves:
        draft = replace(draft, exact_level=true_level)
    return replace(draft, is_mutant=True)


def curves_of(mechanism: Mechanism, pairs: Sequence[Pair]) -> tuple[PrivacyCurve, ...]:
    """Exact curve of each pair; none if the mechanism states no law."""
    law = getattr(mechanism, "law", None)
    if law is None:
        return ()
    return tuple(curve(law(pair.x), law(pair.y)) for pair in pairs)


def _pairs(pairs: Pair | Sequence[Pair], relation: Relation | None) -> tuple[Pair, ...]:
    listed = (pairs,) if isinstance(pairs, Pair) else tuple(pairs)
    check_pairs(listed, relation)
    return listed


def _check_case(case: str) -> None:
    if not _ID.fullmatch(case):
        raise SpecificationError(f"a case must be of letters, digits and . _ + -, got {case!r}")
