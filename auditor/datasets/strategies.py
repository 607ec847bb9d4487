"""hypothesis strategies for pairs of neighbouring datasets.

hypothesis is imported inside functions only, so that `import auditor` stays light.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from auditor.datasets import (
    AddRemoveAnyOrder,
    AddRemoveOne,
    AnswersWithin,
    EdgeNeighbors,
    NodeNeighbors,
    Pair,
    PerUser,
    Relation,
    ReplaceLabel,
    ReplaceOne,
)
from auditor.datasets.graphs import Graph, make_shapes
from auditor.datasets.query_answers import SLACK
from auditor.datasets.row_sources import RowSource, source_of
from auditor.datasets.rows import get_entry, same_row, with_entry
from auditor.errors import SpecificationError, require_library

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

#: Largest dataset unless told otherwise: small ones hold most structures, and are cheap to draw from and to read.
MAX_SIZE = 8
#: Distinct rows of datasets that are made of few; ties and repeats are where counts and medians go wrong.
_FEW = 3
#: Base answers are this many sensitivities away from 0 at most; arbitrary, far enough for any threshold in between.
_FAR = 10


def is_strategy(value: object) -> TypeGuard[SearchStrategy[Pair]]:
    """Whether a value is a hypothesis strategy; does not import hypothesis."""
    if sys.modules.get("hypothesis") is None:  # then nobody can have made one
        return False
    from hypothesis.strategies import SearchStrategy

    return isinstance(value, SearchStrategy)


def pairs_of(
    relation: Relation, rows: Any = None, *, min_size: int = 0, max_size: int = MAX_SIZE
) -> SearchStrategy[Pair]:
    """Strategy for pairs of neighbours; every pair passes ``relation.check``.

    Parameters
    ----------
    relation : Relation
        One of those of `auditor.datasets`.
    rows : SearchStrategy, DataFrame, array, list or tuple
        A strategy for one row, or an example dataset, whose columns' types, ranges and categories then make rows;
        observed rows are used as well, so the pairs may show them. Datasets are of the example's kind; rows of a
        strategy become an array where they are numbers (or sequences of numbers of one length), and a list otherwise.
        For `AnswersWithin` rows are answers, by default within 10 sensitivities of 0. Graphs take none.
    min_size, max_size : int
        Bounds on the rows (answers, nodes) of both datasets.

    Returns
    -------
    SearchStrategy of Pair

    Raises
    ------
    SpecificationError
        If there is no strategy for the relation, no rows are given where they are needed, or no pair has such sizes.
    """
    require_library("hypothesis", "strategies of pairs")
    from hypothesis import strategies as st

    if not all(isinstance(size, int) and not isinstance(size, bool) for size in (min_size, max_size)) or not (
        0 <= min_size <= max_size
    ):
        raise SpecificationError(
            f"sizes must be integers with 0 <= min_size <= max_size, got {min_size!r} and {max_size!r}"
        )
    makers: dict[type[Any], Callable[..., Pair]] = {
        ReplaceOne: _replace_one,
        AddRemoveOne: _add_remove_one,
        AddRemoveAnyOrder: _add_remove_one,
        AnswersWithin: _answers_within,
        ReplaceLabel: _replace_label,
        PerUser: _per_user,
        EdgeNeighbors: _edge,
        NodeNeighbors: _node,
    }
    maker = makers.get(type(relation))
    if maker is None:
        raise SpecificationError(
            f"no strategy for the relation {relation!r}: give one of your own, of auditor.Pair, for example by "
            "hypothesis.strategies.builds"
        )
    if isinstance(relation, EdgeNeighbors | NodeNeighbors):
        if rows is not None:
            raise SpecificationError(f"graphs have no rows, got rows={rows!r}")
    elif rows is None and isinstance(relation, AnswersWithin):
        far = _FAR * relation.sensitivity
        rows = st.sampled_from([0.0, -far, far]) | st.floats(-far, far)
    elif rows is None:
        raise SpecificationError("rows must be a strategy for one row or an example dataset, got None")
    _check_sizes(relation, min_size, max_size)
    arguments = () if rows is None else (source_of(rows),)
    return st.composite(maker)(relation, *arguments, min_size, max_size)


def _check_sizes(relation: Relation, min_size: int, max_size: int) -> None:
    """Refuse sizes that no pair of the relation has."""
    graph = isinstance(relation, EdgeNeighbors) or (isinstance(relation, NodeNeighbors) and relation.change == "rewire")
    moves = isinstance(relation, AddRemoveOne) or getattr(relation, "change", "") == "add-remove"
    least = 2 if graph else 1
    if max_size < least or (moves and min_size == max_size):
        wanted = "max_size above min_size" if moves and min_size == max_size else f"max_size of at least {least}"
        raise SpecificationError(
            f"no pair under {relation.name} has sizes from {min_size} to {max_size}, expected {wanted}"
        )


def _draw_integer(draw: DrawFn, low: int, high: int) -> int:
    from hypothesis import strategies as st

    return draw(st.integers(low, high))


def _list(draw: DrawFn, row: SearchStrategy[Any], low: int, high: int) -> list[Any]:
    """Rows, all drawn afresh or all from a few: wide domains seldom repeat a value by chance."""
    from hypothesis import strategies as st

    if draw(st.booleans()):
        row = st.sampled_from(draw(st.lists(row, min_size=1, max_size=_FEW)))
    return draw(st.lists(row, min_size=low, max_size=high))


def _draw_other_row(draw: DrawFn, row: SearchStrategy[Any], than: Any) -> Any:
    return draw(row.filter(lambda found: not same_row(found, than)))


def _check_pair(pair: Pair, relation: Relation) -> Pair:
    """Give the pair, or reject it: as the example's type its rows may be equal, an answer may be too large to move."""
    from hypothesis import reject

    try:
        relation.check(pair)
    except SpecificationError:
        reject()
    return pair


