"""True levels of mutants: the expressions they are written in, and levels on pairs by plain quadrature.

The quadratures are over the threshold's noise, for sparse vector in the orientation of document 004, Algorithm 1: an
answer is a top where it and its noise reach the threshold and its noise. They share no code with the mechanisms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from auditor.privacy.guarantees import DeltaDP
from mechanisms.stability.triangles import NoisyBoundPublished, TriangleCounts
from tests.claims.declared import claim_of, stated_on_pair
from tests.claims.expressions import (
    Value,
    evaluate,
    gaussian_delta,
    gaussian_shift,
    lattice_level,
    level_of_masses,
    responses_level,
)
from tests.unit.mechanisms.stability.test_triangles import published_by_enumeration

Array = NDArray[np.float64]

# ------------------------------------------------------------------------------------ expressions


def test_expressions_by_hand() -> None:
    names: dict[str, Value] = {"eps": 0.5, "n": 3, "p": "eps/4", "q": "1-p"}
    for text, value in (
        ("2*eps", 1.0),
        ("-eps + n^2/2 - 1", 3.0),
        ("ln(q/p)", math.log(7)),
        ("max(eps, sqrt(n*3), 1) + C(5, 2)", 13.0),
        ("inf", math.inf),
        (0.25, 0.25),
    ):
        assert evaluate(text, names) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2*alpha", "'alpha'"),
        ("up to eps", "'up to eps'"),
        ("__import__('os')", "__import__"),
        ("eps.real", r"eps\.real"),
        ("eps if eps else 1", "if eps"),
        ("True", "True"),
        ("a", "'a'"),  # each is written in terms of the other
    ],
)
def test_what_is_no_expression_is_refused(text: str, shown: str) -> None:
    with pytest.raises(ValueError, match=shown):
        evaluate(text, {"eps": 1.0, "a": "b", "b": "a"})


def test_levels_at_a_delta_in_closed_form() -> None:
    # One binary answer: p - e^E q; noise on a fine lattice as Laplace noise, whose delta is 1 - e^((E - t)/2).
    p = math.e / (1 + math.e)
    assert responses_level(1.0, 1, 0.1) == pytest.approx(math.log((p - 0.1) / (1 - p)), rel=1e-12)
    assert lattice_level(2.0**-9, 1024, 0.3) == pytest.approx(2 + 2 * math.log(0.7), abs=1e-5)
    assert gaussian_delta(gaussian_shift(1.0, 1e-5), 1.0) == pytest.approx(1e-5, rel=1e-9)


# ---------------------------------------------------------------------------- sparse vector's bank

Halt = Literal["bottom", "top", "never"]


@dataclass(frozen=True)
class Run:
    """Answers on the two datasets and what decides about them.

    Attributes
    ----------
    x, y : sequence of float
        Answers, less the threshold.
    bar, query : float
        Scales of the noises.
    redrawn : {"bottom", "always"}
        After which answers the threshold's noise is drawn anew.
    halt : {"bottom", "top", "never"}
        The answer that ends the run.
    one_sided : bool
        Whether the threshold's noise is exponential.
    """

    x: Sequence[float]
    y: Sequence[float]
    bar: float = 1.0
    query: float = 2.0
    redrawn: Literal["bottom", "always"] = "bottom"
    halt: Halt = "bottom"
    one_sided: bool = False


def nodes(run: Run) -> tuple[Array, Array]:
    """Points and masses of the threshold's noise: Gauss-Legendre between multiples of 1/2, where the kinks are."""
    if run.bar == 0:
        return np.zeros(1), np.ones(1)
    ends = np.arange(0.0 if run.one_sided else -60.0, 60.0, 0.5)
    points, weights = np.polynomial.legendre.leggauss(24)
    r = (ends[:, None] + (points + 1) / 4).ravel()
    law = stats.expon(scale=run.bar) if run.one_sided else stats.laplace(scale=run.bar)
    return r, np.tile(weights / 4, ends.size) * law.pdf(r)


