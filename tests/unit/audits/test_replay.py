"""A recorded counterexample drawn again, and the lines that show it."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import AddRemoveOne, ApproxDP, DeltaDP, GaussianDP, Pair, PureDP, RenyiDP, TradeoffCurve
from auditor.audits.counterexamples.confirm import EventCounts
from auditor.audits.counterexamples.replay import (
    claim_from_json,
    claim_to_json,
    replay_event,
    to_replay,
    to_replay_unshrunk,
)
from auditor.audits.counterexamples.shrink import Shrunk, shrink_counterexample
from auditor.audits.counterexamples.snippet import show_pair, write_snippet
from auditor.cli.replay import _find_pair
from auditor.datasets import Relation
from auditor.errors import SpecificationError, TargetError
from auditor.events.codec import chain_to_json
from auditor.events.event_learner import Chain
from auditor.events.features import Numeric
from auditor.events.float_bits import NegativeZero
from auditor.privacy.guarantees import ZCDP, Guarantee
from auditor.results import make_plain
from auditor.targets.sampler import Sampler

CLAIM = PureDP(1.0)
PAIR = Pair(np.array([37, 41, 58, 1]), np.array([37, 41, 58]), "one row more")


def count(data: Any, n: int, rng: np.random.Generator) -> Any:
    """A count with twenty times too little noise."""
    return len(data) + rng.laplace(0, 0.05, n)


def sound(data: Any, n: int, rng: np.random.Generator) -> Any:
    """What keeps the claim: the same on all datasets."""
    return rng.laplace(0, 1, n)


class Unseeded:
    """A target with entropy of its own, here that of a generator which goes on from call to call."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(11)

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        return count(data, n, self.rng)


def found_in(target: Any, relation: Relation | None = None, **options: Any) -> Shrunk:
    arguments: dict[str, Any] = {"alpha": 0.01, "draws": 20_000, **options}
    found = shrink_counterexample(Sampler(target, 4, "claim", catching=True), CLAIM, relation, PAIR, [], **arguments)
    assert found is not None
    return found


def record(again: Any, event: str = "the event", **fields: Any) -> Any:
    """A claim's record as results.json has it: numbers of 8 digits, strict JSON."""
    content = {"id": "claim", "counterexample": {"pair": "a pair", "event": event, "again": again}, **fields}
    return json.loads(json.dumps(make_plain(content), allow_nan=False))


@pytest.fixture(scope="module")
def found() -> Shrunk:
    return found_in(count, AddRemoveOne())


def test_a_seeded_target_gives_the_same_draws_again(found: Shrunk) -> None:
    again = replay_event(record(to_replay(found, private=False), "output > 0.5"), count)
    assert again.reproduced
    assert again.exactly
    assert again.lines[0] == (
        f"drawn again with seed 4: output > 0.5: {found.x_count} of {found.n} draws on x, "
        f"{found.y_count} of {found.n} on x', exactly as recorded"
    )
    assert "against ε = 1; 10^2.0 refutes it" in again.lines[1]


def test_another_seed_takes_fresh_draws(found: Shrunk) -> None:
    again = replay_event(record(to_replay(found, private=False)), count, seed=99)
    assert again.reproduced
    assert not again.exactly
    assert again.lines[0].startswith("fresh draws")


def test_an_unseeded_target_is_reproduced_statistically(found: Shrunk) -> None:
    known = record(to_replay(found_in(Unseeded(), AddRemoveOne()), private=False), unseeded=True)
    again = replay_event(known, Unseeded())
    assert again.reproduced
    assert not again.exactly
    assert again.lines[0].startswith("fresh draws")


def test_a_target_that_draws_otherwise_now_is_said_to(found: Shrunk) -> None:
    again = replay_event(
        record(to_replay(found, private=False)), lambda data, n, rng: count(data, n, rng) + rng.random() / 9
    )
    assert again.reproduced
    assert not again.exactly
    assert "have changed" in again.lines[0]
    assert again.lines[1].startswith("fresh draws")


def test_a_corrected_target_is_not_reproduced(found: Shrunk) -> None:
    # Its outputs are the same on all datasets: the wealth reaches 100 with probability below 0.01; seed 4 is no such
    # case, nor is it for most seeds, and the record asks for 10^-6 below.
    known = record(to_replay(replace(found, alpha=1e-6), private=False))
    again = replay_event(known, sound)
    assert not again.reproduced
    assert again.lines[-2].startswith("not reproduced: e-value 10^")
    assert "10^6.0 refutes it" in again.lines[-2]
    assert "would miss the violation with probability" in again.lines[-1]