def _replace_one(draw: DrawFn, relation: ReplaceOne, source: RowSource, low: int, high: int) -> Pair:
    x = _list(draw, source.row, max(low, 1), high)
    k = _draw_integer(draw, 0, len(x) - 1)
    y = [*x[:k], _draw_other_row(draw, source.row, x[k]), *x[k + 1 :]]
    return _check_pair(Pair(*source.build(x, y), f"row {k} of {len(x)} replaced"), relation)


def _add_remove_one(draw: DrawFn, relation: AddRemoveOne, source: RowSource, low: int, high: int) -> Pair:
    from hypothesis import strategies as st

    x = _list(draw, source.row, low + 1, high)
    k = _draw_integer(draw, 0, len(x) - 1)
    y = [*x[:k], *x[k + 1 :]]
    order = ""
    if isinstance(relation, AddRemoveAnyOrder) and draw(st.booleans()):
        y, order = draw(st.permutations(y)), ", in another order"
    if draw(st.booleans()):
        return _check_pair(Pair(*source.build(y, x), f"row {k} added to {len(y)}{order}"), relation)
    return _check_pair(Pair(*source.build(x, y), f"row {k} of {len(x)} removed{order}"), relation)


def _answers_within(draw: DrawFn, relation: AnswersWithin, source: RowSource, low: int, high: int) -> Pair:
    from hypothesis import strategies as st

    s = relation.sensitivity
    answers = _list(draw, source.row.filter(_is_finite), max(low, 1), high)
    moves = st.sampled_from([s, -s, 0.0]) | st.floats(-s, s)
    x = np.array(answers, dtype=np.float64)
    moved = np.array([draw(moves) for _ in answers])
    with np.errstate(over="ignore"):  # beyond the largest float is no pair
        y = x + moved
        # Rounding may carry a large answer past the sensitivity; the next number towards x is then within it.
        y = np.where(np.abs(y - x) > s * (1 + SLACK), np.nextafter(y, x), y)
    return _check_pair(Pair(x, y, f"{int(np.count_nonzero(x != y))} of {len(x)} answers moved"), relation)


def _is_finite(answer: Any) -> bool:
    try:
        return math.isfinite(answer)
    except OverflowError:  # an integer larger than any float
        return False
    except TypeError as error:
        raise SpecificationError(f"query answers must be numbers, got {answer!r}") from error


def _replace_label(draw: DrawFn, relation: ReplaceLabel, source: RowSource, low: int, high: int) -> Pair:
    place = source.place(relation.label)
    x = _list(draw, source.row, max(low, 1), high)
    k = _draw_integer(draw, 0, len(x) - 1)
    old = get_entry(x[k], place)
    label = get_entry(draw(source.row.filter(lambda row: not same_row(get_entry(row, place), old))), place)
    y = [*x[:k], with_entry(x[k], place, label), *x[k + 1 :]]
    return _check_pair(Pair(*source.build(x, y), f"label {k} of {len(x)} replaced"), relation)


