"""Claims of mutants, which are expected to be refuted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from auditor.audits.summary import describe_target
from auditor.claims.claim import Draft
from auditor.claims.privacy import conformity, privacy
from auditor.datasets import Pair, Relation
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import Guarantee, PureDP
from auditor.targets import Mechanism
from auditor.targets.mutants import Mutant


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
    """Declare a broken mechanism, expected to be refuted.

    Parameters
    ----------
    case : str
        Last part of the claim's id.
    mechanism : Mechanism
        The broken one.
    guarantee : Guarantee
        What it claims nevertheless.
    pairs : Pair or sequence of Pair
        Neighbouring datasets, of which one shows what is broken.
    expected : str
        Verdict that is expected.
    true_level : float, optional
        Exact level on the pairs, where it is known and the mechanism states no distribution.
    **options
        What `privacy` takes.
    """
    draft = privacy(mechanism, guarantee, pairs, case=case, expected=expected, **options)
    if true_level is not None and draft.curve_of is None:
        draft = replace(draft, exact_level=true_level)
    return replace(draft, is_mutant=True)


def broken(
    found: Mutant[Any],
    base: Any,
    pairs: Pair | Sequence[Pair],
    *,
    guarantee: Guarantee | None = None,
    case: str = "",
    asked: str = "",
    level: str = "L1",
    attained: bool = True,
    **options: Any,
) -> Draft:
    """Declare that a mutant breaks what its reference claims.

    A benign mutant is expected to be consistent. The exact level on the pairs is computed from the mutant's
    distribution; where it states none, it is the mutant's ``true_level``.

    Parameters
    ----------
    found : Mutant
        Gives the case its name.
    base : Mechanism
        The reference that the mutant is built from.
    pairs : Pair or sequence of Pair
        Neighbouring datasets, of which one shows what is broken.
    guarantee : Guarantee, optional
        What the reference claims, in any notion; default pure DP at ``base.epsilon``.
    case : str
        Another name than the mutant's.
    asked : str
        How the mutant is asked, if in several ways; the case is the name, two underscores, and this.
    level : {"L1", "L2"}
        L2 if the reference is a part of a mechanism.
    attained : bool
        Whether the pairs attain the mutant's ``true_level``.
    **options
        What `mutant` takes.

    Raises
    ------
    SpecificationError
        If no guarantee is given and the reference has no ``epsilon``.
    """
    if guarantee is None:
        if not hasattr(base, "epsilon"):
            raise SpecificationError(
                f"mutant {found.name}: {describe_target(base)} has no epsilon, so give the guarantee"
            )
        guarantee = PureDP(base.epsilon)
    built = found.build(base)
    if not hasattr(built, "law") and attained and found.true_level is not None:
        options.setdefault("true_level", found.true_level(base))
    expected = "consistent" if found.kind == "benign" else "violation"
    named = _case_of(found, case, asked)
    draft = mutant(named, built, guarantee, pairs, expected=expected, note=found.note, **options)
    return replace(draft, level=level)


def deviating(found: Mutant[Any], base: Any, *data: Any, case: str = "", asked: str = "", **options: Any) -> Draft:
    """Declare that a mutant does not follow its reference's distribution (L3).

    Parameters
    ----------
    found, base, case, asked
        As for `broken`; the reference states its distribution by ``law(data)``.
    *data : any
        Datasets and pairs, as for `conformity`.
    **options
        What `conformity` takes.
    """
    built, named = found.build(base), _case_of(found, case, asked)
    return conformity(built, *data, reference=base, case=named, expected="deviation", note=found.note, **options)


def broken_and_deviating(
    found: Mutant[Any],
    base: Any,
    pairs: Pair | Sequence[Pair],
    *,
    case: str = "",
    asked: str = "",
    relation: Relation | None = None,
    draws: Mapping[str, int] | None = None,
    **options: Any,
) -> Iterator[Draft]:
    """Declare a mutant at L1 and L3, on the same pairs.

    For use as ``yield from broken_and_deviating(...)``.

    Parameters
    ----------
    found, base, pairs, case, asked
        As for `broken`.
    relation, draws
        As for `privacy`, at both levels.
    **options
        What `broken` takes.

    Yields
    ------
    Draft
        The claims of `broken` and of `deviating`.
    """
    shared: dict[str, Any] = {"case": case, "asked": asked, "relation": relation, "draws": draws}
    yield broken(found, base, pairs, **shared, **options)
    yield deviating(found, base, *((pairs,) if isinstance(pairs, Pair) else pairs), **shared)


def _case_of(found: Mutant[Any], case: str, asked: str) -> str:
    return "__".join(part for part in (case or found.name, asked) if part)
