"""Document 003, section 2.2.3: triangles with noise scaled to a noisy local sensitivity.

The document claims (epsilon, delta) without a proof. With the noisy bound hidden no pair is found that breaks it: on
the pairs here delta(epsilon) is below a hundredth of delta. With the bound shown (epsilon, delta) fails, and on the
pairs here (2 epsilon, delta / 2) holds. The document does not show the bound, so that is a warning to implementers and
no error of the text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy import Absolute, Setting
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    broken_and_deviating,
    conformity,
    deviating,
    entry,
    expectation,
    inequality,
    privacy,
    reference,
    scaling,
)
from auditor.datasets import EdgeNeighbors, Pair
from auditor.privacy.exact import LaplaceCurve, composed
from auditor.privacy.guarantees import ApproxDP, DeltaDP
from mechanisms.stability.triangles import (
    MUTANTS,
    NoisyBoundPublished,
    NoisyLocalSensitivity,
    TriangleCounts,
    counts,
    log_density,
)

Graph = NDArray[np.int64]

EDGE = EdgeNeighbors()

#: Zachary's karate club: who met whom outside the club, 78 pairs of 34 members, numbered from 0; for each member those
#: of a higher number. Source: Zachary (1977), "An information flow model for conflict and fission in small groups".
_KARATE: dict[int, tuple[int, ...]] = {
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31),
    1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32),
    3: (7, 12, 13),
    4: (6, 10),
    5: (6, 10, 16),
    6: (16,),
    8: (30, 32, 33),
    9: (33,),
    13: (33,),
    14: (32, 33),
    15: (32, 33),
    18: (32, 33),
    19: (33,),
    20: (32, 33),
    22: (32, 33),
    23: (25, 27, 29, 32, 33),
    24: (25, 27, 31),
    25: (31,),
    26: (29, 33),
    27: (33,),
    28: (31, 33),
    29: (32, 33),
    30: (32, 33),
    31: (32, 33),
    32: (33,),
}


def graph_of(nodes: int, edges: Sequence[tuple[int, int]]) -> Graph:
    """Adjacency array of shape (nodes, nodes)."""
    found = np.zeros((nodes, nodes), dtype=np.int64)
    for i, j in edges:
        found[i, j] = found[j, i] = 1
    return found


def _pair(graph: Graph, i: int, j: int, name: str) -> Pair:
    """The graph without an edge, and with it."""
    without, with_it = graph.copy(), graph.copy()
    without[i, j] = without[j, i] = 0
    with_it[i, j] = with_it[j, i] = 1
    return Pair(without, with_it, name)


@cache
def karate() -> Graph:
    """Zachary's karate club: 34 members, 45 triangles, local sensitivity 10 (members 32 and 33, who are friends)."""
    return graph_of(34, [(i, j) for i, others in _KARATE.items() for j in others])


def two_hubs(leaves: int) -> Graph:
    """Two nodes, each joined to all others and not to one another: no triangles, local sensitivity ``leaves``."""
    return graph_of(leaves + 2, [(hub, leaf) for hub in (0, 1) for leaf in range(2, leaves + 2)])


def rising(shared: int) -> Graph:
    """Nodes 0 and 1 have ``shared`` common neighbours, and so have 0 and 2, of whom 2 is one of the former.

    The edge between 0 and 1 makes that many triangles, and 1 a further common neighbour of 0 and 2.
    """
    first, second = range(2, shared + 2), range(shared + 2, 2 * shared + 2)
    ends = ((0, first), (1, first), (0, second), (2, second))
    return graph_of(2 * shared + 2, [(end, node) for end, nodes in ends for node in nodes])


@cache
def network(shared: int) -> Graph:
    """300 persons who each know four others on average, at random, and `rising` among 2 ``shared`` + 2 more.

    Each of the latter knows one of the former. The seed is arbitrary, and always the same.
    """
    core = rising(shared)
    persons, size = 300, 300 + len(core)
    drawn = np.triu(np.random.default_rng(2007).random((persons, persons)) < 4 / (persons - 1), 1).astype(np.int64)
    found = np.zeros((size, size), dtype=np.int64)
    found[persons:, persons:] = core
    found[:persons, :persons] = drawn + drawn.T
    for k in range(len(core)):
        found[k, persons + k] = found[persons + k, k] = 1
    return found


def friends() -> Pair:
    """The edge with the most common neighbours in the karate club: 35 triangles against 45, LS = 10 in both."""
    return _pair(karate(), 32, 33, "karate club without and with the friendship of members 32 and 33")