def _per_user(draw: DrawFn, relation: PerUser, source: RowSource, low: int, high: int) -> Pair:
    from hypothesis import assume
    from hypothesis import strategies as st

    place = source.place(relation.key)
    most = high if relation.most is None else min(relation.most, high)
    gone = relation.change == "add-remove"
    # Rows of the user in x and y; their difference is at most that of the sizes.
    own_x = _draw_integer(draw, 1, min(most, high - low) if gone else most)
    own_y = 0 if gone else _draw_integer(draw, max(1, own_x - (high - low)), min(most, own_x + high - low))
    user = get_entry(draw(source.row), place)
    others = source.row.filter(lambda row: not same_row(get_entry(row, place), user))
    least, room = max(0, low - min(own_x, own_y)), high - max(own_x, own_y)
    rest = _at_most(_list(draw, others, least, room), place, relation.most) if room else []
    assume(len(rest) >= least)
    x, y = (
        _mix_rows(draw, rest, [with_entry(draw(source.row), place, user) for _ in range(n)]) for n in (own_x, own_y)
    )
    if gone and draw(st.booleans()):
        return _check_pair(Pair(*source.build(y, x), f"{own_x} rows of one user added to {len(rest)}"), relation)
    what = "removed" if gone else f"replaced by {own_y}"
    return _check_pair(Pair(*source.build(x, y), f"{own_x} rows of one user {what}, {len(rest)} of others"), relation)


def _at_most(rows: Sequence[Any], place: int | str, most: int | None) -> list[Any]:
    """The first ``most`` rows of every user."""
    kept: list[Any] = []
    for row in rows:
        same = sum(same_row(get_entry(other, place), get_entry(row, place)) for other in kept)
        if most is None or same < most:
            kept.append(row)
    return kept


def _mix_rows(draw: DrawFn, rest: list[Any], own: list[Any]) -> list[Any]:
    """The rows of both, those of ``rest`` in their order: the user's in one block, or each at a place of its own."""
    from hypothesis import strategies as st

    k = _draw_integer(draw, 0, len(rest))
    if draw(st.booleans()):
        return [*rest[:k], *own, *rest[k:]]
    found = list(rest)
    for row in own:
        found.insert(_draw_integer(draw, 0, len(found)), row)
    return found


def _graph(draw: DrawFn, n: int) -> tuple[Graph, str]:
    """A graph of n nodes, an extreme one with a few edges flipped or any, and what it is in words."""
    from hypothesis import strategies as st

    upper = [(i, j) for i in range(n) for j in range(i + 1, n)]
    known = make_shapes(n)
    name = draw(st.sampled_from([*known, ""])) if upper else "empty graph"
    if name:
        flips = draw(st.lists(st.sampled_from(upper), max_size=_FEW, unique=True)) if upper else []
        edges, words = known[name], f"{name} but for {len(flips)} edges" if flips else name
    else:
        flips = [pair for pair in upper if draw(st.booleans())]
        edges, words = known["empty graph"], f"graph of {len(flips)} edges"
    for i, j in flips:
        edges[i, j] = edges[j, i] = 1 - edges[i, j]
    return edges, f"{words} on {n} nodes"


def _edge(draw: DrawFn, relation: EdgeNeighbors, low: int, high: int) -> Pair:
    n = _draw_integer(draw, max(low, 2), high)
    x, words = _graph(draw, n)
    i = _draw_integer(draw, 0, n - 2)
    j = _draw_integer(draw, i + 1, n - 1)
    y = x.copy()
    y[i, j] = y[j, i] = 1 - y[i, j]
    return _check_pair(Pair(x, y, f"{words}, edge ({i}, {j})"), relation)


def _node(draw: DrawFn, relation: NodeNeighbors, low: int, high: int) -> Pair:
    from hypothesis import strategies as st

    rewire = relation.change == "rewire"
    n = _draw_integer(draw, max(low, 2) if rewire else low + 1, high)
    x, words = _graph(draw, n)
    k = _draw_integer(draw, 0, n - 1)
    if rewire:
        others = [v for v in range(n) if v != k]
        flips = draw(st.lists(st.sampled_from(others), min_size=1, unique=True) | st.just(others))
        y = x.copy()
        y[k, flips] = y[flips, k] = 1 - y[k, flips]
        pair = Pair(x, y, f"{words}, {len(flips)} edges of node {k}")
    else:
        y = np.delete(np.delete(x, k, axis=0), k, axis=1)
        added = draw(st.booleans())
        pair = Pair(y, x, f"{words}, node {k} added") if added else Pair(x, y, f"{words}, node {k} removed")
    return _check_pair(pair, relation)
