"""Undirected simple graphs, as symmetric 0/1 adjacency arrays, that differ in one edge or in one node's edges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from auditor.datasets.relation import Pair
from auditor.errors import SpecificationError

Graph = NDArray[np.int64]

CHANGES = ("rewire", "add-remove")


def check_adjacency(name: str, data: Any) -> NDArray[Any]:
    """Check that a dataset is a graph.

    Parameters
    ----------
    name : str
        The pair's name, for the error.
    data : array_like of shape (n, n)
        Symmetric, zeros and ones, zeros on the diagonal.

    Raises
    ------
    SpecificationError
        If it is not; shows the first entry that is wrong.
    """
    try:
        graph = np.asarray(data)
    except ValueError as error:
        raise SpecificationError(f"{name}: not a graph: the rows of its adjacency array differ in length") from error
    if graph.size == 0 and graph.shape in ((0,), (0, 0)):  # JSON writes the graph without nodes as []
        return np.zeros((0, 0), dtype=np.int64)
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
        raise SpecificationError(f"{name}: not a graph: expected an adjacency array of shape (n, n), got {graph.shape}")
    if graph.dtype.kind not in "biuf":
        raise SpecificationError(f"{name}: not a graph: expected zeros and ones, got entries of type {graph.dtype}")
    for wrong, reason in (
        ((graph != 0) & (graph != 1), "expected 0 or 1"),
        (graph != graph.T, "the array is not symmetric there"),
        ((graph != 0) & np.eye(len(graph), dtype=bool), "a node has no edge to itself"),
    ):
        if wrong.any():
            i, j = np.argwhere(wrong)[0].tolist()
            raise SpecificationError(f"{name}: not a graph: entry ({i}, {j}) is {graph[i, j]}: {reason}")
    return graph


def _differing_entries(pair: Pair, relation: str) -> NDArray[np.bool_]:
    """Where two graphs on the same nodes differ, shape (n, n)."""
    x, y = check_adjacency(pair.name, pair.x), check_adjacency(pair.name, pair.y)
    if x.shape != y.shape:
        raise SpecificationError(f"{pair.name}: not neighbours under {relation}: {len(x)} nodes against {len(y)}")
    return np.asarray(x != y)


def _check_values(values: Sequence[Any]) -> None:
    """A graph's domain is that of an edge."""
    wrong = [v for v in values if not (isinstance(v, int | float | np.generic) and v in (0, 1))]
    if wrong:
        raise SpecificationError(f"the domain of a graph is that of an edge, 0 and 1, got {wrong[0]!r}")


