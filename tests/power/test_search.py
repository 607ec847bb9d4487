"""A search finds planted bugs that show on rare structures only, where the plain patterns find nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from auditor import AddRemoveOne, EdgeNeighbors, Pair, PureDP, ReplaceOne, Verdict, audit, pairs_of
from auditor.datasets import Relation, check_pairs

CLAIM = PureDP(1.0)
#: Budget of an audit, a quarter of it for the search: 187 pairs of 200 draws, both sides, before the comparison.
DRAWS = 200_000


def noisy(count: int, n: int, rng: np.random.Generator, level: float = 1.0) -> NDArray[np.int64]:
    """A count of sensitivity 1 with two-sided geometric noise of this level."""
    p = 1 - math.exp(-level)
    return count + rng.geometric(p, n) - rng.geometric(p, n)


def repeated(data: Any) -> bool:
    """The largest value is inside the domain and occurs exactly twice, all others once."""
    values, counts = np.unique(data, return_counts=True)
    return bool(0 < values[-1] < 9 and counts[-1] == 2 and counts.sum() == len(counts) + 1)


def count_of_rows(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A count of large values that nearly forgets its noise where the largest one is repeated."""
    return noisy(int(np.sum(np.asarray(data) > 4)), n, rng, 6.0 if repeated(data) else 1.0)


def diamond(graph: NDArray[np.int64]) -> bool:
    """Exactly two triangles, which share an edge, and a node without edges."""
    shared = (graph @ graph) * graph
    return bool(shared.sum() == 12 and shared.max() == 2 and not graph.sum(axis=0).all())


def count_of_edges(graph: NDArray[np.int64], n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A count of edges that nearly forgets its noise where the graph is a diamond with a node apart."""
    return noisy(int(graph.sum()) // 2, n, rng, 6.0 if diamond(graph) else 1.0)


def old_in_b(data: pd.DataFrame) -> int:
    return int(((data["age"] >= 65) & (data["city"] == "b")).sum())


def count_of_people(data: pd.DataFrame, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A count of rows in which some count three times: of level 3, not 1, and only where such a row comes or goes."""
    return noisy(len(data) + 2 * old_in_b(data), n, rng)


PEOPLE = pd.DataFrame({"age": [18, 30, 64, 65, 90, 40], "city": ["a", "b", "c", "d", "e", "f"]})


def patterns(relation: Relation, values: list[Any]) -> list[Pair]:
    return [pair for size in range(2, 9) for pair in relation.patterns(values, size)]


@dataclass(frozen=True)
class Case:
    """A planted bug, on which pairs it shows, and pairs on which it does not."""

    mechanism: Callable[..., Any]
    relation: Relation
    rows: Any
    shows: Callable[[Pair], bool]
    patterns: list[Pair]


CASES = {
    "a repeated value": Case(
        count_of_rows,
        ReplaceOne(),
        st.integers(0, 9),
        lambda pair: repeated(pair.x) or repeated(pair.y),
        patterns(ReplaceOne(), list(range(10))),
    ),
    "a diamond": Case(
        count_of_edges,
        EdgeNeighbors(),
        None,
        lambda pair: diamond(pair.x) or diamond(pair.y),
        patterns(EdgeNeighbors(), [0, 1]),
    ),
    "a combination of columns": Case(
        count_of_people,
        AddRemoveOne(),
        PEOPLE,
        lambda pair: old_in_b(pair.x) != old_in_b(pair.y),
        [
            Pair(PEOPLE.iloc[chosen], PEOPLE.iloc[chosen[1:]], f"row {chosen[0]} removed")
            for chosen in ([k, *(j for j in range(6) if j != k)] for k in range(6))
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_plain_patterns_do_not_show_the_bug(name: str) -> None:
    case = CASES[name]
    check_pairs(case.patterns, case.relation)
    assert not any(case.shows(pair) for pair in case.patterns)
    # On them the mechanism keeps its claim: an alarm has probability 1e-6.
    result = audit(case.mechanism, CLAIM, case.patterns, draws=DRAWS // 4, alpha=1e-6)
    assert result.verdict != Verdict.VIOLATION


#: Probability that an audit finds the bug, taken for granted: 20, 18 and 20 of 20 audits of the three cases did.
FOUND = 0.75
#: Audits of each case at most, and how many must find the bug: an engine as good as that misses this with probability
#: 6e-7.
AUDITS, ENOUGH = 13, 2


def test_the_bound_of_this_test_is_what_it_says() -> None:
    assert stats.binom.cdf(ENOUGH - 1, AUDITS, FOUND) <= 1e-6


@pytest.mark.parametrize("name", CASES)
def test_a_search_finds_the_bug(name: str) -> None:
    case = CASES[name]
    strategy = pairs_of(case.relation, case.rows)
    found = 0
    for seed in range(AUDITS):
        result = audit(case.mechanism, CLAIM, strategy, draws=DRAWS, seed=seed, relation=case.relation)
        found += result.verdict == Verdict.VIOLATION
        if found == ENOUGH:  # the others would change nothing
            return
    pytest.fail(f"{found} of {AUDITS} audits found it")
