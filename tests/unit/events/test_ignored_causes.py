"""Kinds of causes that are ignored: their names, and the features that are left out."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from auditor import Pair, PureDP, SpecificationError, Verdict, audit
from auditor.events import ignored_causes
from auditor.events.cause_kinds import IGNORABLE, find_kind, kind_of, read_kinds
from auditor.events.event_learner import EventLearner
from auditor.events.features import Feature, Lattice, Numeric, Shape
from auditor.events.ignored_causes import IgnoredCauses, find_kept_without
from auditor.events.learners.bit_strings import BitsSet
from auditor.events.output_types import Flag, KindIs
from auditor.events.root_causes import cause_of
from auditor.targets.outputs import Batch

FLOATS = IgnoredCauses(("floating-point",))


def test_names_are_read_from_texts_and_lists_in_one_order() -> None:
    assert read_kinds(()) == read_kinds("") == ()
    assert read_kinds("length,floating-point, length") == read_kinds(["length", "floating-point"])
    assert read_kinds("length,floating-point") == ("floating-point", "length")
    assert [find_kind(kind) for kind in IGNORABLE.values()] == list(IGNORABLE)
    assert find_kind("values") is None


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("float", "did you mean floating-point?"),
        ("Floating point", "did you mean floating-point?"),
        ("floating-point bit structure", "did you mean floating-point?"),
        ("shared noise", "did you mean shared-noise?"),
        ("exception", "did you mean exceptions?"),
        ("xyz", f"kinds that can be ignored: {', '.join(IGNORABLE)}"),
        ("values", "cannot be ignored: causes on the numbers of an output"),
        ("threshold", "cannot be ignored"),
        (["length", 3], "got ['length', 3]"),
        (7, "got 7"),
    ],
)
def test_an_unknown_kind_is_refused_with_those_that_are_close(given: Any, shown: str) -> None:
    with pytest.raises(SpecificationError, match=re.escape(shown)):
        read_kinds(given)


def sums(scale: float, single: bool = False) -> Any:
    def mechanism(data: int, n: int, rng: np.random.Generator) -> Any:
        kind: Any = np.float32 if single else np.float64
        return kind(data) + rng.laplace(scale=scale, size=n).astype(kind)

    return mechanism


def proposed(mechanism: Any, kinds: Sequence[str], rounds: int = 12) -> set[str]:
    """Kinds of all causes of the events in the race, over some rounds of learning."""
    rng = np.random.default_rng(5)
    learner = EventLearner(PureDP(1.0), 0.01, find_kept=find_kept_without(kinds))
    found = set()
    for k in range(rounds):
        x, y = mechanism(0, 8 * (k + 1), rng), mechanism(1, 8 * (k + 1), rng)
        learner.add(x, y, learner.count(x, y))
        learner.learn(False)
        found |= {kind_of(cause_of(finalist.chain)) for finalist in learner.finalists}
    return found


def as_rows(data: int, n: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(size=(n, 2))


def as_dicts(data: int, n: int, rng: np.random.Generator) -> Any:
    return [{"count": value} for value in sums(1.0)(data, n, rng).tolist()]


def as_texts(data: int, n: int, rng: np.random.Generator) -> Any:
    return list(map(repr, sums(1.0)(data, n, rng).tolist()))


@pytest.mark.parametrize("mechanism", [sums(1.0), sums(1.0, True), as_rows, as_dicts, as_texts])
def test_events_of_an_ignored_kind_are_not_proposed(mechanism: Any) -> None:
    assert "floating-point" in proposed(mechanism, ())
    found = proposed(mechanism, ("floating-point", "length"))
    assert found
    assert not found & {"floating-point", "length of the output"}


def as_exceptions(data: int, n: int, rng: np.random.Generator) -> Any:
    return [value if value < 2 * data else "none" for value in rng.geometric(0.5, n).tolist()]


def test_every_kind_can_be_ignored() -> None:
    assert "type of the output" in proposed(as_exceptions, ())
    assert "type of the output" not in proposed(as_exceptions, ("types",))


def kept(ignored: IgnoredCauses, x: Batch, y: Batch) -> set[str]:
    features: dict[str, Feature] = {
        "length": Shape("length"),
        "lattice": Lattice(1.0, 0.0),
        "bit": Flag(3, 64),
        "bits": BitsSet(),
        "kind": KindIs("str"),
        "value": Numeric("value"),
        "difference": Numeric("difference", 1, 0, width=2),
    }
    keeps = ignored.find_kept(x, y)
    return {name for name, feature in features.items() if keeps(feature)}


ALL = {"length", "lattice", "bit", "bits", "kind", "value", "difference"}


@pytest.mark.parametrize(
    ("written", "left_out"),
    [
        (lambda v: v, {"lattice"}),
        (lambda v: np.float16(1) + v.astype(np.float16), {"lattice"}),
        (lambda v: v.tolist(), {"lattice"}),
        (lambda v: list(map(repr, v.tolist())), {"length"}),
        (lambda v: [f'{{"count": {x!r}}}' for x in v.tolist()], {"length"}),
        (lambda v: [f"{x:.17g}".encode() for x in v.tolist()], {"length"}),
        (lambda v: [struct.pack("<d", x) for x in v.tolist()], {"bit", "bits"}),
        (lambda v: [struct.pack(">2f", x, -x) for x in v.tolist()], {"bit", "bits"}),
        # No floats of full precision, or not as such:
        (lambda v: np.rint(v), set()),
        (lambda v: np.rint(v).astype(int), set()),
        (lambda v: [f"{x:.3f}" for x in v.tolist()], set()),
        (
            lambda v: [int(x).to_bytes(8, "little") for x in np.random.default_rng(0).integers(2**62, size=len(v))],
            set(),
        ),
        (lambda v: [bytes(8) for _ in v], set()),
    ],
)
def test_without_floating_point_nothing_reads_how_floats_are_written(written: Any, left_out: set[str]) -> None:
    rng = np.random.default_rng(1)
    batches = [written(rng.laplace(size=300)) for _ in range(2)]
    assert kept(FLOATS, *batches) == ALL - left_out
    assert kept(IgnoredCauses(("keys",)), *batches) == ALL


def test_differences_in_which_noise_cancels_are_shared_noise() -> None:
    noise = np.random.default_rng(2).laplace(size=(2, 40))
    shared = IgnoredCauses(("shared-noise",))
    tied = [np.stack([v, k + v], axis=1) for k, v in enumerate(np.rint(noise * 8) / 8)]
    assert kept(shared, *tied) == ALL - {"difference"}
    assert kept(shared, noise[0].reshape(-1, 2), noise[1].reshape(-1, 2)) == ALL
    # Without noise nothing cancels: the output never varies.
    assert kept(shared, np.zeros((40, 2)), np.ones((40, 2))) == ALL


def as_bytes(data: int, n: int, rng: np.random.Generator) -> Any:
    return [struct.pack("<d", value) for value in sums(2.0)(data, n, rng).tolist()]


def test_the_last_bit_of_bytes_is_not_bet_on_in_place_of_the_bits_of_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    claim, pair = PureDP(0.5), Pair(0, 1)
    found = audit(as_bytes, claim, pair, draws=20_000, ignore="floating-point")
    assert found.verdict != Verdict.VIOLATION
    monkeypatch.setattr(ignored_causes, "_find_writing", lambda x, y: ())
    found = audit(as_bytes, claim, pair, draws=20_000, ignore="floating-point")
    assert found.verdict == Verdict.VIOLATION
    assert found.counterexample is not None
    assert found.counterexample.cause.endswith(": a bit")