def test_private_data_are_given_again_and_nothing_of_them_is_stored() -> None:
    found = found_in(count, AddRemoveOne())
    assert not found.synthetic
    stored = to_replay(found, private=True)
    assert stored["data"] is None
    assert stored["chain"] is None
    text = json.dumps(make_plain(stored))
    assert not any(value in text for value in ("37", "41", "58"))
    again = replay_event(record(stored), count, PAIR)
    assert again.reproduced
    assert "learned anew" in again.lines[0]
    with pytest.raises(SpecificationError, match="--data and --neighbor"):
        replay_event(record(stored), count)
    with pytest.raises(SpecificationError, match="are they those of the attack"):
        replay_event(record(stored), count, Pair(np.array([1]), np.array([0], dtype=np.int64)[:0]))


def test_private_data_that_could_not_be_made_smaller_are_given_as_they_are() -> None:
    def whole(data: Any, n: int, rng: np.random.Generator) -> Any:
        return count(data, n, rng) if {37, 41, 58} <= set(data.tolist()) else np.zeros(n)

    found = found_in(whole, AddRemoveOne())
    assert found.pair is PAIR
    stored = to_replay(found, private=True)
    assert stored["whole"]
    assert replay_event(record(stored), whole, PAIR).reproduced


def test_made_up_rows_are_stored_though_the_data_are_private() -> None:
    found = found_in(count, AddRemoveOne(), synthetic=[Pair(np.array([0, 0]), np.array([0]), "made up")])
    assert found.synthetic
    stored = to_replay(found, private=True)
    assert stored["data"] is not None
    assert replay_event(record(stored), count).exactly


def test_rows_of_the_domain_are_stored_though_the_data_are_private() -> None:
    def large(data: Any, n: int, rng: np.random.Generator) -> Any:
        return np.max(data, initial=0) + rng.laplace(0, 0.05, n)

    pair = Pair(np.array([45, 41]), np.array([38, 41]), "one row")
    sampler = Sampler(large, 4, "claim", catching=True)
    found = shrink_counterexample(
        sampler, CLAIM, auditor.ReplaceOne(), pair, [], alpha=0.01, draws=20_000, values=range(30, 60)
    )
    assert found is not None
    assert {found.pair.x.tolist()[0], found.pair.y.tolist()[0]} == {30, 59}
    stored = to_replay(found, private=True)
    assert stored["rows"] == {"x": [4], "y": [5], "added": found.pair.x.tolist() + found.pair.y.tolist()}
    assert replay_event(record(stored), large, pair).reproduced


EVENT = Chain(Numeric("value"), "above", (3.5, 4.5))


def test_a_counterexample_that_was_not_shrunk_is_reproduced_by_fresh_draws() -> None:
    stored = to_replay_unshrunk(PAIR, EVENT, 0, EventCounts(50, 0, 50), CLAIM, 0.01, private=False)
    again = replay_event(record(stored), count)
    assert again.reproduced
    assert not again.exactly


def test_frequencies_of_the_learning_draws_that_overstate_are_made_up_for_by_more_draws() -> None:
    """Of 79 draws all are in the event on x; at its probabilities, .966 and .752, 8 times as many find it in 37 %."""

    def noisy(data: Any, n: int, rng: np.random.Generator) -> Any:
        return np.sum(data) + rng.laplace(scale=0.5, size=n)

    event = Chain(Numeric("value"), "below", (1.35,))
    claim, counts = auditor.PureDP(1.0), EventCounts(79, 44, 79)
    stored = to_replay_unshrunk(Pair([0], [1]), event, 0, counts, claim, 1e-6, private=False)
    assert [replay_event(record(stored), noisy, seed=seed).reproduced for seed in range(12)] == 12 * [True]


def test_a_table_is_stored_and_drawn_again() -> None:
    def rows(data: pd.DataFrame, n: int, rng: np.random.Generator) -> Any:
        return data["age"].sum() + rng.laplace(0, 0.05, n)

    frame = pd.DataFrame({"age": [1, 2], "city": ["a", "b"]})
    sampler = Sampler(rows, 4, "claim", catching=True)
    found = shrink_counterexample(
        sampler, CLAIM, AddRemoveOne(), Pair(frame, frame.iloc[:1]), [], alpha=0.01, draws=20_000
    )
    assert found is not None
    assert replay_event(record(to_replay(found, private=False)), rows).exactly