def parts(run: Run, answers: Sequence[float]) -> tuple[Array, Array]:
    """Log probabilities that answers i to j - 1 are tops, and that answer j is a bottom then; j below i: undefined."""
    r, mass = nodes(run)
    m = len(answers)
    tops, bottom = np.full((m + 1, m + 1), np.nan), np.full((m + 1, m + 1), np.nan)
    for i in range(m + 1):
        so_far = mass
        for j in range(i, m + 1):
            tops[i, j] = math.log(so_far.sum())
            if j < m:
                bottom[i, j] = math.log((so_far * stats.laplace.cdf(r - answers[j], scale=run.query)).sum())
                so_far = so_far * stats.laplace.sf(r - answers[j], scale=run.query)
    return tops, bottom


def level(run: Run) -> float:
    """Largest log ratio of a transcript, either way: transcripts are runs of tops between draws of the threshold."""
    first, second = parts(run, run.x), parts(run, run.y)
    m = len(run.x)

    def largest(tops: Array, bottom: Array) -> float:
        # best[i]: the most that answers from i on cost, right after a draw of the threshold.
        best = [0.0] * (m + 1)
        for i in reversed(range(m)):
            alone = run.redrawn == "always" or run.halt == "top"
            ends = range(i, i + 1 if alone else m)
            after = [0.0 if run.halt == "bottom" else best[j + 1] for j in ends]
            found = [bottom[i, j] + rest for j, rest in zip(ends, after, strict=True)]
            after_top = 0.0 if run.halt == "top" else best[i + 1]
            found.append(tops[i, i + 1] + after_top if alone else tops[i, m])
            best[i] = max(found)
        return best[0]

    forward = tuple(p - q for p, q in zip(first, second, strict=True))
    return max(largest(*forward), largest(*(-loss for loss in forward)))


#: Ten tops up and a bottom down by 1, against all at the threshold; all 12 the same way; 20 down.
_UP, _AT = (1.0,) * 10 + (-1.0,), (0.0,) * 11
#: For T = 4, delta = 1/100 and epsilon = 1/4 of a whole run, whose scale m10, m11 and m12 get wrong.
BANK = {
    "m1_query_noise_lambda": Run(_UP, _AT, query=1.0),
    "m2_scales_swapped": Run(_UP, _AT, bar=2.0, query=1.0),
    "m4_no_threshold_noise": Run(_UP, _AT, bar=0.0),
    "m5_threshold_redrawn_every_query": Run(_UP, _AT, redrawn="always"),
    "m7_no_cutoff": Run((1.0,) * 12, (0.0,) * 12, halt="never"),
    "m8_counter_counts_tops": Run((-1.5,) * 20, (-0.5,) * 20, halt="top"),
    "m10_no_sqrt_T": Run(_UP, _AT, 4**-0.5, 2 * 4**-0.5),
    "m11_no_log_delta": Run(_UP, _AT, math.log(100) ** -0.5, 2 * math.log(100) ** -0.5),
    "m12_eps_inside_the_root": Run(_UP, _AT, 0.25**0.5, 2 * 0.25**0.5),
    "m16_log_base": Run(_UP, _AT, math.log(10) ** -0.5, 2 * math.log(10) ** -0.5),
    "m16_log_base_of_the_threshold": Run(_UP, _AT, math.log(10) ** -0.5, 2.0),
    "m17_one_sided_threshold_noise": Run(_UP, _AT, one_sided=True),
    "m18_sensitivity_two": Run(tuple(2 * up for up in _UP), _AT),
}


@pytest.mark.parametrize("name", BANK)
def test_an_epoch_by_quadrature(name: str) -> None:
    claim = claim_of(f"004/svt_mutants/{name}")
    assert stated_on_pair(claim) == pytest.approx(level(BANK[name]), abs=5e-5)


def test_v4_by_quadrature() -> None:
    # In the textbook orientation, c = 1 and eps = 1: noises of scales 4 and 4/3, nine answers a half below and one a
    # half above the threshold against the opposite; mirrored, it is an epoch.
    run = Run((0.5,) * 9 + (-0.5,), (-0.5,) * 9 + (0.5,), bar=4.0, query=4 / 3)
    assert stated_on_pair(claim_of("004/svt_mutants/v4_lee_clifton")) == pytest.approx(level(run), abs=5e-5)


