"""Claims of privacy (L0 to L2) and of conformity (L3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from auditor.audits.adversaries.base import Adversary
from auditor.audits.adversaries.game import Game
from auditor.audits.adversaries.releases import Unit
from auditor.audits.conformity import ERROR, HasLaw, StatedLaw, dataset_names
from auditor.audits.summary import describe_target
from auditor.claims.claim import Draft, check_case, read_expected
from auditor.datasets import Pair, Relation, check_pairs
from auditor.errors import SpecificationError
from auditor.events.classifier import Learners
from auditor.privacy.exact import PrivacyCurve, curve
from auditor.privacy.guarantees import Guarantee
from auditor.results import Verdict
from auditor.targets import Mechanism


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
    ignore: str | Sequence[str] = (),
    note: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> Draft:
    """Declare that the outputs satisfy the guarantee (L1).

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
        Exact level on the pairs where there is no distribution.
    draws : mapping of str to int, optional
        Budgets that differ from `BUDGETS`, by level; "full" is ten times what is stated for "standard".
    detect : float, optional
        Level that an event of probability 0.01 is to be found at, default twice the claimed one.
    learners : str or callable, optional
        Further event learners, see `audit`.
    ignore : str or sequence of str
        Kinds of causes that the claim is not about, such as "floating-point", see `audit`.
    note : str
        A sentence for the report.
    parameters : mapping, optional
        Parameters for the report, beside the guarantee's own.

    Raises
    ------
    SpecificationError
        If there is no pair, the datasets of one are not neighbours, or the case cannot be the last part of an id.
    """
    listed = _pairs(pairs, relation)
    check_case(case)
    return Draft(
        "L1",
        case,
        guarantee,
        mechanism,
        listed,
        read_expected(expected, case),
        curve_of_law(mechanism) if exact_level is None else None,
        exact_level,
        draws or {},
        detect,
        learners,
        False,
        note,
        parameters or {},
        relation=relation,
        ignore=ignore,
    )


def adversary(
    mechanism: Mechanism,
    guarantee: Guarantee,
    played: Adversary,
    *,
    unit: Unit = "counts",
    case: str = "reference",
    expected: str = "consistent",
    exact_level: float | None = None,
    draws: Mapping[str, int] | None = None,
    detect: float | None = None,
    independence: bool = True,
    is_mutant: bool = False,
    note: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> Draft:
    """Declare what an adversary can learn at most (L1).

    It makes up the data; the guarantee bounds its success.

    Parameters
    ----------
    mechanism : Mechanism
        What is audited: it releases the column counts of a table of zeros and ones, see
        `auditor.audits.adversaries.Game`.
    guarantee : Guarantee
        What is claimed.
    played : Adversary
        Who attacks.
    unit : {"counts", "means"}
        What is released.
    draws : mapping of str to int, optional
        Games, by level; default `GAME_BUDGETS`; "full" is ten times what is stated for "standard".
    independence : bool
        Test first that draws are independent.
    is_mutant : bool
        The mechanism is a broken one.
    case, expected, exact_level, detect, note, parameters
        As for `privacy`.
    """
    check_case(case)
    return Draft(
        "L1",
        case,
        guarantee,
        mechanism,
        (),
        read_expected(expected, case),
        None,
        exact_level,
        draws or {},
        detect,
        None,
        is_mutant,
        note,
        {"adversary": played.name, **played.parameters(), **(parameters or {})},
        subject=Game(mechanism, played, unit),
        independence=independence,
    )


def component(
    mechanism: Mechanism, guarantee: Guarantee, pairs: Pair | Sequence[Pair], *, case: str = "reference", **options: Any
) -> Draft:
    """Declare a part's own, tight bound (L2).

    A part is one epoch, or one noise draw.

    A part that breaks its bound is a violation of that bound; a looser claim of the whole may still hold.

    Parameters
    ----------
    mechanism : Mechanism
        The part.
    guarantee : Guarantee
        Its bound, tighter than what it contributes to the claim of the whole.
    pairs, case, **options
        As for `privacy`.
    """
    return replace(privacy(mechanism, guarantee, pairs, case=case, **options), level="L2")


def conformity(
    mechanism: Mechanism,
    *data: Any,
    reference: HasLaw | None = None,
    case: str = "reference",
    relation: Relation | None = None,
    expected: str = "consistent",
    draws: Mapping[str, int] | None = None,
    detect: float | None = None,
    error: float = ERROR,
    rounding: float | None = None,
    note: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> Draft:
    """Declare that draws follow a reference's stated distribution (L3).

    Parameters
    ----------
    mechanism : Mechanism
        What is audited.
    *data : any
        One or several datasets. A `Pair` stands for both of its datasets.
    reference : HasLaw, optional
        States the distribution by ``law(data)``; default the mechanism itself. A mutant is held against the mechanism
        that it was made from, never against its own distribution.
    expected : str
        "deviation" makes the claim one of a mutant.
    detect : float, optional
        Divergence in nats a draw that is to be found, default `auditor.audits.conformity.DETECT`.
    error, rounding : float, optional
        See `auditor.audits.conformity.StatedLaw`.
    case, relation, draws, note, parameters
        As for `privacy`; the relation is that of the pairs among the data.

    Raises
    ------
    SpecificationError
        If there are no data or no distribution.
    """
    check_case(case)
    if not data:
        raise SpecificationError(f"case {case}: expected at least one dataset or Pair, got none")
    pairs = tuple(one for one in data if isinstance(one, Pair))
    if pairs:
        check_pairs(pairs, relation)
    plain = [one for one in data if not isinstance(one, Pair)]
    sides = [side for pair in pairs for side in ((f"x ({pair.name})", pair.x), (f"x' ({pair.name})", pair.y))]
    return Draft(
        "L3",
        case,
        StatedLaw(mechanism if reference is None else reference, error, rounding),  # type: ignore[arg-type]
        mechanism,
        pairs,
        read_expected(expected, case),
        draws=draws or {},
        detect=detect,
        is_mutant=expected == Verdict.DEVIATION,
        note=note,
        parameters=parameters or {},
        relation=relation,
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
) -> Draft:
    """Declare that a stated distribution satisfies the guarantee (L0).

    It holds on the pairs, without draws, and is certain.

    Parameters
    ----------
    mechanism : Mechanism
        What is audited. Its method ``law(data)`` states its distribution.
    guarantee, pairs, case, relation, expected, note, parameters
        As for `privacy`.

    Raises
    ------
    SpecificationError
        If the mechanism states no distribution, or the datasets of a pair are not neighbours.
    """
    listed = _pairs(pairs, relation)
    check_case(case)
    of_law = curve_of_law(mechanism)
    if of_law is None:
        raise SpecificationError(
            f"{describe_target(mechanism)} states no distribution, so there is nothing to check at L0"
        )
    return Draft(
        "L0",
        case,
        guarantee,
        mechanism,
        listed,
        read_expected(expected, case),
        of_law,
        note=note,
        parameters=parameters or {},
        relation=relation,
    )


def reference(
    mechanism: Mechanism,
    guarantee: Guarantee,
    pairs: Pair | Sequence[Pair],
    *,
    level: str = "L1",
    case: str = "reference",
    relation: Relation | None = None,
    draws: Mapping[str, int] | None = None,
    detect: float | None = None,
    follows: bool | Mapping[str, Any] = True,
    note: str = "",
    parameters: Mapping[str, Any] | None = None,
) -> Iterator[Draft]:
    """Declare one mechanism at L0, L1 and L3.

    For use as ``yield from reference(...)``: its stated distribution satisfies the guarantee (`exact`), its outputs
    satisfy it (`privacy`), and its outputs follow the stated distribution (`conformity`).

    Parameters
    ----------
    mechanism : Mechanism
        What is audited. Its method ``law(data)`` states its distribution.
    guarantee : Guarantee
        What is claimed.
    pairs : Pair or sequence of Pair
        Neighbouring datasets; at L3 outputs are drawn on both of each.
    level : {"L1", "L2"}
        L2 if the mechanism is a part of another (`component`).
    draws : mapping of str to int, optional
        As for `privacy`, at every level that draws.
    detect : float, optional
        As for `privacy`, and not for L3, which counts in nats.
    follows : bool or mapping
        Whether to claim L3, or options of `conformity` that are others than those given here.
    case, relation, note, parameters
        As for `privacy`, at every level.

    Yields
    ------
    Draft
        The claims, in the order of their levels.

    Raises
    ------
    SpecificationError
        If the level is another, or the mechanism does not state its distribution.
    """
    if level not in ("L1", "L2"):
        raise SpecificationError(f"case {case}: outputs are audited at level L1 or L2, got {level!r}")
    listed = _pairs(pairs, relation)
    shared: dict[str, Any] = {"case": case, "relation": relation, "note": note, "parameters": parameters}
    yield exact(mechanism, guarantee, listed, **shared)
    declare = privacy if level == "L1" else component
    yield declare(mechanism, guarantee, listed, draws=draws, detect=detect, **shared)
    if follows is not False:
        others = {} if follows is True else follows
        yield conformity(mechanism, *listed, **{**shared, "draws": draws, **others})


def curve_of_law(mechanism: Mechanism) -> Callable[[Pair], PrivacyCurve] | None:
    """Exact curve of a pair by the mechanism's distribution, or None."""
    law = getattr(mechanism, "law", None)
    return None if law is None else lambda pair: curve(law(pair.x), law(pair.y))


def _pairs(pairs: Pair | Sequence[Pair], relation: Relation | None) -> tuple[Pair, ...]:
    listed = (pairs,) if isinstance(pairs, Pair) else tuple(pairs)
    check_pairs(listed, relation)
    return listed