@pytest.mark.parametrize(
    "claim",
    [
        CLAIM,
        PureDP(0.1 + 0.2),
        ApproxDP(1.0, 1e-6),
        DeltaDP(1e-6, 1.0),
        GaussianDP(0.5),
        ZCDP(0.1),
        RenyiDP({2: 0.3, 8: 1.1}),
        TradeoffCurve((0.0, 0.5, 1.0), (0.9, 0.3, 0.0), "a curve"),
    ],
)
def test_claims_of_every_notion_come_back_as_they_were(claim: Guarantee) -> None:
    again = claim_from_json(json.loads(json.dumps(make_plain(claim_to_json(claim)))))
    assert type(again) is type(claim)
    assert again == claim


def test_every_notion_has_such_a_test() -> None:
    marks = test_claims_of_every_notion_come_back_as_they_were.pytestmark  # type: ignore[attr-defined]
    tried = {type(claim) for claim in marks[0].args[1]}
    own = {kind for kind in auditor.privacy.guarantees.NOTIONS.values() if kind.__module__.startswith("auditor.")}
    assert own <= tried


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"chain": {"class": "os"}}, "os"),
        ({"chain": "output > 1"}, "str"),
        ({"claim": {"class": "Popen", "parameters": {}}}, "Popen"),
        ({"claim": {"class": "PureDP", "parameters": {"epsilon": -1}}}, "-1"),
        ({"claim": None}, "notion"),
        ({"counts": [1, 2]}, "counterexample"),
        ({"counts": [3, 2, 1]}, "counts"),
        ({"counts": [0, 0, 0], "before": [1, 1, "x"]}, "counts"),
        ({"before": [5, -1, 10]}, "counts"),
        ({"alpha": {"float": "2.0"}}, "alpha"),
        ({"alpha": 1}, "alpha"),
        ({"seed": "no number"}, "no number"),
        ({"data": {"x": {"array": "|V1"}, "y": []}}, "array"),
        ({"data": None}, "--data"),
        ({"data": None, "rows": {"x": ["0"], "y": [0], "added": []}}, "--data"),
    ],
)
def test_a_damaged_record_is_refused_with_what_is_wrong(found: Shrunk, changes: Any, shown: str) -> None:
    stored = to_replay(found, private=False) | changes
    with pytest.raises(SpecificationError, match=shown):
        replay_event(record(stored), count)


@pytest.mark.parametrize(
    ("fields", "shown"), [({"claimed": "ε = 2"}, "ε = 2.*ε = 1"), ({"alpha": 1e-3}, "0.001.*0.01")]
)
def test_a_counterexample_of_another_record_is_refused(found: Shrunk, fields: Any, shown: str) -> None:
    stored = to_replay(found, private=False)
    assert replay_event(record(stored, claimed=str(CLAIM), alpha=0.01), count).exactly
    with pytest.raises(SpecificationError, match=shown):
        replay_event(record(stored, **{"claimed": str(CLAIM), "alpha": 0.01, **fields}), count)


def test_an_event_that_cannot_be_counted_is_an_error_of_one_line(found: Shrunk) -> None:
    chain = json.loads(json.dumps(chain_to_json(Chain(NegativeZero(), "above", (0.5,)))).replace("null", "93"))
    with pytest.raises(SpecificationError, match="event cannot be counted in these outputs: TypeError"):
        replay_event(record(to_replay(found, private=False) | {"chain": chain}), count)


@pytest.mark.parametrize("content", [{"id": "claim", "counterexample": None}, {"id": "claim", "counterexample": {}}])
def test_a_record_without_a_counterexample_is_refused(content: Any) -> None:
    with pytest.raises(SpecificationError, match="claim"):
        replay_event(content, count)


def test_a_target_that_fails_is_an_error(found: Shrunk) -> None:
    def dies(data: Any, n: int, rng: np.random.Generator) -> Any:
        raise TargetError("the process died")

    with pytest.raises(TargetError, match="died"):
        replay_event(record(to_replay(found, private=False)), dies)


# ---------------------------------------------------------------------------------------- snippets