def friend_of_a_hub() -> Pair:
    """42 triangles against 45, and LS rises from 9 to 10."""
    return _pair(karate(), 23, 33, "karate club without and with the friendship of members 23 and 33")


def in_network() -> Pair:
    """An edge that makes 21 triangles and raises LS from 21 to 22."""
    return _pair(network(21), 300, 301, "344 persons, two with 21 common neighbours who come to know each other")


def hubs(leaves: int) -> Pair:
    """K_{2, leaves} without and with the edge between the hubs: 0 triangles against ``leaves``, LS the same."""
    return _pair(two_hubs(leaves), 0, 1, f"two hubs of {leaves} nodes without and with the edge between them")


def hubs_rising(leaves: int) -> Pair:
    """The edge makes ``leaves`` triangles and raises LS from ``leaves`` by one."""
    return _pair(rising(leaves), 0, 1, f"two nodes with {leaves} common neighbours, the edge between them raises LS")


def _with_pair_curves(draft: Draft) -> Draft:
    """The same claim with the curves of (bound, answer)."""
    mechanism = draft.mechanism
    assert isinstance(mechanism, NoisyBoundPublished)
    return replace(draft, curve_of=lambda pair: mechanism.curve(counts(pair.x), counts(pair.y)))


def _as_exact(draft: Draft) -> Draft:
    """The same claim at level L0."""
    return replace(draft, level="L0")


# ------------------------------------------------------------------------------ computed statements


@cache
def _all_graphs(nodes: int) -> NDArray[np.int64]:
    """Every graph of so many nodes, shape (2^edges, nodes, nodes); graph number c has edge e if bit e of c is set."""
    ends = list(itertools.combinations(range(nodes), 2))
    codes = np.arange(2 ** len(ends))
    found = np.zeros((codes.size, nodes, nodes), dtype=np.int64)
    for e, (i, j) in enumerate(ends):
        found[:, i, j] = found[:, j, i] = codes >> e & 1
    return found


@cache
def _by_brute_force(nodes: int) -> tuple[Graph, Graph]:
    """Triangles and local sensitivity of every graph by their definitions: all triples, all changes of one edge."""
    graphs = _all_graphs(nodes)
    triples = itertools.combinations(range(nodes), 3)
    triangles = sum((graphs[:, i, j] * graphs[:, j, k] * graphs[:, i, k] for i, j, k in triples), np.zeros(len(graphs)))
    return triangles.astype(np.int64), _largest_edge_moves(triangles).astype(np.int64)


def _largest_edge_moves(values: NDArray[Any]) -> NDArray[Any]:
    """How far one edge moves a number, at most, for every graph; values by number of the graph."""
    codes = np.arange(len(values))
    edges = int(math.log2(len(values)))
    moved: NDArray[Any] = np.abs(np.array([values[codes ^ (1 << e)] for e in range(edges)]) - values).max(axis=0)
    return moved


#: Nodes of the graphs that are all looked at: 2^10 graphs of 5 nodes take a twentieth of a second.
_SIZES = (2, 3, 4, 5)


def agreement() -> list[tuple[str, float, float]]:
    """Graphs on which the counts of the mechanism are those of the definitions, and how many there are."""
    rows: list[tuple[str, float, float]] = []
    for nodes in _SIZES:
        triangles, local = _by_brute_force(nodes)
        found = [counts(graph) for graph in _all_graphs(nodes)]
        agree = [(f.triangles, f.sensitivity) == (t, s) for f, t, s in zip(found, triangles, local, strict=True)]
        rows.append((f"all graphs of {nodes} nodes", float(sum(agree)), float(len(agree))))
    return rows


def sensitivities() -> list[tuple[str, float, float]]:
    """What one edge moves, over all graphs of few nodes, and the document's bounds on it."""
    rows: list[tuple[str, float, float]] = []
    for nodes in _SIZES:
        _, local = _by_brute_force(nodes)
        degree = _all_graphs(nodes).sum(axis=1).max(axis=1)
        rows.append((f"local sensitivity of LS, {nodes} nodes", float(_largest_edge_moves(local).max()), 1.0))
        rows.append((f"LS less the largest degree, {nodes} nodes", float((local - degree).max()), 0.0))
        rows.append((f"global sensitivity, {nodes} nodes", float(local.max()), nodes - 2.0))
        rows.append((f"n - 2, {nodes} nodes", nodes - 2.0, float(local.max())))
    return rows


