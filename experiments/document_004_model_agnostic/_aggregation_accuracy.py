"""Document 004, Theorem 3.11: how many chunks it takes that all answers are given."""

from __future__ import annotations

import math
from collections.abc import Iterator

from auditor.audits.accuracy import Exactly, Setting
from auditor.audits.inequality import Row
from auditor.claims import Draft, Erratum, accuracy, inequality, proof_step, scaling, smallest, statement_holds
from experiments.document_004_model_agnostic._aggregation import missed
from mechanisms.teacher_ensembles.vote_aggregation import AgreeingChunks, least_chunks, printed_chunks
from mechanisms.teacher_ensembles.vote_distance import gap_distance

ERR8A = Erratum(
    "ERR-8a",
    "proof",
    "The proof of Theorem 3.11 takes the distance to be at least k/3 for a label with 2k/3 votes.",
    fails="the gap is then k/3, and the distance k/3 - 1",
    correction="the theorem holds, also where the constant 136 leaves no room for 1: the votes agree on more than 2k/3",
)

_BETA = 0.1
#: m, T and delta of the catalogue's numbers of chunks, at eps = 1: 647 against 2597, and 7056 against 36219.
_NUMBERS = ((10, 1, 0.01, 647), (100, 10, 1e-6, 7056))


def chunks_that_agree() -> Iterator[Draft]:
    """Accuracy at the printed number of chunks, and at fewer."""
    for queries, cutoff, delta, _ in _NUMBERS:
        chunks = printed_chunks(queries, cutoff, 1.0, delta, _BETA)
        found = AgreeingChunks(chunks, queries, cutoff, 1.0, delta)
        yield accuracy(
            found,
            None,
            missed,
            at_most=0,
            beta=_BETA,
            exact=max(found.failure(), 0.0),
            case=f"printed_m_{queries}",
            # 100 queries with votes of their own: a tenth of a millisecond a draw.
            draws={"smoke": 2_000, "standard": 20_000} if queries > 10 else None,
        )
    yield smallest(
        lambda k: Setting(AgreeingChunks(int(k), 10, 1, 1.0, 0.01), None, missed, at_most=0),
        parameter="k",
        claimed=printed_chunks(10, 1, 1.0, 0.01, _BETA),
        beta=_BETA,
        low=100,
        case="chunks",
        draws={"smoke": 8_000},
    )
    yield inequality(
        lambda: [
            (f"k = {k}, m = {m}, T = {t}, delta = {d:g}", AgreeingChunks(k, m, t, 1.0, d).failure(), _BETA)
            for m, t, d, k in _NUMBERS
        ],
        statement="some query is not answered with its label with probability at most beta",
        level="L4",
        case="fewer_chunks",
        derived=True,
    )
    yield inequality(
        lambda: [("136/3 against 32 sqrt(2)", 32.0 * math.sqrt(2.0), 136.0 / 3.0)],
        statement="k/3 is at least the distance of Corollary 3.9 at beta/2",
        level="L4",
        case="constant",
    )

    def at_two_thirds() -> list[Row]:
        """k/3, against the distance of 2k/3 votes to k/3."""
        return [(f"k = {k}", k / 3.0, float(gap_distance([2 * k // 3, k // 3]))) for k in (12, 189, 2598)]

    yield proof_step(
        "ERR-8a",
        inequality(
            at_two_thirds,
            statement="at 2k/3 votes the distance is at least k/3",
            level="L4",
            case="distance_at_two_thirds",
            expected="deviation",
        ),
    )
    # At eps = 10 the constant leaves no room for the 1, and k is below the 72 ln(2m/beta) that the proof assumes.
    chunks = printed_chunks(1, 1, 10.0, 0.01, _BETA)
    small = AgreeingChunks(chunks, 1, 1, 10.0, 0.01)
    yield statement_holds(
        "ERR-8a",
        accuracy(small, None, missed, at_most=0, beta=_BETA, exact=max(small.failure(), 0.0), case="printed_eps_10"),
    )


def numbers_of_chunks() -> Iterator[Draft]:
    """Of the printed number of chunks; the least number that works is what is measured."""

    def needed(queries: int, cutoff: int, epsilon: float) -> float:
        return float(least_chunks(queries, cutoff, epsilon, 0.01, _BETA))

    def printed(queries: int, cutoff: int, epsilon: float) -> float:
        return float(printed_chunks(queries, cutoff, epsilon, 0.01, _BETA))

    measure = Exactly("least number of chunks that works")
    yield scaling(
        lambda t: needed(10, int(t), 1.0),
        parameter="T",
        at=(1, 4, 16),
        exponent=0.5,
        measure=measure,
        curve=lambda t: printed(10, int(t), 1.0),
        criterion=False,
        case="cutoff",
    )
    yield scaling(
        lambda epsilon: needed(10, 1, epsilon),
        parameter="eps",
        at=(0.25, 0.5, 1.0, 2.0),
        exponent=-1.0,
        measure=measure,
        curve=lambda epsilon: printed(10, 1, epsilon),
        criterion=False,
        case="epsilon",
    )

    def queries(log: float) -> int:
        return round(math.exp(log) * 0.01 / 4.0)

    yield scaling(
        lambda log: needed(queries(log), 1, 1.0),
        parameter="ln(4mT/min(delta,beta/2))",
        at=tuple(math.log(400.0 * m) for m in (1, 10, 100, 1000)),
        exponent=1.0,
        measure=measure,
        curve=lambda log: printed(queries(log), 1, 1.0),
        criterion=False,
        case="logarithm",
    )
