"""The loop of all audits: sizes of chunks, budgets, and what ends it."""

from __future__ import annotations

import pytest

from auditor.audits.loop import ChunkLoop, ChunkRule

RULE = ChunkRule(8, growth=0.15, smallest=5, largest=1_000, late=(2_000, 0.2))


@pytest.mark.parametrize(
    ("drawn", "left", "size"),
    [
        (0, None, 8),
        (7, None, 8),
        (8, None, 5),
        (100, None, 15),
        (1_999, None, 300),
        (2_000, None, 400),
        (9_000, None, 1_000),
        (0, 3, 3),
        (100, 0, 0),
        (9_000, 999, 999),
    ],
)
def test_a_rule_sizes_chunks_by_what_was_drawn(drawn: int, left: int | None, size: int) -> None:
    assert RULE.size(drawn, left) == size


def test_later_chunks_are_no_smaller_than_the_first_unless_the_rule_says_so() -> None:
    assert ChunkRule(50, growth=0.25).size(60) == 50


def test_the_loop_spends_its_budget_to_the_draw() -> None:
    loop = ChunkLoop(ChunkRule(4, growth=0.25), 30)
    sizes = [(number, loop.begun, loop.take()) for number in loop]
    assert sizes == [(0, False, 4), (1, True, 4), (2, True, 4), (3, True, 4), (4, True, 4), (5, True, 5), (6, True, 5)]
    assert (loop.used, loop.left, loop.truncated_by) == (30, 0, None)


def test_the_loop_stops_after_so_many_chunks_earlier_ones_counted() -> None:
    loop = ChunkLoop(RULE, 1_000, chunks=5, number=3)
    assert [(number, loop.take(7)) for number in loop] == [(3, 7), (4, 7)]
    assert loop.truncated_by is None


def test_time_ends_the_loop_after_one_chunk_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("auditor.audits.loop.time.monotonic", lambda: clock[0])
    loop = ChunkLoop(RULE, 1_000, seconds=1.0)
    for _ in loop:
        clock[0] += 2.0
        loop.take()
    assert (loop.number, loop.truncated_by) == (1, "time")


def test_a_verdict_is_no_truncation() -> None:
    loop = ChunkLoop(RULE, 1_000, seconds=60.0)
    for _ in loop:
        loop.take()
        break
    assert (loop.used, loop.truncated_by) == (8, None)