#: Levels, deltas and local sensitivities of the catalogue's computation; of the latter, some of 0 to 21.
_LEVELS, _DELTAS = (0.5, 1.0, 2.0), (1e-2, 1e-4)
_LOCAL = (0, 1, 2, 3, 5, 7, 10, 12, 16, 21)


def hidden_bound() -> list[tuple[str, float, float]]:
    """Largest delta(epsilon) / delta over pairs of local sensitivities and all moves of the count up to the smaller."""
    rows = []
    for epsilon, delta in itertools.product(_LEVELS, _DELTAS):
        mechanism = NoisyLocalSensitivity(epsilon, delta)
        laws = {s: mechanism.masses(TriangleCounts(0, 0, s)) for first in _LOCAL for s in (first, first + 1)}
        largest = max(
            _delta(laws[first], laws[second], moved, epsilon)
            for first in _LOCAL
            for second in (first, first + 1)
            for moved in range(first + 1)
        )
        rows.append((f"epsilon = {epsilon:g}, delta = {delta:g}", largest / delta, 0.009))
    return rows


def _delta(
    first: tuple[NDArray[np.float64], float], second: tuple[NDArray[np.float64], float], moved: int, epsilon: float
) -> float:
    """Hockey-stick divergence of two symmetric distributions, given by `masses`, with centres ``moved`` steps apart."""
    (p_above, p_none), (q_above, q_none) = first, second
    reach = max(p_above.size, q_above.size)
    p, q = np.zeros((2, 2 * reach + moved))
    for law, above, centre in ((p, p_above, reach), (q, q_above, reach + moved)):
        law[centre - above.size + 1 : centre + above.size] = np.concatenate([above[:0:-1], above])
    e = math.exp(epsilon)
    forward = np.maximum(p - e * q, 0.0).sum() + max(p_none - e * q_none, 0.0)
    backward = np.maximum(q - e * p, 0.0).sum() + max(q_none - e * p_none, 0.0)
    return float(max(forward, backward))


def shown_bound() -> list[tuple[str, float, float]]:
    """delta(2 epsilon) of (bound, answer) and delta / 2, where the edge makes LS triangles and raises LS by 0 or 1."""
    rows = []
    for epsilon, delta, local, more in itertools.product((*_LEVELS, 3.0), _DELTAS, (0, 1, 2, 5, 21, 50), (0, 1)):
        curve = NoisyBoundPublished(epsilon, delta).curve(
            TriangleCounts(0, 0, local), TriangleCounts(0, local, local + more)
        )
        label = f"epsilon = {epsilon:g}, delta = {delta:g}, LS = {local} and {local + more}"
        rows.append((label, curve.delta(2 * epsilon), delta / 2))
    return rows


#: LS at which (bound, answer) is near its limit, and the part of the limit that is refuted there; both arbitrary.
_LARGE, _PART = 200, 0.95


def two_laplace(epsilon: float) -> float:
    """Delta at epsilon of two Laplace mechanisms of that level: what (bound, answer) tends to for a large LS.

    To 12 digits, because the last ones depend on the number of threads that add up: a claim is the same everywhere.
    """
    return float(f"{composed([LaplaceCurve(epsilon)] * 2).delta(epsilon):.12g}")


def _both_sides() -> Iterator[Draft]:
    """delta(epsilon) with the bound shown: 0.124, 0.242 and 0.448 in the limit of large LS, from above and from below.

    The limit is of other distributions, whose curves are composed in closed form; delta/2 is for bounds that are below
    LS.
    """
    for epsilon in _LEVELS:
        mechanism, limit = NoisyBoundPublished(epsilon, 1e-2), two_laplace(epsilon)
        case = f"delta_at_{epsilon:g}".replace(".", "_")
        above = DeltaDP(limit + 0.5 * mechanism.delta, epsilon)
        note = "the bound shown; at most delta/2 more than two Laplace mechanisms"
        both = [hubs_rising(50), hubs_rising(_LARGE)]
        draft = _with_pair_curves(privacy(mechanism, above, both, case=case, relation=EDGE, note=note))
        yield _as_exact(draft)
        hidden = NoisyLocalSensitivity(epsilon, mechanism.delta)
        yield _as_exact(
            _with_pair_curves(
                broken(
                    MUTANTS["noisy_bound_published"],
                    hidden,
                    hubs_rising(_LARGE),
                    asked=case,
                    guarantee=DeltaDP(_PART * limit, epsilon),
                    relation=EDGE,
                )
            )
        )