def test_online_release_by_quadrature() -> None:
    # Claimed are 2/lambda; distances 9 and 7, or all 9, against 8, at a threshold of 8.
    turned, same, at = (1.0,) * 11 + (-1.0,), (1.0,) * 12, (0.0,) * 12
    for name, x, query, redrawn, halt in (
        ("004/oqr/noise_half_lambda", turned, 0.5, "bottom", "bottom"),
        ("004/oqr/answers_after_halt", same, 2.0, "bottom", "never"),
        ("004/bin_clas/answers_after_halt", same, 2.0, "bottom", "never"),
        ("004/hpriv_err/fresh_threshold_every_query", turned, 2.0, "always", "bottom"),
    ):
        claim = claim_of(name)
        scale = 2 / claim.draft.privacy_guarantee.level
        found = level(Run(x, at, scale, query * scale, redrawn, halt))  # type: ignore[arg-type]
        assert stated_on_pair(claim) == pytest.approx(found, abs=5e-5), name
    # ln(1/delta) for ln(2/delta) under the root of lambda, delta = 1/2.
    claim = claim_of("004/oqr/log_1_over_delta_in_lambda")
    scale = 2 / claim.draft.privacy_guarantee.level * math.sqrt(math.log(2) / math.log(4))
    assert stated_on_pair(claim) == pytest.approx(level(Run(turned, at, scale, 2 * scale)), abs=5e-5)


@pytest.mark.parametrize(
    "name",
    [
        "m1_query_noise_lambda",
        "m2_scales_swapped",
        "m4_no_threshold_noise",
        "m5_threshold_redrawn_every_query",
        "m8_counter_counts_tops",
        "m17_one_sided_threshold_noise",
    ],
)
def test_the_bank_in_an_online_release_by_quadrature(name: str) -> None:
    # Distances 9 and 7 against 8, at a threshold of 8.5.
    claim, run = claim_of(f"004/oqr/{name}"), BANK[name]
    scale = 2 / claim.draft.privacy_guarantee.level
    found = replace(run, x=(0.5,) * 11 + (-1.5,), y=(-0.5,) * 12, bar=run.bar * scale, query=run.query * scale)
    assert stated_on_pair(claim) == pytest.approx(level(found), abs=5e-6)


def test_no_epoch_costs_more_than_is_stated() -> None:
    # 2/lambda as claimed, and closer to it the more tops there are; with a threshold that is never low, 2.82
    # Delta/lambda after five tops at Delta/lambda = 1/2 (catalogue 004, M17).
    costs = [level(Run((1.0,) * k + (-1.0,), (0.0,) * (k + 1))) for k in (1, 10, 40)]
    assert costs == sorted(costs)
    assert 1.99 < costs[-1] <= 2
    pairs = (((at,) * 5 + (at + 0.5,), (at + 0.5,) * 5 + (at,)) for at in np.arange(-3.0, 1.0, 0.5))
    assert max(level(Run(x, y, one_sided=True)) for x, y in pairs) / 0.5 == pytest.approx(2.82, abs=0.005)


# --------------------------------------------------------------------------- choices among counts


def test_a_choice_on_the_lattice_by_summation() -> None:
    # A*: a parity of the attribute and three of nothing on three test rows (1, 0), or on (1, 1) and two (1, 0); integer
    # noise with mass as e^(-|k|/2) on each number of errors, and the first of equals.
    k = np.arange(-120, 124)
    noise = math.tanh(0.25) * np.exp(-0.5 * np.abs(k))

    def chosen(errors: Sequence[int]) -> Array:
        masses = np.array([np.roll(noise, e) for e in errors])
        more = 1 - np.cumsum(masses, axis=1)
        least = [np.where(np.arange(4)[:, None] < j, more, more + masses) for j in range(4)]
        return np.array([(masses[j] * np.delete(least[j], j, axis=0).prod(axis=0)).sum() for j in range(4)])

    first, second = chosen((3, 0, 0, 0)), chosen((2, 1, 1, 1))
    assert first.sum() == pytest.approx(1.0, rel=1e-12)
    found = np.abs(np.log(first / second)).max()
    claim = claim_of("002/parity_amplified_Astar/noise_1_over_s_eps__choice")
    assert stated_on_pair(claim) == pytest.approx(found, abs=5e-6)


