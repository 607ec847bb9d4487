"""Targets that change the datasets that they are given: no audit is about what they leave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import auditor
from auditor import Pair, PureDP
from auditor.audits.accuracy import Absolute
from auditor.audits.adversaries.releases import release_tables
from auditor.audits.context import watch_datasets
from auditor.audits.counterexamples.replay import replay_event
from auditor.errors import TargetError
from auditor.privacy.exact import FiniteLaw
from tests.commandline import Command


class Leaking:
    """It shows the bit once, and no more: the dataset is 0 from then on."""

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        bits = np.where(rng.random(n) < 0.99, data[0], 1 - data[0])
        data[0] = 0
        return bits

    def law(self, data: Any) -> FiniteLaw:
        return FiniteLaw((0, 1), np.array([0.99, 0.01]))


@pytest.mark.parametrize("kind", [np.array, list])
def test_datasets_that_became_equal_are_no_pass(kind: Any) -> None:
    result = auditor.audit(Leaking(), PureDP(1.0), Pair(kind([0]), kind([1]), "one bit"), draws=20_000)
    assert result.verdict == "error"
    assert "changed 1 of 2 datasets" in result.message


def test_datasets_that_are_no_neighbours_any_more_are_no_violation() -> None:
    def growing(data: Any, n: int, rng: np.random.Generator) -> Any:
        noise = rng.geometric(0.63, n) - rng.geometric(0.63, n)
        data += [1] * data[0]
        return len(data) + noise

    assert auditor.audit(growing, PureDP(1.0), Pair([0], [1], "one bit"), draws=4_000).verdict == "error"


def test_conformity_and_accuracy_are_of_the_dataset_that_was_given() -> None:
    found = (
        auditor.check_conformity(Leaking(), np.array([1])),
        auditor.check_accuracy(Leaking(), np.array([1]), Absolute(0), at_most=0, beta=0.1),
    )
    for result in found:
        assert result.verdict == "error"
        assert "changed 1 of 1 datasets" in result.message


def test_a_ledger_records_the_error(dpaudit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("def bit(data, n, rng):\n    data[0] = 0\n    return rng.integers(2, size=n)\n", "utf-8")
    attack = ("attack", "mine.py:bit", "--claim", "epsilon=1", "--relation", "replace-one", "--domain", "0,1")
    assert dpaudit(*attack, "--rows", "1", "--draws", "4000", "--ledger", "ledger").code == 2
    assert "error" in dpaudit("ledger", "ledger").out


def test_the_command_that_checks_a_target_finds_it(dpaudit: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def f(data, n, rng):\n    data += 1\n    return rng.random(n)\n", encoding="utf-8")
    said = dpaudit("check", f"{file}:f")
    assert said.code == 2, said
    assert "changed 1 of 1 datasets" in said.err


def test_what_cannot_be_compared_is_not_watched() -> None:
    class Own:
        rows = (1, 2)

    data: list[Any] = [Own(), pd.Series([1, 2]), (value for value in "ab"), {"a": np.array([np.nan, -0.0])}]
    with watch_datasets(data):
        data[0].rows = (3,)
    with pytest.raises(TargetError, match="changed 1 of 2"), watch_datasets(data):
        data[3]["a"][1] = 0.0


def flipped(data: Any, n: int, rng: np.random.Generator) -> Any:
    """It leaves 0, and so the datasets are equal from the second call on."""
    found = np.full(n, data[0])
    data[0] = 0
    return found


@pytest.mark.parametrize(
    "look", [auditor.trace, lambda *of: auditor.prove(*of[:2], pairs=of[2])], ids=["trace", "prove"]
)
def test_runs_with_replaced_randomness_are_of_what_was_given(look: Any) -> None:
    def deep(data: Any, n: int, rng: np.random.Generator) -> Any:
        return flipped(data[0], n, rng)

    assert look(flipped, PureDP(1.0), Pair([0], [1], "one bit")).verdict == "violation"  # each run has its own list
    with pytest.raises(TargetError, match="changed 1 of 2 datasets"):
        look(deep, PureDP(1.0), Pair([[0]], [[1]], "one row"))


def test_a_counterexample_is_drawn_again_on_what_was_recorded() -> None:
    def shows(data: Any, n: int, rng: np.random.Generator) -> Any:
        return np.full(n, data[0])

    found = auditor.audit(shows, PureDP(1.0), Pair([0], [1], "one bit"), draws=2_000)
    assert replay_event(found.to_json(), shows).reproduced
    with pytest.raises(TargetError, match="changed 1 of 2 datasets"):
        replay_event(found.to_json(), flipped)


def test_tables_of_a_game_are_not_changed_by_its_target() -> None:
    class Emptying:
        def each(self, stack: Any, rng: np.random.Generator) -> Any:
            sums = stack.sum(axis=1)
            stack[:] = 0
            return sums

    stack = np.ones((3, 2, 4), np.int8)
    found = release_tables(Emptying(), stack, np.random.default_rng(0))  # type: ignore[arg-type]
    assert (found == 2).all()
    assert stack.all()


def test_attributes_of_objects_are_watched_but_not_their_caches() -> None:
    class Table:
        def __init__(self) -> None:
            self.rows: list[Any] = [[1, 2], {"a": np.array([3.0])}]
            self.index: Any = None
            self.seen: dict[str, int] = {}

    def fill(table: Table) -> None:
        table.index, table.seen["a"], table.length = 3, 1, 2  # type: ignore[attr-defined]

    def shorten(table: Table) -> None:
        table.rows.pop()

    def add(table: Table) -> None:
        table.rows[1]["a"] += 1.0

    def remove(table: Table) -> None:
        del table.rows

    inside = Table()
    with watch_datasets([inside, [inside]]):
        fill(inside)
    for change in (shorten, add, remove):
        table = Table()
        with pytest.raises(TargetError, match=r"changed 2 of 2 .*'rows'"), watch_datasets([table, [table]]):
            change(table)