def spike() -> list[tuple[str, float, float]]:
    """Multiples of epsilon, and the log-ratio of the densities of two graphs close to the count of one of them.

    Two hubs of 3 nodes, without lattices: LS = 3, counts 0 and 3.
    """
    epsilon, delta, local = 1.0, 1e-2, 3
    other = log_density(epsilon, delta, local, math.log(local))
    return [
        (f"exp(-{far}) from the count", times * epsilon, log_density(epsilon, delta, local, -float(far)) - other)
        for far, times in ((1_000, 1), (10_000, 3), (100_000, 5))
    ]


# ----------------------------------------------------------------------------------------- accuracy


def error_or_none(truth: float) -> Any:
    """Absolute error of an answer, and 0 where there is none: what E[max(bound, 0)] / epsilon is the expectation of."""

    def error(outputs: Any) -> NDArray[np.float64]:
        return np.nan_to_num(np.abs(np.asarray(outputs, dtype=np.float64) - truth), nan=0.0)

    return error


def stated_error(mechanism: NoisyLocalSensitivity, local: int) -> float:
    """``(LS + (1 + ln(1/delta)) / epsilon) / epsilon``: the document's O(.) with the constant 1."""
    return (local + (1.0 + math.log(1.0 / mechanism.delta)) / mechanism.epsilon) / mechanism.epsilon


def mean_error(mechanism: NoisyLocalSensitivity, graph: Graph) -> float:
    """Exact expectation of `error_or_none`."""
    above, _ = mechanism.masses(counts(graph))
    return 2.0 * float(above @ np.arange(above.size)) * mechanism.step


def failure_rate(mechanism: NoisyLocalSensitivity, graph: Graph, at_most: float) -> float:
    """Exact probability of no answer, or of an error above ``at_most``."""
    above, none = mechanism.masses(counts(graph))
    return none + 2.0 * float(above[math.floor(at_most / mechanism.step) + 1 :].sum())


def _median_at(epsilon: float, delta: float, leaves: int) -> Setting:
    return Setting(NoisyLocalSensitivity(epsilon, delta), two_hubs(leaves), Absolute(0.0))


