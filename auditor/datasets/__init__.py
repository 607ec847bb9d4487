"""Relations between datasets, crafted pairs, and patterns of pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.datasets.graphs import EdgeNeighbors, NodeNeighbors
from auditor.datasets.labels import ReplaceCell, ReplaceLabel
from auditor.datasets.query_answers import AnswersWithin
from auditor.datasets.records import AddRemoveAnyOrder, AddRemoveOne, Group, ReplaceOne
from auditor.datasets.relation import Pair, Relation
from auditor.datasets.users import PerUser
from auditor.errors import SpecificationError

__all__ = [
    "RELATIONS",
    "AddRemoveAnyOrder",
    "AddRemoveOne",
    "AnswersWithin",
    "EdgeNeighbors",
    "Group",
    "NodeNeighbors",
    "Pair",
    "PerUser",
    "Relation",
    "ReplaceCell",
    "ReplaceLabel",
    "ReplaceOne",
    "check_pairs",
    "check_relation",
    "relation_named",
]


def check_relation(relation: object) -> None:
    """Check that a value is a relation.

    Raises
    ------
    SpecificationError
        If it is not.
    """
    if isinstance(relation, type) or not hasattr(relation, "check"):
        raise SpecificationError(f"relation must be one such as ReplaceOne(), got {relation!r}")


def check_pairs(pairs: Sequence[Pair], relation: Relation | None) -> None:
    """Check every pair at load.

    Parameters
    ----------
    pairs : sequence of Pair
        Pairs to be audited.
    relation : Relation or None
        When two datasets are neighbours; None leaves that unchecked.

    Raises
    ------
    SpecificationError
        If there is no pair, or the datasets of one are not neighbours.
    """
    if not pairs:
        raise SpecificationError("no pair of neighbouring datasets was given")
    if relation is not None:
        check_relation(relation)
    for pair in pairs:
        if not isinstance(pair, Pair):
            raise SpecificationError(f"expected a Pair, got {pair!r}")
        if relation is not None:
            relation.check(pair)


#: Relations by the names that the command line takes. Each has defaults for all its parameters: the label is the last
#: entry of a row and the user the first, users and nodes keep their place (nothing is added or removed).
RELATIONS: Mapping[str, type[Relation]] = {
    "replace-one": ReplaceOne,
    "add-remove-one": AddRemoveOne,
    "add-remove-any-order": AddRemoveAnyOrder,
    "answers-within": AnswersWithin,
    "label": ReplaceLabel,
    "cell": ReplaceCell,
    "per-user": PerUser,
    "edge": EdgeNeighbors,
    "node": NodeNeighbors,
}
#: Relations whose name may have a key behind it, and their parameter.
_KEYED = {"label": "label", "per-user": "key"}


def relation_named(text: str) -> Relation:
    """Return the relation of a name of `RELATIONS`.

    Parameters
    ----------
    text : str
        A name; "label:KEY" and "per-user:KEY" say in which column, key or place of a row the label or the user is.

    Raises
    ------
    SpecificationError
        If it is no such name.
    """
    name, colon, key = text.partition(":")
    if name not in RELATIONS or (colon and not (key and name in _KEYED)):
        raise SpecificationError(f"relation must be one of {', '.join(RELATIONS)}, got {text!r}")
    place: int | str = int(key) if key.lstrip("-").isdecimal() else key
    return RELATIONS[name](**{_KEYED[name]: place}) if colon else RELATIONS[name]()
