"""The ledger: what is certified against the catalogue's ranges and by hand, exact leaks, counts of epochs, students."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from experiments.document_004_model_agnostic import ledger as experiment
from mechanisms.base.queries import IdentityQuery
from mechanisms.selection.free_tops import inverted, tail
from mechanisms.teacher_ensembles.composition_ledger import (
    CompositionLedger,
    algorithm_1,
    algorithm_3,
    algorithm_4,
    algorithm_6,
    delta_of_flips,
    doubled,
    failing_tests,
    looping,
    most_students,
    refusals,
    student,
    with_distance,
)
from mechanisms.teacher_ensembles.online_leaks import release_scale, release_threshold
from mechanisms.teacher_ensembles.soft_label_votes import OneSoftLabel

Build = Callable[[float, float, int, int], CompositionLedger]
#: Cutoffs of the catalogue's search, and some between them.
CUTOFFS = (1, 2, 3, 5, 10, 30, 100, 1000, 10_000, 100_000)


def certified_up_to(ledgers: Sequence[CompositionLedger]) -> float:
    """Largest epsilon of ledgers, in increasing order, up to which none has a flag; 0 if the first has one."""
    unflagged = itertools.takewhile(lambda ledger: not ledger.flags, ledgers)
    return max((ledger.epsilon for ledger in unflagged), default=0.0)


def of_soft_labels(epsilon: float, delta: float, queries: int, cutoff: int) -> CompositionLedger:
    return doubled(algorithm_6(epsilon, delta, queries, cutoff))


def of_double_loop(epsilon: float, delta: float, queries: int, cutoff: int) -> CompositionLedger:
    return looping(of_soft_labels(epsilon, delta, queries, cutoff), 2 * cutoff)


@pytest.mark.parametrize(
    ("build", "half", "golden"),
    [
        (algorithm_4, 0.1, 4.0),
        (algorithm_4, 0.01, 6.0),
        (algorithm_4, 1e-3, 6.5),
        (algorithm_4, 1e-6, 8.0),
        (of_soft_labels, 0.01, 18.0),
        (of_double_loop, 0.01, 4.5),
        (of_double_loop, 1e-3, 6.5),
        (of_double_loop, 1e-6, 8.0),
    ],
)
def test_golden_ranges_with_the_gap(build: Build, half: float, golden: float) -> None:
    """Largest epsilon, in steps of 1/2, up to which all cutoffs are certified."""
    epsilons = [0.5 * i for i in range(1, 50)]
    found = min(certified_up_to([build(e, 2 * half, 10**6, t) for e in epsilons]) for t in CUTOFFS)
    assert found == golden


def test_composition_by_hand() -> None:
    """Two epochs of randomised response, in closed form."""
    one = CompositionLedger("by hand", 0.7, 0.2, 2.0, 2, None, 9)
    assert one.per_epoch == 1.0
    top = math.e / (1 + math.e)
    known = sum(
        max(
            math.prod(top if bit else 1 - top for bit in bits)
            - math.exp(0.7) * math.prod(1 - top if bit else top for bit in bits),
            0.0,
        )
        for bits in itertools.product((0, 1), repeat=2)
    )
    assert one.composed == pytest.approx(known, rel=1e-12)
    assert (one.leak, one.share) == (0.0, 0.2)
    epsilon, delta = one.certified()
    assert delta == 0.2
    assert replace(one, epsilon=epsilon).composed == pytest.approx(0.2, rel=1e-9)
    assert one.flags == ("composition",)
    assert replace(one, epsilon=1.01 * epsilon).flags == ()


def test_leaks_by_hand() -> None:
    one = CompositionLedger("by hand", 1.0, 0.1, 3.0, 5, 12.0, 3, sensitivity=2.0, flip=1.0)
    assert one.used == 3  # no more epochs than tests
    assert one.leak == pytest.approx(3 * tail(11.0, 3.0))
    assert one.certified()[1] == pytest.approx(0.05 + one.leak)
    assert "leak" in one.flags
    # With u = delta / 4m and w doubled a test leaks (4u - u^2)/6, in all at most delta/3.
    soft = with_distance(of_double_loop(1.0, 0.01, 100, 10))
    u = 0.01 / 400
    assert soft.leak == pytest.approx(22 * (4 * u - u**2) / 6)
    assert soft.leak <= 0.01 / 3


@pytest.mark.parametrize("answers", [(0, 0, 0), (9, 0, 9, 0), (9, 9, 9, 0, 0), (12, 0, 0, 0)])
def test_the_bound_on_leaks_holds_for_surviving_thresholds(answers: tuple[float, ...]) -> None:
    """Answers of 0 are flips; the others pass often, and a threshold that survives them is low. By quadrature."""
    one = CompositionLedger("Algorithm 3", 1.0, 0.1, 2.0, 2, 9.0, len(answers))
    run = inverted(IdentityQuery(), 1.0, 0.1, 1, 9.0)
    run = replace(run, epsilon=1.0, variant=replace(run.spec, threshold=2.0, query=4.0))
    assert (run.threshold_scale, run.query_scale, run.cutoff) == (2.0, 4.0, 2)
    law = run.law(np.array(answers, dtype=float))
    flips = [i for i, answer in enumerate(answers) if answer == 0]
    leaked = sum(
        p
        for transcript, p in zip(law.outcomes, law.probabilities, strict=True)
        if any(np.asarray(transcript)[i] == 0 for i in flips)
    )
    assert 0 < leaked <= one.leak * (1 + 1e-9)


@pytest.mark.parametrize(("delta", "queries", "golden"), [(1e-2, 1, 0.06475), (1e-3, 1, 0.02089), (1e-6, 100, 6.7e-5)])
def test_golden_deltas_of_the_printed_threshold(delta: float, queries: int, golden: float) -> None:
    for epsilon in (0.1, 1.0, 30.0):
        printed = algorithm_6(epsilon, delta, queries, 1)
        assert delta_of_flips(printed, 2) == pytest.approx(golden, rel=6e-3)
        u = delta / (4 * queries)
        assert delta_of_flips(printed, 2) == pytest.approx(1 - (1 - (4 * math.sqrt(u) - u) / 6) ** 2, rel=1e-9)
        assert "leak" in printed.flags
        assert delta_of_flips(doubled(printed), 2) < delta / 2
    if queries == 1 and delta == 1e-2:
        assert delta_of_flips(doubled(printed), 2) == pytest.approx(0.003328, abs=5e-7)


def test_constants_are_those_of_the_mechanisms() -> None:
    one = algorithm_3(2.0, 0.05, 10, 3)
    assert one.scale == pytest.approx(release_scale(2.0, 0.05, 3))
    assert one.bar == pytest.approx(one.scale * release_threshold(0.05, 10))
    assert (one.epochs, one.sensitivity, one.flip) == (4, 1.0, 0.0)
    # The catalogue's stream of flips only, at m = 10, T = 2, delta = .3.
    assert delta_of_flips(algorithm_3(1.0, 0.3, 10, 2), 3) == pytest.approx(0.029591, abs=5e-7)
    soft = algorithm_6(1.0, 0.01, 1, 1)
    chunked = OneSoftLabel(1.0, 0.01, 4).labels
    assert (soft.scale, 2 * float(soft.bar or 0)) == pytest.approx((chunked.scale, chunked.bar))
    assert algorithm_1(4.71, 0.5, 5, 1).scale == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("cutoff", [1, 2, 5, 10])
def test_counts_of_epochs(cutoff: int) -> None:
    assert refusals(cutoff) == cutoff + 1
    assert failing_tests(cutoff) == cutoff + 2


def test_failed_tests_are_held_against_what_the_noise_is_for() -> None:
    # sqrt(32 T ln(..)) is for T failed tests, Algorithm 6's sqrt(64 T ln(..)) for 2T: T + 2 is more at T = 1 only.
    (rows,) = (draft.subject() for draft in experiment._epochs() if draft.case == "t_failing_tests")
    above = [case for case, failed, most in rows if failed > most]
    assert [case for case in above if "6" in case] == ["Algorithm 6, T = 1"]
    assert len(above) == 5


def test_students() -> None:
    points = np.array([0.0, 0.25, 0.5, 0.75])
    assert student(points, np.array([1, 2, 7, 7]), 4) == 0.5
    assert student(points, np.array([7, 7, 7, 7]), 4) == 0.0
    assert student(points, np.array([1, -1, -1, 1]), 4) == math.inf
    assert student(points, np.array([-1, -1, -2, -2]), 4) == 0.0  # nothing was told: the first of all
    votes = np.array([0.3] * 80 + [0.8] * 5)
    assert most_students(OneSoftLabel(4.0, 0.1, 4), points, (votes, votes[::-1]), 50) == 1


def test_errors_show_what_was_given() -> None:
    with pytest.raises(ValueError, match="epsilon > 0"):
        algorithm_1(0.0, 0.1, 5, 1)
    with pytest.raises(ValueError, match=r"2\.0"):
        CompositionLedger("wrong", 1.0, 2.0, 1.0, 1, None, 1)
    with pytest.raises(ValueError, match=r"\(0, 1\)"):
        CompositionLedger("wrong", 1.0, 0.5, 1.0, 0, None, 1)
    with pytest.raises(ValueError, match="-1"):
        CompositionLedger("wrong", 1.0, 0.5, 1.0, 1, 1.0, 1, flip=-1)
    with pytest.raises(ValueError, match="Algorithm 1"):
        doubled(algorithm_1(1.0, 0.1, 5, 1))
    with pytest.raises(ValueError, match="Algorithm 1"):
        delta_of_flips(algorithm_1(1.0, 0.1, 5, 1), 2)