@pytest.mark.parametrize("claim", ["epsilon=1", PureDP(1.0), ApproxDP(1.0, 1e-9)])
def test_a_snippet_runs_and_finds_the_violation(
    found: Shrunk, claim: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = types.ModuleType("their_library")
    module.count = count  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_library", module)
    counts = EventCounts(found.x_count, found.y_count, found.n)
    text = write_snippet("their_library:count", claim, found.pair, found.chain.words()[0], counts)
    assert len(text.splitlines()) <= 15
    assert f"# {found.chain.words()[0]}: {found.x_count} of {found.n} draws on x, " in text
    space: dict[str, Any] = {}
    exec(text, space)
    assert "violates its claim" in capsys.readouterr().out
    assert space["result"].verdict == "violation"


def test_a_snippet_of_tables_imports_what_it_needs() -> None:
    frame = pd.DataFrame({"age": [1, 2]})
    text = write_snippet("module:name", "epsilon=1", Pair(frame, frame.iloc[:1]))
    assert "import pandas as pd" in text
    assert "import numpy" not in text
    compile(text, "snippet", "exec")


def test_a_snippet_shows_the_event_as_it_is() -> None:
    text = write_snippet("module:name", "epsilon=1", Pair([1], [0]), "output['index'] <= 0", EventCounts(3, 1, 4))
    assert "# output['index'] <= 0: 3 of 4 draws on x, 1 of 4 on y\n" in text


def test_a_snippet_of_functions_of_one_draw_says_so() -> None:
    assert "one_draw=True" in write_snippet("module:name", "epsilon=1", Pair([1], [0]), one_draw=True)


def test_datasets_that_are_too_large_make_no_snippet() -> None:
    rows = np.random.default_rng(0).random(500)
    assert write_snippet("module:name", "epsilon=1", Pair(rows, rows[1:])) == ""


def test_events_are_stored_as_the_record_of_one_event() -> None:
    stored = to_replay_unshrunk(PAIR, EVENT, 1, EventCounts(5, 0, 5), CLAIM, 0.01, private=False)
    assert stored["chain"] == chain_to_json(replace(EVENT, cuts=(4.5,)))


def test_of_long_datasets_the_rows_that_differ_are_shown() -> None:
    frame = pd.DataFrame({"age": range(2_000), "missing": np.nan})
    other = frame.assign(age=frame["age"].replace(1_500, -1))
    told = ", the same in all other columns"
    assert show_pair(frame, other) == (
        f"DataFrame of 2,000 rows, row 1,500: age = 1500{told}",
        f"DataFrame of 2,000 rows, row 1,500: age = -1{told}",
    )
    assert show_pair(frame, frame.drop(index=3)) == (
        "DataFrame of 2,000 rows, row 3: age = 3, missing = nan",
        "DataFrame of 1,999 rows, without row 3",
    )
    halves = frame["age"] / 2
    same, zero = halves.to_frame(), halves.replace(0.0, -0.0).to_frame()
    assert show_pair(same, zero)[1] == "DataFrame of 2,000 rows, row 0: age = -0.0", "not the same for all mechanisms"
    signed = frame.assign(missing=-frame["missing"], age=frame["age"].replace(7, -1))
    assert show_pair(frame, signed)[1] == f"DataFrame of 2,000 rows, row 7: age = -1{told}", "nan has no sign to see"
    many, none = show_pair(np.ones(200), np.zeros(200))
    assert many == "200 rows, row 0: 1.0; row 1: 1.0; row 2: 1.0; and 197 more"
    assert none.startswith("200 rows, row 0: 0.0; ")
    assert show_pair([0] * 99, [0] * 97)[1] == "97 rows, without 2 rows from row 97 on"
    assert show_pair([0], [1]) == ("[0]", "[1]"), "short ones are shown whole"
    assert show_pair("a" * 200, "b" * 200)[0].endswith("a..."), "a text has no rows"


def test_of_pairs_of_one_name_the_recorded_one_is_drawn() -> None:
    pairs = [Pair(np.zeros(n, dtype=int), np.eye(1, n, dtype=int)[0], "swap") for n in (40, 50, 50)]
    x, y = show_pair(pairs[0].x, pairs[0].y)
    record: dict[str, Any] = {"id": "own/sum", "counterexample": {"pair": "swap", "x": x, "y": y, "again": {}}}
    assert _find_pair(pairs, record) is pairs[0]
    record["counterexample"] |= dict(zip("xy", show_pair(pairs[1].x, pairs[1].y), strict=True))
    with pytest.raises(SpecificationError, match="'own/sum' has several pairs called 'swap'"):
        _find_pair(pairs, record)
    assert _find_pair(pairs[:2], record) is pairs[1]
    record["counterexample"]["again"]["data"] = {"x": 0, "y": 1}  # the record holds the data
    assert _find_pair(pairs, record) is not None
    record["counterexample"]["pair"] = "another"
    assert _find_pair(pairs, record) is None
