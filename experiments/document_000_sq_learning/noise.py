"""Document 000, section 2: geometric noise."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from auditor.audits.accuracy import Absolute, Setting, Squared
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    broken_and_deviating,
    conformity,
    entry,
    exact,
    expectation,
    inequality,
    privacy,
    reference,
    scaling,
)
from auditor.privacy.exact import FiniteLaw
from auditor.privacy.guarantees import PureDP
from experiments.common import ADD_REMOVE, REPLACE, added, person, rand, replaced, visits
from mechanisms.additive_noise.geometric import MUTANTS, TwoSidedGeometric
from mechanisms.additive_noise.truncated_geometric import MUTANTS as TRUNCATED
from mechanisms.additive_noise.truncated_geometric import TruncatedGeometric
from mechanisms.base.queries import ClippedSum, Count, Histogram


def _tail(a: float, t: int) -> float:
    """Probability of noise of at least t >= 1, either way (catalogue 000_001_003, geometric_mechanism)."""
    return 2.0 * math.pow(a, 1.0 - t) / (a + 1.0)


@entry("000/geometric_mechanism", title="Two-sided geometric noise", source=Source("000", "section 2"))
def geometric() -> Iterator[Draft]:
    """Counts and sums of visits; the pair moves the answer by the whole sensitivity, event {output <= answer}."""
    count = TwoSidedGeometric(Count("hlthp", equals=1.0), math.e)
    pair = replaced("a person in poor health is replaced by one who is not", person(hlthp=1), person(hlthp=0))
    yield from reference(count, PureDP(1.0), pair, case="count", relation=REPLACE)

    total = TwoSidedGeometric(ClippedSum("mdvis", 0.0, 20.0, resolution=1.0), math.exp(1 / 20))
    yield exact(total, PureDP(1.0), visits(0, 20), case="sum_of_visits", relation=REPLACE)
    yield privacy(
        total,
        PureDP(1.0),
        [visits(0, 20), visits(0, 20, index=20_189), visits(5, 10)],
        case="sum_of_visits",
        relation=REPLACE,
    )
    yield conformity(total, visits(0, 20), case="sum_of_visits")

    cells = TwoSidedGeometric(Histogram("mdvis", edges=(0, 1, 3, 6, 11, 78), relation="add_remove_one"), math.e)
    one_more = added("one more person, with 2 visits", person(mdvis=2))
    yield from reference(cells, PureDP(1.0), one_more, case="histogram_of_visits", relation=ADD_REMOVE)

    yield broken(MUTANTS["one_sided"], count, pair)
    double = TwoSidedGeometric(ClippedSum("mdvis", 0.0, 2.0, resolution=1.0), math.sqrt(math.e))
    yield broken(MUTANTS["sensitivity_ignored"], double, visits(0, 2), relation=REPLACE)
    yield from broken_and_deviating(MUTANTS["rounded_laplace"], count, pair)
    yield from broken_and_deviating(MUTANTS["sign_times_geometric"], count, pair)

    # The document states no accuracy. Both are attained: the noise has this tail and this variance.
    for mechanism, data, t, case in ((count, pair.x, 3, "count"), (total, rand(), 60, "sum_of_visits")):
        a, error = mechanism.a, Absolute(float(mechanism.query(data)))
        chance, note = _tail(a, t), "P[|Z| >= t] = 2 a^(1-t) / (a + 1)"
        yield accuracy(
            mechanism,
            data,
            error,
            at_most=t,
            beta=chance,
            strict=True,
            exact=chance,
            case=case,
            derived=True,
            note=note,
        )
        variance, squared = 2.0 * a / (a - 1.0) ** 2, Squared(float(mechanism.query(data)))
        yield expectation(
            mechanism, data, squared, at_most=variance, exact=variance, case=case, derived=True, note="2 a / (a - 1)^2"
        )

    def at(epsilon: float) -> Setting:
        return Setting(TwoSidedGeometric(count.query, math.exp(epsilon)), rand(), Absolute(float(count.query(rand()))))

    # Medians, which are proportional to the standard deviation where the noise is much wider than a lattice step.
    yield scaling(
        at,
        parameter="eps",
        at=tuple(2.0**-k for k in range(9, 4, -1)),
        exponent=-1.0,
        others=(-0.5, -2.0),
        case="error",
        derived=True,
        note="for eps far below 1, as the standard deviation does",
    )


#: Small enough for all answers, errors and distributions to be computed.
_SMALL = TruncatedGeometric(Count(equals=1.0), math.e, 20)


def _distributions() -> list[tuple[int, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]]:
    """Answers 0 to 20 and the probabilities of the outputs 0 to 20."""
    found = []
    for g in range(_SMALL.bound + 1):
        law = _SMALL.law(np.arange(_SMALL.bound) < g)
        assert isinstance(law, FiniteLaw)
        found.append((g, law.probabilities))
    return found


def _clamped_errors() -> list[Row]:
    """Chances of an error of at least t, clamped and not, at every answer."""
    outputs = np.arange(_SMALL.bound + 1)
    return [
        (f"answer {g}, error of at least {t}", float(mass[np.abs(outputs - g) >= t].sum()), _tail(_SMALL.a, t))
        for g, mass in _distributions()
        for t in range(1, _SMALL.bound + 1)
    ]


def _biases() -> list[Row]:
    """Bias towards the interior: positive in the lower half of the range, negative in the upper."""
    outputs = np.arange(_SMALL.bound + 1)
    biases = [(g, float(mass @ outputs) - g) for g, mass in _distributions()]
    middle = _SMALL.bound / 2
    return [(f"answer {g}", *((0.0, bias) if g < middle else (bias, 0.0))) for g, bias in biases if g != middle]


@entry(
    "000/truncated_geometric",
    title="Geometric noise with the output clamped",
    source=Source("000", "section 2, last paragraph"),
)
def truncated() -> Iterator[Draft]:
    """Counts up to a public bound of 400; the pair that is worst when noise is redrawn has a count of 0 against 1."""
    count = TruncatedGeometric(Count("hlthp", equals=1.0), math.e, 400)
    pair = replaced("a person in poor health is replaced by one who is not", person(hlthp=1), person(hlthp=0))
    # Nobody has 36 visits, so the clamped half of the noise is all in one cell.
    rare, at_zero = TruncatedGeometric(Count("mdvis", equals=36.0), math.e, 400), visits(0, 36)
    for mechanism, moved, case in ((count, pair, "count"), (rare, at_zero, "count_at_the_end")):
        yield from reference(mechanism, PureDP(1.0), moved, case=case, relation=REPLACE)

    yield from broken_and_deviating(TRUNCATED["reject_and_redraw"], rare, at_zero, relation=REPLACE)
    yield from broken_and_deviating(TRUNCATED["noise_clamped"], count, pair, relation=REPLACE)
    # Everybody is counted, and an output above the number of rows gives away that the dataset is the larger one.
    everybody = TruncatedGeometric(Count("mdvis", low=0.0, relation="add_remove_one"), math.e, 30_000)
    one_more = added("one more person, with 2 visits", person(mdvis=2))
    yield broken(TRUNCATED["data_dependent_bound"], everybody, one_more, relation=ADD_REMOVE)

    yield inequality(
        _clamped_errors,
        statement="errors are no more likely to be large than without clamping",
        level="L4",
        case="errors",
        derived=True,
        note="all answers from 0 to 20, all errors, from the distributions",
    )
    yield inequality(
        _biases,
        statement="the bias points to the interior",
        relation="<",
        level="L4",
        case="bias",
        derived=True,
        note="all answers from 0 to 20, from the distributions",
    )
    for mechanism, data, exactly, case in (
        (count, pair.x, _tail(math.e, 3), "count"),
        (rare, at_zero.x, _tail(math.e, 3) / 2, "count_at_the_end"),  # no error is below 0 there
    ):
        yield accuracy(
            mechanism,
            data,
            Absolute(float(mechanism.query(data))),
            at_most=3.0,
            beta=_tail(math.e, 3),
            strict=True,
            exact=exactly,
            case=case,
            derived=True,
            note="no more often than without clamping: 2 a^(1-t) / (a + 1)",
        )