@dataclass(frozen=True)
class EdgeNeighbors:
    """Graphs on the same nodes that differ in one edge.

    Catalogue 003, noisy_local_sensitivity_triangles.
    """

    name: ClassVar[str] = "add or remove one edge"

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        moved = np.argwhere(np.triu(_differing_entries(pair, self.name)))
        if len(moved) != 1:
            edges = ", ".join(f"({i}, {j})" for i, j in moved[:3].tolist())
            which = f", among them {edges}" if len(moved) else ""
            raise SpecificationError(
                f"{pair.name}: not neighbours under {self.name}: {len(moved)} edges differ{which}, expected exactly 1"
            )

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """Pairs that differ in an edge and make counts sensitive.

        Graphs have ``size`` nodes.

        Values are those of an edge, 0 and 1. The edge between the hubs of K_{2, size - 2} makes size - 2 triangles; a
        missing spoke of it raises the local sensitivity of the number of triangles by one.

        See `Relation.patterns`.
        """
        _check_values(values)
        yield from _distinct_pairs(self._patterns(max(size, 2)))

    def _patterns(self, size: int) -> Iterator[Pair]:
        last, graphs = size - 1, make_shapes(size)
        for name in ("empty graph", "complete graph", "star", "path", "two cliques"):
            for i, j in sorted({(0, 1), (0, last), (last - 1, last), (max(size // 2 - 1, 0), max(size // 2, 1))}):
                yield _edge_pair(graphs[name], i, j, f"{name}, edge ({i}, {j})")
        yield _edge_pair(graphs["two hubs"], 0, 1, "two hubs of all other nodes, the edge between them")
        yield _edge_pair(graphs["two hubs"], 0, last, "two hubs of all other nodes, a spoke")
        hubs = graphs["two hubs"].copy()
        hubs[0, 1] = hubs[1, 0] = 1
        yield _edge_pair(hubs, 0, last, "two joined hubs of all other nodes, a spoke")
        yield _edge_pair(graphs["clique and a node"], 0, last, "clique and a node, an edge between them")
        yield _edge_pair(np.zeros((2, 2), dtype=np.int64), 0, 1, "two nodes, the edge between them")


@dataclass(frozen=True)
class NodeNeighbors:
    """Graphs that differ in one node.

    Parameters
    ----------
    change : {"rewire", "add-remove"}
        "rewire": the graphs have the same nodes and differ in the edges of one of them only. "add-remove": one graph is
        the other without one node and its edges, the order of the other nodes kept.
    """

    change: str = "rewire"
    name: ClassVar[str] = "change one node"

    def __post_init__(self) -> None:
        if self.change not in CHANGES:
            raise SpecificationError(f"change must be one of {', '.join(CHANGES)}, got {self.change!r}")

    def check(self, pair: Pair) -> None:
        """See `Relation`."""
        reason = self._check_rewired_node(pair) if self.change == "rewire" else self._check_removed_node(pair)
        if reason:
            raise SpecificationError(f"{pair.name}: not neighbours under {self.name} ({self.change}): {reason}")

    def _check_rewired_node(self, pair: Pair) -> str:
        moved = _differing_entries(pair, self.name)
        count = int(moved.sum()) // 2
        if not count:
            return "0 edges differ"
        degrees = moved.sum(axis=1)
        node = int(np.argmax(degrees))
        if int(degrees[node]) == count:
            return ""
        moved[node] = moved[:, node] = False
        i, j = np.argwhere(moved)[0].tolist()
        return f"{count} edges differ and no node has all of them: beside those of node {node} there is ({i}, {j})"

    def _check_removed_node(self, pair: Pair) -> str:
        x, y = check_adjacency(pair.name, pair.x), check_adjacency(pair.name, pair.y)
        if abs(len(x) - len(y)) != 1:
            return f"{len(x)} nodes against {len(y)}"
        long, short = (x, y) if len(x) > len(y) else (y, x)
        wrong = _wrong_without(long, short)
        if (wrong == 0).any():
            return ""
        best = int(np.argmin(wrong))
        return (
            f"the smaller graph is not the larger one without one node: without node {best}, the best choice, "
            f"{int(wrong[best])} edges differ"
        )

    def patterns(self, values: Sequence[Any], size: int) -> Iterator[Pair]:
        """Pairs that differ in the edges of one node.

        It gets all edges, or half of them; or it is added, down to the graph without nodes.

        Values are those of an edge, 0 and 1.

        See `Relation.patterns`.
        """
        _check_values(values)
        yield from _distinct_pairs(self._patterns(max(size, 2)))

    def _patterns(self, size: int) -> Iterator[Pair]:
        graphs = make_shapes(size)
        nodes = np.arange(size)
        for name in ("empty graph", "complete graph", "star", "path", "two cliques", "two hubs"):
            for node in sorted({0, size // 2, size - 1}):
                base = graphs[name]
                none, full = (_with_edges(base, node, np.full(size, edge)) for edge in (0, 1))
                half = _with_edges(base, node, (nodes % 2 != node % 2).astype(np.int64))
                if self.change == "rewire":
                    yield Pair(none, full, f"{name}, node {node} with no edges or all")
                    yield Pair(half, full, f"{name}, node {node} with half of its edges or all")
                else:
                    less = np.delete(np.delete(base, node, axis=0), node, axis=1)
                    yield Pair(base, less, f"{name}, node {node} removed")
                    yield Pair(full, less, f"{name}, node {node} with all edges removed")
        if self.change == "rewire":
            yield Pair(make_shapes(2)["empty graph"], make_shapes(2)["complete graph"], "two nodes, one rewired")
        else:
            yield Pair(np.zeros((1, 1), dtype=np.int64), np.zeros((0, 0), dtype=np.int64), "one node against none")


def _wrong_without(long: NDArray[Any], short: NDArray[Any]) -> NDArray[np.int64]:
    """Count the edges in which ``short`` differs from ``long`` without node v, for each v, shape (n + 1,).

    Of two nodes of the smaller graph, both stand before v, or both at or behind it, or one on each side; in the larger
    graph those from v on have moved by one. Each of the three counts is a cumulative sum, so all nodes take O(n^2).
    """
    n = len(short)
    before = np.triu(long[:n, :n] != short)
    behind = np.triu(long[1:, 1:] != short)
    across = long[:n, 1:] != short
    both_before = np.concatenate([[0], np.cumsum(before.sum(axis=0))])
    both_behind = np.concatenate([np.cumsum(behind.sum(axis=1)[::-1])[::-1], [0]])
    rows = np.concatenate([[0], np.cumsum(across.sum(axis=1))])  # rows before v, all columns
    square = np.zeros((n + 1, n + 1), dtype=np.int64)
    square[1:, 1:] = np.cumsum(np.cumsum(across, axis=0), axis=1)  # rows before v, columns before v
    found: NDArray[np.int64] = both_before + both_behind + rows - np.diagonal(square)
    return found


def make_shapes(size: int) -> dict[str, Graph]:
    """Graphs of ``size`` >= 1 nodes that stand for extremes, by name."""
    nodes = np.arange(size)
    distance = np.abs(nodes[:, None] - nodes[None, :])
    other = distance > 0
    first, half = nodes == 0, nodes < size // 2
    hubs = nodes < 2
    inner = nodes < size - 1
    found = {
        "empty graph": np.zeros((size, size), dtype=bool),
        "complete graph": other,
        "star": other & (first[:, None] | first[None, :]),
        "path": distance == 1,
        "two cliques": other & (half[:, None] == half[None, :]),
        "two hubs": hubs[:, None] != hubs[None, :],
        "clique and a node": other & inner[:, None] & inner[None, :],
    }
    return {name: graph.astype(np.int64) for name, graph in found.items()}


def _distinct_pairs(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """The pairs whose graphs differ, each once: small graphs of different shapes are often the same."""
    seen: set[tuple[bytes, bytes]] = set()
    for pair in pairs:
        key = (pair.x.tobytes(), pair.y.tobytes())
        if key[0] != key[1] and key not in seen:
            seen.add(key)
            yield pair


def _edge_pair(graph: Graph, i: int, j: int, name: str) -> Pair:
    """Pair of a graph without and with an edge."""
    less, more = graph.copy(), graph.copy()
    less[i, j] = less[j, i] = 0
    more[i, j] = more[j, i] = 1
    return Pair(less, more, name)


def _with_edges(graph: Graph, node: int, edges: Graph) -> Graph:
    """Return the graph with a node's edges replaced; its entry for itself is ignored."""
    found = graph.copy()
    found[node] = found[:, node] = np.where(np.arange(len(graph)) == node, 0, edges)
    return found
