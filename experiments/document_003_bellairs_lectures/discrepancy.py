"""Document 003, section 4.2: the error that partial discrepancy forces on private answers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from auditor.audits.accuracy import Absolute, Exactly, Figure
from auditor.audits.adversaries.exhaustive import Bits, Exhaustive, enumerate_bits
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Erratum,
    Source,
    accuracy,
    adversary,
    as_corrected,
    as_printed,
    entry,
    inequality,
    scaling,
)
from auditor.privacy.guarantees import ApproxDP
from mechanisms.additive_noise.column_counts import ConstantCounts, GaussianCounts, LaplaceCounts
from mechanisms.base.mechanism import FloatArray
from mechanisms.lower_bounds.discrepancy import (
    allowed_places,
    by_definition,
    by_sum,
    certified_above,
    certified_below,
    hereditary,
    least_restricted,
    most_reconstructed,
    partial_discrepancy,
    random_queries,
    singular_bound,
    usable_places,
    with_zero,
    witness,
)
from mechanisms.lower_bounds.discrepancy_errors import ErrorOfResponses, LargestErrorOnSecretBits, WorstConsistent
from mechanisms.lower_bounds.noisy_counts import UniformCounts

_EPSILON, _DELTA = 1.0, 0.1
#: The catalogue's fraction for figures of partial discrepancy itself.
_FRACTION = 0.2
#: A hundred people: the document's n/100 is one place, and A8 allows 15.
_HUNDRED = 100

#: Approximate claims bet on games, not on bits: so many show a level of twice the claimed one.
_GAMES = {"smoke": 400, "standard": 1_000}

_J7 = Erratum(
    "J7",
    "false",
    "Error(Q) >= PDisc(Q_S) for every set S of columns, and HerPDisc(Q) is their minimum over S",
    fails="two people and the queries of their bits: the answer (1/2, 1/2), whatever the data, has an error of 1/2 "
    "while PDisc is 1; one person: randomised response at eps = 1 is exact with probability 0.731; and one column has "
    "PDisc at most 1, 0 if no query counts it, so that with the minimum the upper bound of Theorem 4.2.4 would be 0 "
    "for queries that cannot be answered without error",
    correction="Error(Q) >= PDisc(Q_S) / 2 for |S| >= 2, and the maximum over S",
)


@dataclass(frozen=True)
class ErrorBelowBound:
    """Whether an error is below a bound, 1 or 0: what a lower bound allows only so often.

    Parameters
    ----------
    bound : float
        In counts.
    unit : float, default 1
        What errors are divided by before: the number of people would make fractions of counts.
    """

    bound: float
    unit: float = 1.0

    def __call__(self, outputs: Any) -> FloatArray:
        """Of n errors, shape (n,)."""
        return np.asarray(np.asarray(outputs, dtype=np.float64) / self.unit < self.bound, dtype=np.float64)


@cache
def _queries(k: int, n: int) -> Bits:
    return random_queries(k, n, seed=1)


@entry(
    "003/partial_discrepancy_bound",
    title="The error of any mechanism from partial discrepancy",
    source=Source("003", "Definition 4.1.5, section 4.2, Theorems 4.2.3 and 4.2.4"),
    errata=[_J7],
)
def discrepancy_bound() -> Iterator[Draft]:
    """Random subset queries on 2 to 160 people: PDisc exactly up to 14, between certified bounds beyond.

    The bound is used for numbers m of wrong bits that A8 allows at n and at (1, 0.1); for m = 0 the probability of
    exact recovery is at most (e + 0.1 n) / (n + e), which A8 does not give for n below 6.
    """
    yield from _definition()
    yield from _attack()
    yield from _no_mechanism_beats_it()
    yield from _as_printed()
    yield from _growth()


# ------------------------------------------------------------------------------- the quantities


def _definition() -> Iterator[Draft]:
    same = "partial discrepancy is the minimum over all z with more than m places, tried one by one"
    for case, found, mutant in (
        ("definition", partial_discrepancy, False),
        ("wrong_norm_of_z", with_zero, True),
        ("wrong_norm_of_z__sum", by_sum, True),
    ):
        yield inequality(
            lambda found=found: _by_definition(found),  # type: ignore[misc]
            statement=same,
            relation="==",
            level="L4",
            case=case,
            expected="deviation" if mutant else "consistent",
            is_mutant=mutant,
        )
    grows = "PDisc(Q) is at most HerPDisc(Q): all columns are one of the sets"
    yield inequality(lambda: _discrepancy_rows(hereditary), statement=grows, level="L4", case="maximum_over_subsets")
    yield inequality(
        lambda: _discrepancy_rows(least_restricted),
        statement=grows,
        level="L4",
        case="min_over_subsets",
        expected="deviation",
        is_mutant=True,
        note="minimum over S",
    )
    yield inequality(
        lambda: [(label, least, 1.0) for label, least, _ in _discrepancy_rows(least_restricted, swapped=True)],
        statement="the minimum over S of PDisc(Q_S) is at most 1, for every Q: one column",
        level="L4",
        case="minimum_is_at_most_one",
    )
    yield inequality(
        _sandwich,
        statement="the certified bounds contain the partial discrepancy: lower <= PDisc, PDisc <= upper",
        level="L4",
        case="certified_bounds",
    )


def _by_definition(found: Any) -> list[Row]:
    twins = np.array([[1, 1, 0, 1], [1, 1, 1, 0], [0, 0, 1, 1]], dtype=np.int8)
    cases = [("two people, identity", np.eye(2, dtype=np.int8), 0), ("two equal columns", twins, 1)]
    for n in (4, 6, 8):
        cases += [(f"{n} people, {8 * n} random queries, m = {m}", _queries(8 * n, n), m) for m in (0, 1, n // 2)]
    return [(label, float(found(queries, m)), float(by_definition(queries, m))) for label, queries, m in cases]


def _discrepancy_rows(found: Any, *, swapped: bool = False) -> list[Row]:
    rows: list[Row] = []
    for n, times in ((6, 8), (10, 2), (10, 8), (12, 8)):
        queries = _queries(times * n, n)
        whole = partial_discrepancy(queries, allowed_places(_FRACTION, n))
        pair = (float(whole), float(found(queries, _FRACTION)))
        rows.append((f"{n} people, {times * n} queries, c = 0.2", *(pair[::-1] if swapped else pair)))
    return rows


def _sandwich() -> list[Row]:
    rows: list[Row] = []
    for n in (6, 8, 10, 12):
        queries, m = _queries(8 * n, n), allowed_places(_FRACTION, n)
        exact = float(partial_discrepancy(queries, m))
        rows.append((f"lower, {n} people, {8 * n} queries", float(certified_below(queries, m)), exact))
        rows.append((f"upper, {n} people, {8 * n} queries", exact, float(certified_above(queries, m))))
    return rows


# ---------------------------------------------------------------------------------- the attack


def _attack() -> Iterator[Draft]:
    """Answers within PDisc / 2: every consistent candidate is close. Just above it, one is not."""
    n, k = 12, 96
    queries, m = _queries(k, n), allowed_places(_FRACTION, n)
    half = partial_discrepancy(queries, m) / 2
    yield accuracy(
        WorstConsistent(queries, half),
        None,
        Absolute(0.0),
        at_most=float(m),
        beta=0.0,
        case="consistent_within_half_of_pdisc",
        controls={"answers within twice the partial discrepancy": WorstConsistent(queries, 4 * half)},
        draws={"smoke": 64, "standard": 400},
        note="the worst of all consistent candidates has at most m wrong bits",
        parameters={"people": n, "queries": k, "m": m, "E": half},
    )
    yield inequality(
        _halfway_rows,
        statement="answers half-way between two x that differ in more than m places are off by PDisc / 2 from both",
        relation="==",
        level="L4",
        case="half_of_pdisc_is_attained",
        note="so the factor 1/2 is right for the attack",
    )
    ten, half = _queries(80, 10), partial_discrepancy(_queries(80, 10), 2) / 2
    played, claimed = Exhaustive(10, matrix=tuple(map(tuple, ten.tolist()))), ApproxDP(_EPSILON, _DELTA)
    yield adversary(
        UniformCounts(0.99 * half),
        claimed,
        played,
        case="answers_within_half_of_pdisc",
        expected="violation",
        exact_level=math.inf,
        draws=_GAMES,
        note="sold as (1, 0.1)",
    )
    yield adversary(GaussianCounts(80, _EPSILON, _DELTA), claimed, played, exact_level=_EPSILON, draws=_GAMES)


def _halfway_rows() -> list[Row]:
    rows: list[Row] = []
    for n in (6, 10, 12):
        queries, m = _queries(8 * n, n), allowed_places(_FRACTION, n)
        z = witness(queries, m).astype(np.int64)
        # x has the ones that z takes away, x' those that it adds.
        x, other = (z > 0).astype(np.int64), (z < 0).astype(np.int64)
        if int((x != other).sum()) <= m:
            raise ValueError(f"expected a witness with more than {m} places, got {z.tolist()}")
        off = np.abs(queries @ (x + other) / 2 - queries @ x).max()
        rows.append((f"{n} people, {8 * n} queries", float(off), partial_discrepancy(queries, m) / 2))
    return rows


# ------------------------------------------------------------------------ mechanisms against it


def _no_mechanism_beats_it() -> Iterator[Draft]:
    """An error below PDisc / 2 has at most the probability that (1, 0.1) leaves to a reconstruction: below 2/3."""
    yield inequality(
        lambda: [(f"n = {n}", float(usable_places(n, _EPSILON, _DELTA)), float(m)) for n, m in _CATALOGUE_PLACES],
        statement="places that (1, 0.1) allows at probability 2/3, by n; none for one person",
        relation="==",
        level="L4",
        case="places_allowed",
    )
    identity = np.eye(2, dtype=np.int8)
    for case, queries, draws in (
        ("two_people", identity, {"smoke": 20_000, "standard": 200_000}),
        ("six_people", _queries(48, 6), {"smoke": 2_000, "standard": 50_000}),
        ("twelve_people", _queries(96, 12), {"smoke": 1_000, "standard": 20_000}),
    ):
        k, n = queries.shape
        m = usable_places(n, _EPSILON, _DELTA)
        for name, mechanism in (
            ("laplace", LargestErrorOnSecretBits(LaplaceCounts(k, _EPSILON), queries)),
            ("gaussian", LargestErrorOnSecretBits(GaussianCounts(k, _EPSILON, _DELTA), queries)),
            ("constant", LargestErrorOnSecretBits(ConstantCounts(k, n / 4), queries)),
            ("responses", ErrorOfResponses(queries, _EPSILON, _DELTA)),
        ):
            yield accuracy(
                mechanism,
                None,
                ErrorBelowBound(partial_discrepancy(queries, m) / 2),
                at_most=0,
                beta=most_reconstructed(n, m, _EPSILON, _DELTA),
                case=f"{case}_{name}",
                # The constant's error depends on the drawn bits alone; for two people it is always 1/2.
                independence=name != "constant",
                draws=draws,
                note="a failure is an error below PDisc / 2",
                parameters={"people": n, "queries": k, "m": m},
            )
    hundred = _queries(4 * _HUNDRED, _HUNDRED)
    m = usable_places(_HUNDRED, _EPSILON, _DELTA)
    bound = certified_below(hundred, m) / 2
    yield accuracy(
        ErrorOfResponses(hundred, _EPSILON, _DELTA),
        None,
        ErrorBelowBound(bound),
        at_most=0,
        beta=most_reconstructed(_HUNDRED, m, _EPSILON, _DELTA),
        case="hundred_people_responses",
        draws={"smoke": 1_000, "standard": 10_000},
        note="a failure is an error below half of the certified lower bound",
        parameters={"people": _HUNDRED, "queries": len(hundred), "m": m, "bound": bound},
    )
    twelve = _queries(96, 12)
    yield accuracy(
        ErrorOfResponses(twelve, _EPSILON, _DELTA),
        None,
        ErrorBelowBound(partial_discrepancy(twelve, usable_places(12, _EPSILON, _DELTA)) / 2, unit=12.0),
        at_most=0,
        beta=2 / 3,
        case="fractions_against_counts",
        expected="deviation",
        is_mutant=True,
        draws={"smoke": 1_000, "standard": 5_000},
        note="the error as a part of the 12 people, PDisc in counts: a private mechanism is accused",
    )


#: By n, the catalogue's largest m at (1, 0.1): one person has none.
_CATALOGUE_PLACES = ((1, -1), (2, 0), (6, 0), (10, 0), (12, 1), (13, 1), (20, 2), (100, 15))


# ---------------------------------------------------------------------------------- as printed


def _as_printed() -> Iterator[Draft]:
    identity, one = np.eye(2, dtype=np.int8), np.ones((1, 1), dtype=np.int8)
    yield as_printed(
        "J7",
        inequality(
            _constant_and_half,
            statement="PDisc(Q) is at most the error of a 0-DP mechanism",
            level="L4",
            case="error_at_least_pdisc_as_printed",
            expected="deviation",
        ),
    )
    yield as_corrected(
        "J7",
        inequality(
            lambda: [(label, pdisc / 2, error) for label, pdisc, error in _constant_and_half()],
            statement="PDisc(Q) / 2 is at most the error of a 0-DP mechanism",
            level="L4",
            case="error_at_least_half_of_pdisc_as_corrected",
        ),
    )
    for wrap, case, queries, people in (
        (as_printed, "one_person_as_printed", one, 1),
        (as_corrected, "two_persons_as_corrected", identity, 2),
    ):
        yield wrap(
            "J7",
            accuracy(
                ErrorOfResponses(queries, _EPSILON),
                None,
                ErrorBelowBound(partial_discrepancy(queries, 0) / 2),
                at_most=0,
                beta=2 / 3,
                exact=ErrorOfResponses(queries, _EPSILON).true_probability ** people,
                case=case,
                expected="deviation" if people == 1 else "consistent",
                draws={"smoke": 20_000, "standard": 40_000},
                note=f"|S| = {people}; a failure is an error below PDisc / 2, allowed with probability 2/3",
            ),
        )
    unasked = np.array([[1, 0, 0], [0, 1, 0]], dtype=np.int8)
    # Error(Q) >= 1/2: of the columns that are asked for PDisc is 1, and |S| = 2.
    below = partial_discrepancy(identity, usable_places(2, _EPSILON, _DELTA)) / 2
    yield as_printed(
        "J7",
        inequality(
            lambda: [
                ("a lower bound of the error, a third column that nobody asks for", below, _LOGS * least)
                for least in (float(least_restricted(unasked, 0.01)),)
            ],
            statement="Error(Q) <= min over S of PDisc(Q_S), times 10^6 in place of poly(log(k / delta))",
            level="L4",
            case="minimum_bounds_the_error_as_printed",
            expected="deviation",
        ),
    )
    yield as_corrected(
        "J7",
        inequality(
            lambda: [
                ("a lower bound of the error, a third column that nobody asks for", below, largest)
                for largest in (float(hereditary(unasked, 0.01)),)
            ],
            statement="the lower bound of Error(Q) is at most the max over S of PDisc(Q_S)",
            level="L4",
            case="maximum_over_subsets_as_corrected",
        ),
    )


#: Any factor will do, as what it multiplies is 0; arbitrary.
_LOGS = 1e6


def _constant_and_half() -> list[Row]:
    """PDisc with more than n/100 places, and the error of the constant 1/2 on the queries of single bits."""
    rows: list[Row] = []
    for n in (2, 3, 6):
        queries = np.eye(n, dtype=np.int8)
        tables = enumerate_bits(n)[:, :, None] * queries
        released = ConstantCounts(n, 0.5).each(tables, np.random.default_rng(0))
        error = float(np.abs(released - tables.sum(axis=1)).max())
        rows.append((f"{n} people, identity", float(partial_discrepancy(queries, allowed_places(0.01, n))), error))
    return rows


# ---------------------------------------------------------------------------------------- growth


def _growth() -> Iterator[Draft]:
    """Between the bounds, at the number of places that (1, 0.1) allows and 8 n queries."""
    sizes = (20.0, 40.0, 80.0, 160.0)

    def places(n: float) -> int:
        return usable_places(int(n), _EPSILON, _DELTA)

    def below(n: float) -> float:
        return float(singular_bound(_queries(8 * int(n), int(n)), places(n)))

    def above(n: float) -> float:
        return float(certified_above(_queries(8 * int(n), int(n)), places(n)))

    title = "Partial discrepancy of 8 n random queries"
    yield scaling(
        below,
        parameter="n",
        at=sizes,
        exponent=0.5,
        others=(0.25, 1.0),
        measure=Exactly("partial discrepancy, certified from below, by a singular value"),
        curve=above,
        both=True,
        figure=Figure(title, "certified from below, by a singular value", "n", "partial discrepancy"),
        case="lower_bound",
    )
    yield scaling(
        above,
        parameter="n",
        at=sizes,
        exponent=0.5,
        measure=Exactly("partial discrepancy, certified from above, by a search"),
        curve=below,
        criterion=False,
        benefit=True,
        figure=Figure(title, "certified from above, by a search", "n", "partial discrepancy"),
        case="upper_bound",
        note="a whole number; its curve is the bound from below",
    )