def test_one_noise_in_two_tests_by_quadrature() -> None:
    # Thresholds of scale 1/2 and one noise of scale 1; distances at the threshold, against one above and one below.
    ends = np.arange(-60.0, 60.0, 0.5)
    points, weights = np.polynomial.legendre.leggauss(24)
    z = (ends[:, None] + (points + 1) / 4).ravel()
    mass = np.tile(weights / 4, ends.size) * stats.laplace.pdf(z)

    def outcomes(first: float, second: float) -> Array:
        """Probabilities of a first label, a second one, and none."""
        passes = stats.laplace.cdf(z + np.array([[first], [second]]), scale=0.5)
        fails = stats.laplace.sf(z + np.array([[first], [second]]), scale=0.5)
        return np.array([passes[0] @ mass, (fails[0] * passes[1]) @ mass, (fails[0] * fails[1]) @ mass])

    at, moved = outcomes(0, 0), outcomes(1, -1)
    assert at.sum() == pytest.approx(1.0, rel=1e-12)
    claim = claim_of("004/slq/second_noise_reused")
    assert stated_on_pair(claim) == pytest.approx(np.abs(np.log(at / moved)).max(), abs=5e-6)


# -------------------------------------------------------------------------------------- triangles


def _counts(graph: NDArray[np.int64]) -> TriangleCounts:
    """Nodes, triangles, and the most common neighbours of two nodes."""
    common = graph @ graph
    off = common * (1 - np.eye(len(graph), dtype=np.int64))
    return TriangleCounts(len(graph), int((common * graph).sum()) // 6, int(off.max()))


def noisy_count(graph: NDArray[np.int64], epsilon: float, offset: float, times: int) -> Array:
    """Masses of a count, as often as it is told, and of no answer, summed over all bounds on a lattice of 1/8."""
    _, triangles, sensitivity = _counts(graph)
    k = np.arange(-450, 451)
    mass = math.tanh(epsilon / 16) * np.exp(-epsilon / 8 * np.abs(k))
    bounds = (sensitivity + offset) + k / 8
    rate = epsilon / bounds[bounds > 0, None]
    answers = np.tanh(rate / 2) * np.exp(-rate * np.abs(np.arange(-1500, 1501) - times * triangles))
    return np.append(mass[bounds > 0] @ answers, mass[bounds <= 0].sum())


def test_triangles_by_enumeration() -> None:
    # The offset is ln(1/delta)/eps, rounded up to the bound's lattice.
    rounded = math.ceil(8 * math.log(100)) / 8
    for name, offset, times in (("offset_dropped", 0.0, 1), ("ordered_triangles", rounded, 6)):
        claim = claim_of(f"003/noisy_local_sensitivity_triangles/{name}")
        epsilon, (pair,) = claim.draft.privacy_guarantee.level, claim.draft.pairs
        p, q = (noisy_count(np.asarray(graph), epsilon, offset, times) for graph in (pair.x, pair.y))
        assert p.sum() == pytest.approx(1.0, abs=1e-9)
        loss = np.log(p) - np.log(q)
        found = max(level_of_masses(loss, np.log(q), 0.01), level_of_masses(-loss, np.log(p), 0.01))
        assert stated_on_pair(claim) == pytest.approx(found, abs=5e-6), name


@pytest.mark.parametrize("epsilon", ["0_5", "1", "2"])
def test_deltas_with_the_bound_shown_by_enumeration(epsilon: str) -> None:
    claim = claim_of(f"003/noisy_local_sensitivity_triangles/noisy_bound_published__delta_at_{epsilon}")
    (pair,) = claim.draft.pairs
    first, second = (_counts(np.asarray(graph)) for graph in (pair.x, pair.y))
    assert (first[1:], second[1:]) == ((200, 200), (400, 201))
    guarantee = claim.draft.privacy_guarantee
    assert isinstance(guarantee, DeltaDP)
    assert guarantee.epsilon == float(epsilon.replace("_", "."))
    mechanism = NoisyBoundPublished(guarantee.epsilon, 1e-2)
    found = published_by_enumeration(mechanism, first, second)
    assert stated_on_pair(claim) == pytest.approx(found, abs=5e-7)
