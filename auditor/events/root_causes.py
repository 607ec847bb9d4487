"""Root causes in standard phrases, and the simplicity of an event. No phrase holds a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from auditor.events.classifier import Score
from auditor.events.elements import Elements
from auditor.events.event_learner import Chain
from auditor.events.features import (
    Additive,
    Distance,
    Feature,
    Lattice,
    LatticeExponent,
    Linear,
    Missing,
    Numeric,
    Rank,
    Shape,
)
from auditor.events.float_bits import BitPattern, NegativeZero, Unreachable
from auditor.events.learners import CAUSES
from auditor.events.log_likelihood_ratio import OwnRatio
from auditor.events.noise_score import NoiseScore
from auditor.events.numbers_in_text import Written
from auditor.events.output_types import Flag, IsValue, KeyOrder, KindIs
from auditor.events.parametric_features import Clipped, Marked
from auditor.events.shared_noise import Cancelled, Equal, Repeats
from auditor.events.spread_shifts import SpreadShifts
from auditor.events.structure import Item

_FLOATS = "floating-point bit structure"
_SCORE = "learned score of the coordinates"
#: Sets of so few values are as simple as a threshold; arbitrary.
_FEW = 3


def cause_of(chain: Chain) -> str:
    """Cause of a difference, such as "floating-point bit structure".

    It is what a counterexample names, or "coordinate 41".

    Parameters
    ----------
    chain : Chain
        Events that were found.

    Returns
    -------
    str
        A phrase that names the kind of event only, with numbers of coordinates, which are part of the outputs' form;
        but no values, keys, texts or names of types of outputs, which may be private.
    """
    return cause_of_feature(chain.feature)


def cause_of_feature(feature: Feature | None) -> str:
    """Cause of a difference that is seen through a feature, see `cause_of`."""
    if feature is None:
        return "value of the output"
    phrase = PHRASES.get(type(feature), "learned score")
    return phrase if isinstance(phrase, str) else phrase(feature)


def _format_place(feature: Feature | None) -> str:
    """Where a number is read: nothing for the whole output."""
    if isinstance(feature, Numeric) and feature.kind == "coordinate":
        return f" of coordinate {feature.i}"
    if isinstance(feature, Written):
        return " of a number that the output writes"
    return " at a place of the output" if isinstance(feature, Item) else ""


def _numeric_cause(feature: Any) -> str:
    return {
        "value": "threshold on the value of the output",
        "coordinate": f"coordinate {feature.i}: threshold on its value",
        "difference": f"difference of coordinates {feature.i} and {feature.j}",
        "argmax": "coordinate that is the largest",
        "half": "difference of sums of coordinates",
    }.get(feature.kind, f"threshold on the {feature.kind} of the coordinates")


def _exponent(feature: Any) -> str:
    return f"{_FLOATS} of coordinate {feature.i}" if feature.i is not None else _FLOATS + _format_place(feature.base)


def _rank(feature: Any) -> str:
    if isinstance(feature.part, BitPattern):
        return _FLOATS + _format_place(feature.part.base)
    if isinstance(feature.part, KeyOrder):
        return "order of the output's keys"
    if feature.base is not None:
        return f"set of intervals of the value{_format_place(feature.base)}"
    return "set of values of the output" if feature.part is None else "set of values at a place of the output"


def _elements(feature: Any) -> str:
    if feature.value is not None:
        return {
            "count": "key, member or value that is present or not, or its number",
            "first": "place of a value in the output",
            "last": "place of a value in the output",
        }[feature.kind]
    return {
        "size": "length of the output",
        "missing": "NaN or infinite values, or None",
        "distinct": "equal elements: how many different values there are",
        "descents": "order of the elements",
    }.get(feature.kind, f"threshold on the {feature.kind} of the elements")


def _item_cause(feature: Any) -> str:
    return {
        "present": "key that is present or not",
        "difference": "difference of values at two places of the output",
    }.get(feature.kind, "value at a place, key or attribute of the output")


#: Phrase of each class of features, or a function that gives it.
PHRASES: Mapping[type, str | Callable[[Any], str]] = {
    Additive: _SCORE,
    Cancelled: lambda feature: (
        "shared noise: equal noise in coordinates "
        + ", ".join(map(str, feature.columns[:_FEW]))
        + (", ..." if len(feature.columns) > _FEW else "")
        + " cancels in their difference"
    ),
    Clipped: "threshold on a sum of coordinates",
    SpreadShifts: "threshold on a sum of coordinates",
    Distance: "interval of values of the output",
    Elements: _elements,
    Equal: lambda feature: f"equal coordinates {feature.i} and {feature.j}: repeated noise",
    Flag: lambda feature: f"coordinate {feature.i}: a bit",
    IsValue: "value that repeats: the output hardly ever varies, or never",
    Item: _item_cause,
    KindIs: lambda feature: "exception" if feature.kind.startswith("raised ") else "type of the output",
    Lattice: "lattice: values of which outputs are multiples",
    LatticeExponent: _exponent,
    Linear: _SCORE,
    Marked: "threshold on the value of the output, with values that repeat",
    Missing: lambda feature: "NaN or infinite values" + _format_place(feature.base),
    NoiseScore: "learned score of the noise that a replay shows",
    NegativeZero: lambda feature: "floating-point sign bit of zero" + _format_place(feature.base),
    Numeric: _numeric_cause,
    OwnRatio: "the mechanism's own log-likelihood ratio",
    Rank: _rank,
    Repeats: "equal coordinates: repeated noise",
    Score: "learned score",
    Shape: lambda feature: (
        "length of the output" if feature.kind == "length" else "threshold on the value of the output"
    ),
    Unreachable: lambda feature: _FLOATS + _format_place(feature.base),
    Written: "threshold on the value of a number that the output writes",
    **{kind: phrase for kind, (phrase, _) in CAUSES.items()},
}

#: Ranks of classes: 0 says by itself what is the matter; 1 is one number; 2 a number made of several, or in an order
#: of its own; 3 the bits of a number; 4 and 5 were learned, with few and with many numbers; of 6 a person sees no more
#: than that they exist.
_RANKS: Mapping[type, int] = {
    **dict.fromkeys((KindIs, Missing, NegativeZero, Flag, IsValue), 0),
    **dict.fromkeys((Equal, Repeats, Cancelled), 1),
    **dict.fromkeys((Distance, Marked, Elements, Written), 2),
    **dict.fromkeys((LatticeExponent, Lattice, Unreachable), 3),
    Clipped: 4,
    SpreadShifts: 4,
    **dict.fromkeys((Linear, Additive, NoiseScore), 5),
    **dict.fromkeys((OwnRatio, Score), 6),
    **{kind: rank for kind, (_, rank) in CAUSES.items()},
}


def rank_simplicity(chain: Chain) -> int:
    """Rank of a chain's feature, 0 for the simplest.

    Simple is what a reader grasps at once.
    """
    feature = chain.feature
    if isinstance(feature, Numeric):
        return 1 if feature.kind in ("value", "coordinate") else 2
    if isinstance(feature, Rank):
        if isinstance(feature.part, KeyOrder):  # keys that are there or not say more, and are in some order too
            return 1
        if feature.base is not None or isinstance(feature.part, BitPattern):
            return 4
        return 1 if len(feature.labels) <= _FEW else 3
    if isinstance(feature, Shape):
        return 0 if feature.kind == "length" else 1
    if isinstance(feature, Item):
        return 0 if feature.kind == "present" else 2
    return _RANKS.get(type(feature), 6)