@entry(
    "003/noisy_local_sensitivity_triangles",
    title="Triangle counts with a noisy local sensitivity",
    source=Source("003", "section 2.2.3"),
)
def noisy_local_sensitivity() -> Iterator[Draft]:
    """The karate club, a network of 344 persons, and two hubs; the edge that makes the most triangles."""
    club, strict = NoisyLocalSensitivity(1.0, 1e-2), NoisyLocalSensitivity(1.0, 1e-4)
    known, met = friends(), in_network()
    rising_pairs = [hubs_rising(10), friend_of_a_hub()]
    for mechanism, pairs, case in (
        (club, [known], "karate_club"),
        (strict, [met], "network"),
        (club, rising_pairs, "sensitivity_rises"),
        (NoisyLocalSensitivity(2.0, 1e-4), [hubs(10)], "two_hubs"),
    ):
        claim = ApproxDP(mechanism.epsilon, mechanism.delta)
        yield from reference(mechanism, claim, pairs, case=case, relation=EDGE, follows=False)
    yield inequality(
        hidden_bound,
        case="hidden_bound",
        statement="delta(epsilon) is at most 0.009 delta, for ten LS from 0 to 21 and counts that move by up to LS",
    )
    yield inequality(
        spike,
        case="no_pure_level",
        relation="<",
        statement="without lattices the log-ratio of the answer alone exceeds 1, 3 and 5 epsilon close to the count",
    )

    # The bound shown: (2 epsilon, delta / 2).
    published = NoisyBoundPublished(1.0, 1e-2)
    shown = _with_pair_curves(
        privacy(published, ApproxDP(2.0, 0.5e-2), [known, *rising_pairs], case="bound_published", relation=EDGE)
    )
    yield _as_exact(shown)
    yield shown
    yield inequality(
        shown_bound,
        case="bound_published_on_a_grid",
        statement="delta(2 epsilon) of (bound, answer) is at most delta/2, for six LS from 0 to 50",
    )
    # LS of 2 and 3 and little noise: the bound and the answer take few values each, and their joint event is simple.
    frank = NoisyLocalSensitivity(3.0, 1e-2)
    refuted = _with_pair_curves(
        broken(
            MUTANTS["noisy_bound_published"],
            frank,
            hubs_rising(2),
            guarantee=ApproxDP(frank.epsilon, frank.delta),
            relation=EDGE,
        )
    )
    yield _as_exact(refuted)
    yield refuted
    yield from _both_sides()

    yield inequality(
        agreement,
        level="L2",
        case="counts",
        relation="==",
        statement="triangles and local sensitivity agree with their definitions on all graphs of up to 5 nodes",
    )
    yield inequality(
        sensitivities,
        level="L2",
        case="sensitivities",
        statement="LS moves by at most 1, is at most the largest degree, at most n - 2, on all graphs of up to 5 nodes",
    )

    # On the path of two edges LS is 1, and one in 600 draws has no answer.
    path = graph_of(3, [(0, 1), (1, 2)])
    yield conformity(club, known, path, case="karate_club", relation=EDGE)
    yield conformity(strict, met, case="network", relation=EDGE)

    matching = _pair(graph_of(4, [(0, 1)]), 1, 2, "one friendship, and a second one of the same person")
    claimed = ApproxDP(1.0, 1e-2)
    # Nearly half of the bounds are below LS = 1, and then there is too little noise for the one triangle.
    loose = NoisyLocalSensitivity(1.25, 1e-2)
    yield broken(
        MUTANTS["offset_dropped"], loose, hubs(1), guarantee=ApproxDP(loose.epsilon, loose.delta), relation=EDGE
    )
    yield deviating(MUTANTS["offset_dropped"], club, known, relation=EDGE)
    direct = MUTANTS["local_sensitivity_used_directly"]
    yield broken(direct, club, matching, guarantee=claimed, relation=EDGE)
    yield deviating(direct, club, known, relation=EDGE)
    yield from broken_and_deviating(MUTANTS["ordered_triangles"], club, known, guarantee=claimed, relation=EDGE)
    nodes = MUTANTS["local_sensitivity_taken_as_n"]
    yield deviating(nodes, club, known, relation=EDGE)

    # ------------------------------------------------------------------------------- accuracy
    graph, of = karate(), counts(karate())
    for at_most, case, note in (
        (club.expected_error(graph), "karate_club", "E[max(bound, 0)] / epsilon"),
        (stated_error(club, of.sensitivity), "karate_club_as_stated", "the document's O(.) with the constant 1"),
    ):
        yield expectation(
            club,
            graph,
            error_or_none(of.triangles),
            at_most=at_most,
            case=case,
            exact=mean_error(club, graph),
            derived=True,
            note=note,
        )
    yield expectation(
        nodes.build(club),
        graph,
        error_or_none(of.triangles),
        at_most=club.expected_error(graph),
        case="local_sensitivity_taken_as_n",
        expected="deviation",
        is_mutant=True,
        note=nodes.note,
    )
    large, beta = network(21), 0.05
    at_most = strict.error_bound(large, beta)
    yield accuracy(
        strict,
        large,
        Absolute(counts(large).triangles),
        at_most=at_most,
        beta=beta + strict.delta / 2,
        exact=failure_rate(strict, large, at_most),
        case="network",
        derived=True,
    )
    yield scaling(
        lambda leaves: _median_at(2.0, 1e-2, round(leaves)),
        parameter="LS",
        at=[64, 128, 256, 512],
        exponent=1.0,
        others=[0.5, 1.5],
        curve=lambda leaves: stated_error(NoisyLocalSensitivity(2.0, 1e-2), round(leaves)),
        case="error_against_sensitivity",
        derived=True,
    )
    yield scaling(
        lambda epsilon: _median_at(epsilon, 1e-2, 512),
        parameter="epsilon",
        at=[0.5, 1.0, 2.0, 4.0],
        exponent=-1.0,
        others=[-0.5, -1.5, -2.0],
        curve=lambda epsilon: stated_error(NoisyLocalSensitivity(epsilon, 1e-2), 512),
        case="error_against_epsilon_where_the_sensitivity_dominates",
        derived=True,
    )
    yield scaling(
        lambda epsilon: _median_at(epsilon, 1e-6, 1),
        parameter="epsilon",
        at=[2.0**-5, 2.0**-4, 2.0**-3, 2.0**-2],
        exponent=-2.0,
        others=[-1.0, -1.5],
        curve=lambda epsilon: stated_error(NoisyLocalSensitivity(epsilon, 1e-6), 1),
        case="error_against_epsilon_where_the_offset_dominates",
        derived=True,
    )
