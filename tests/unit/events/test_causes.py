"""What tells the datasets apart, in a standard phrase, for every class of features; and which events are simple."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from auditor.events import root_causes
from auditor.events.cause_kinds import IGNORABLE, VALUES, kind_of
from auditor.events.classifier import Score
from auditor.events.codec import list_event_classes
from auditor.events.discrete_fields import DiscreteField, OutputPlace
from auditor.events.elements import Elements
from auditor.events.event_learner import Chain
from auditor.events.features import (
    Additive,
    Distance,
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
from auditor.events.learners.bit_strings import BitsSet
from auditor.events.learners.coordinate_pairs import CoordinateProduct
from auditor.events.learners.element_types import KindAt
from auditor.events.learners.joined_fields import JoinedFields, PredictedField
from auditor.events.learners.residues import Remainder
from auditor.events.learners.texts import CharacterInText, NumberInText, WordInText
from auditor.events.log_likelihood_ratio import OwnRatio
from auditor.events.noise_score import NoiseScore
from auditor.events.numbers_in_text import Written
from auditor.events.output_types import Flag, IsValue, KeyOrder, KindIs
from auditor.events.parametric_features import Clipped, Marked
from auditor.events.root_causes import cause_of, rank_simplicity
from auditor.events.shared_noise import Cancelled, Equal, Repeats
from auditor.events.spread_shifts import SpreadShifts
from auditor.events.structure import Item, PartAt

#: A text and a number that are values of outputs in all the features below.
TEXT, NUMBER = "secret", 31_337.0


def chain(feature: Any) -> Chain:
    return Chain(feature, "above", (NUMBER,))


def symbols(part: Any = None, base: Any = None, size: int = 2) -> Rank:
    return Rank(base, (NUMBER, *range(1, size)), tuple(range(size)), (TEXT,) * size, part)


PHRASES: list[tuple[Any, str]] = [
    (Numeric("value"), "threshold on the value of the output"),
    (Numeric("coordinate", 41, width=64), "coordinate 41: threshold on its value"),
    (Numeric("difference", 3, 1, width=4), "difference of coordinates 3 and 1"),
    (Numeric("sum", width=4), "threshold on the sum of the coordinates"),
    (Numeric("half", width=4), "difference of sums of coordinates"),
    (Numeric("argmax", width=4), "coordinate that is the largest"),
    (Distance(NUMBER), "interval of values of the output"),
    (Linear((1.0, NUMBER)), "learned score of the coordinates"),
    (Additive(((NUMBER,),), ((1.0, 2.0, 3.0),), 1), "learned score of the coordinates"),
    (Clipped((NUMBER, 1.0), (2.0, 3.0)), "threshold on a sum of coordinates"),
    (SpreadShifts((NUMBER, 1.0), (2.0, 3.0), 2.0), "threshold on a sum of coordinates"),
    (Marked((NUMBER,), ()), "threshold on the value of the output, with values that repeat"),
    (LatticeExponent(), "floating-point bit structure"),
    (LatticeExponent(7, 8), "floating-point bit structure of coordinate 7"),
    (LatticeExponent(base=Item((TEXT,))), "floating-point bit structure at a place of the output"),
    (Unreachable(NUMBER), "floating-point bit structure"),
    (Unreachable(NUMBER, base=Numeric("coordinate", 5, width=9)), "floating-point bit structure of coordinate 5"),
    (NegativeZero(), "floating-point sign bit of zero"),
    (symbols(BitPattern()), "floating-point bit structure"),
    (symbols(BitPattern(Numeric("coordinate", 2, width=9))), "floating-point bit structure of coordinate 2"),
    (Lattice(NUMBER, NUMBER), "lattice: values of which outputs are multiples"),
    (Shape("length"), "length of the output"),
    (Shape("number"), "threshold on the value of the output"),
    (Missing(4), "NaN or infinite values"),
    (Missing(base=Numeric("coordinate", 2, width=9)), "NaN or infinite values of coordinate 2"),
    (symbols(), "set of values of the output"),
    (symbols(PartAt((TEXT,))), "set of values at a place of the output"),
    (symbols(KeyOrder()), "order of the output's keys"),
    (symbols(base=Numeric("value")), "set of intervals of the value"),
    (KindIs("raised ValueError"), "exception"),
    (KindIs(TEXT), "type of the output"),
    (IsValue(5, TEXT), "value that repeats: the output hardly ever varies, or never"),
    (Flag(1023, 1024), "coordinate 1023: a bit"),
    (BitsSet(), "number of bits that are set in the output"),
    (
        JoinedFields((DiscreteField(OutputPlace((TEXT,)), "value", (NUMBER,), (TEXT,)),), (0,), 1),
        "set of values that several places of the output have together",
    ),
    (
        PredictedField(OutputPlace((TEXT,)), (OutputPlace((0,)),), (31_337,), (31_337,)),
        "value at a place that follows from others on one dataset only",
    ),
    (Equal(2, 27, 30), "equal coordinates 2 and 27: repeated noise"),
    (Repeats(30), "equal coordinates: repeated noise"),
    (
        Cancelled((1.0, -1.0), (7, 3), 9),
        "shared noise: equal noise in coordinates 7, 3 cancels in their difference",
    ),
    (Item((TEXT,), "present"), "key that is present or not"),
    (Item((TEXT,)), "value at a place, key or attribute of the output"),
    (Item((TEXT,), "difference", (1,)), "difference of values at two places of the output"),
    (Elements("size"), "length of the output"),
    (Elements("missing"), "NaN or infinite values, or None"),
    (Elements("distinct"), "equal elements: how many different values there are"),
    (Elements("descents"), "order of the elements"),
    (Elements("sum"), "threshold on the sum of the elements"),
    (Elements("max"), "threshold on the max of the elements"),
    (Elements("count", ("str", TEXT)), "key, member or value that is present or not, or its number"),
    (Elements("first", ("number", NUMBER)), "place of a value in the output"),
    (Written("text"), "threshold on the value of a number that the output writes"),
    (NumberInText(0, (TEXT,)), "threshold on the value of a number in a text"),
    (CharacterInText(0, (TEXT,)), "value of the output: a character of a text"),
    (WordInText(TEXT), "value of the output: a word that a text holds or not"),
    (Remainder(2, 1), "value of the output: its remainder"),
    (KindAt(TEXT, (TEXT,)), "type of the output"),
    (CoordinateProduct(3, 7, (0.0, 0.0), 9), "coordinates that go together on one dataset more than on the other"),
    (Unreachable(NUMBER, base=Written("<d")), "floating-point bit structure of a number that the output writes"),
    (Score(None, "logistic", False), "learned score"),
    (
        NoiseScore((NUMBER,), (NUMBER,), ((1.0,),), (NUMBER,), (0.0,), (1.0,), (True,)),
        "learned score of the noise that a replay shows",
    ),
    (OwnRatio(lambda batch, x, y: np.zeros(len(batch)), TEXT, TEXT), "the mechanism's own log-likelihood ratio"),
]


@pytest.mark.parametrize(("feature", "phrase"), PHRASES, ids=[f"{k}-{p[:30]}" for k, (_, p) in enumerate(PHRASES)])
def test_the_cause_names_the_kind_of_event_and_no_value(feature: Any, phrase: str) -> None:
    found = cause_of(chain(feature))
    assert found == phrase
    assert TEXT not in found
    assert "31337" not in found.replace(",", "")
    assert 0 <= rank_simplicity(chain(feature)) <= 6


def test_every_class_of_features_has_a_cause() -> None:
    # A new class of features without a phrase of its own fails here.
    features = {
        kind for kind in list_event_classes().values() if all(word in vars(kind) for word in ("__call__", "below"))
    }
    features |= {Score, OwnRatio}
    assert features == set(root_causes.PHRASES)
    # The phrases of learners are constants, in which there is no room for a value.
    assert {type(feature) for feature, _ in PHRASES} >= features - set(CAUSES)


def test_every_feature_but_those_of_several_ranks_has_one() -> None:
    ranked = {*root_causes._RANKS, Numeric, Rank, Shape, Item}
    assert ranked == set(root_causes.PHRASES)


def test_every_cause_is_on_the_values_or_of_a_kind_that_can_be_ignored() -> None:
    # A new phrase whose kind has no name fails here, and so does a name that no phrase has.
    assert {kind_of(phrase) for _, phrase in PHRASES} == {VALUES, *IGNORABLE.values()}


def test_a_feature_of_somebody_elses_is_a_learned_score() -> None:
    class Own:
        def __call__(self, batch: Any) -> Any:
            return np.zeros(len(batch))

        def below(self, cut: float) -> str:
            return TEXT

        above = below

    assert cause_of(chain(Own())) == "learned score"
    assert rank_simplicity(chain(Own())) == 6


def test_causes_have_the_usual_words() -> None:
    said = " ".join(cause_of(chain(feature)) for feature, _ in PHRASES)
    for word in ("bit structure", "exception", "length", "coordinate", "type", "NaN", "equal", "present", "varies"):
        assert re.search(word, said), word


def test_what_says_by_itself_what_is_the_matter_is_simplest() -> None:
    order = [
        KindIs("raised ValueError"),
        Numeric("coordinate", 3, width=4),
        Numeric("sum", width=4),
        LatticeExponent(),
        Clipped((1.0, 2.0), (2.0, 3.0)),
        Linear((1.0, 2.0)),
        Score(None, "logistic", False),
    ]
    ranks = [rank_simplicity(chain(feature)) for feature in order]
    assert ranks == sorted(set(ranks))
    assert rank_simplicity(chain(symbols(size=2))) < rank_simplicity(chain(symbols(size=9)))
    assert rank_simplicity(chain(symbols(BitPattern()))) > rank_simplicity(chain(LatticeExponent()))
    # Keys that are there or not are in another order as well, which says less.
    assert rank_simplicity(chain(Shape("length"))) == rank_simplicity(chain(Item(("k",), "present"))) == 0
    assert rank_simplicity(chain(symbols(KeyOrder()))) == 1
    assert rank_simplicity(chain(Item(("k",), "present"))) < rank_simplicity(chain(Item(("k",))))
