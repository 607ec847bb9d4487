"""The fixed-size method: limits, the split, the bound, what results say."""

from __future__ import annotations

import json
import math
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from auditor import ApproxDP, GaussianDP, Pair, PureDP, SpecificationError, Verdict, audit, explain, report
from auditor.audits.context import Question
from auditor.audits.fixed_size import fixed_ceiling, flag_probability
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.evidence.binomial import clopper_pearson
from auditor.evidence.power import LEARNING
from auditor.results import make_document, make_plain

PAIR = Pair(np.array([0]), np.array([1]))
#: Randomised response with epsilon = ln 3.
LEVEL = math.log(3)


def response(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.asarray(np.where(rng.random(n) < 0.75, data[0], 1 - data[0]))


def fixed(mechanism: Any = response, claim: Any = PureDP(LEVEL), pairs: Any = PAIR, **options: Any) -> Any:  # noqa: B008
    return audit(mechanism, claim, pairs, method="clopper-pearson", **{"draws": 8_000, **options})


# -------------------------------------------------------------------------------------- limits


@settings(deadline=None)
@given(st.integers(1, 10_000), st.floats(0, 1), st.sampled_from([0.2, 0.05, 0.005, 1e-6, 1e-12]))
def test_limits_are_where_the_binomial_tail_is_alpha(n: int, share: float, alpha: float) -> None:
    count = round(share * n)
    low, high = float(clopper_pearson(count, n, alpha, "lower")), float(clopper_pearson(count, n, alpha, "upper"))
    assert low == 0 if count == 0 else stats.binom.sf(count - 1, n, low) == pytest.approx(alpha, rel=1e-6)
    assert high == 1 if count == n else stats.binom.cdf(count, n, high) == pytest.approx(alpha, rel=1e-6)
    assert 0 <= low <= count / n <= high <= 1


@pytest.mark.parametrize(("count", "n"), [(0, 1000), (1, 1000), (184, 1000), (999, 1000), (1000, 1000)])
def test_limits_agree_with_two_other_libraries(count: int, n: int) -> None:
    # statsmodels' default method is the normal one, which gives (0, 0) for 0 of 1000; its "beta" is this, two-sided.
    low, high = proportion_confint(count, n, alpha=0.02, method="beta")
    interval = stats.binomtest(count, n).proportion_ci(0.98, "exact")
    # Root finding and quantile functions of both are right to about 1e-10.
    for other in ((low, high), (interval.low, interval.high)):
        assert clopper_pearson(count, n, 0.01, "lower") == pytest.approx(other[0], abs=1e-9)
        assert clopper_pearson(count, n, 0.01, "upper") == pytest.approx(other[1], abs=1e-9)


@pytest.mark.parametrize("n", [1, 7, 50])
@pytest.mark.parametrize("p", [0.003, 0.3, 0.5, 0.99])
@pytest.mark.parametrize("alpha", [0.3, 0.05])
def test_coverage_of_each_limit_summed_over_all_counts(n: int, p: float, alpha: float) -> None:
    counts = np.arange(n + 1)
    mass = stats.binom.pmf(counts, n, p)
    assert mass[clopper_pearson(counts, n, alpha, "lower") > p].sum() <= alpha
    assert mass[clopper_pearson(counts, n, alpha, "upper") < p].sum() <= alpha


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 4, 0.1, "lower"), "5"),
        ((-1, 4, 0.1, "upper"), "-1"),
        ((1, 4, 1.0, "lower"), "1.0"),
        ((1, 4, 0.1, "two"), "'two'"),
    ],
)
def test_bad_counts_levels_and_sides_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        clopper_pearson(*arguments)


# ------------------------------------------------------------------------------- one audit's parts


def test_half_of_the_draws_choose_and_the_other_half_judge_once() -> None:
    found = fixed(draws=8_001)
    assert found.draws == 8_000
    assert sum(n for _, n, _ in found.record["chunks"]) == 2_000
    assert all(stake is None for _, _, stake in found.record["chunks"])
    assert found.record["judged"]["n"] == 2_000


@pytest.mark.parametrize("claim", [PureDP(0.5), ApproxDP(0.5, 0.01), GaussianDP(0.5)], ids=str)
def test_the_bound_is_that_of_the_recorded_counts(claim: Any) -> None:
    found = fixed(claim=claim, alpha=0.02)
    judged = found.record["judged"]
    low = stats.beta.ppf(0.01, judged["x"], judged["n"] - judged["x"] + 1)
    high = stats.beta.ppf(0.99, judged["y"] + 1, judged["n"] - judged["y"])
    if isinstance(claim, GaussianDP):
        expected = stats.norm.ppf(low) - stats.norm.ppf(high)
    else:
        expected = max(math.log((low - claim.delta) / high), math.log((1 - claim.delta - high) / (1 - low)))
    assert found.lower_bound == pytest.approx(expected, rel=1e-9)
    assert found.verdict == Verdict.VIOLATION
    assert (judged["p_lower"], judged["q_upper"]) == (pytest.approx(low), pytest.approx(high))


def test_the_judged_counts_are_of_draws_that_nothing_was_learned_from() -> None:
    calls: list[tuple[int, int]] = []

    def counted(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        outputs = response(data, n, rng)
        calls.append((int(data[0]), int(np.count_nonzero(outputs))))
        return outputs

    found = run_audit(
        counted, PureDP(LEVEL), [PAIR], Settings(draws=8_000, method="clopper-pearson", independence=False), Question()
    )
    judged = found.record["judged"]
    last = calls[-40:]  # twenty calls a side, in turn
    ones_x, ones_y = (sum(ones for _, ones in last[side::2]) for side in (0, 1))
    if judged["x"] != ones_x:  # the event is "0"
        ones_x, ones_y = judged["n"] - ones_x, judged["n"] - ones_y
    assert (judged["x"], judged["y"]) == (ones_x, ones_y)


def test_it_never_stops_early() -> None:
    assert fixed(claim=PureDP(0.1), stop="verdict").draws == 8_000
    assert fixed(claim=PureDP(0.1), stop="verdict").stop == "budget"
    assert Settings(method="clopper-pearson").stop == "budget"


def test_the_pair_that_shows_it_is_judged() -> None:
    def only_on_two(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return np.where(rng.random(n) < (0.9 if data[0] == 2 else 0.5), 1, 0)

    pairs = [Pair(np.array([0]), np.array([1]), "dull"), Pair(np.array([1]), np.array([2]), "telling")]
    found = fixed(only_on_two, PureDP(1.0), pairs)
    # The event "0" has probabilities 0.5 and 0.1 on one pair only: a bound of about ln 5 at some 1,000 draws or more.
    assert (found.pair, found.verdict) == ("telling", Verdict.VIOLATION)


@pytest.mark.parametrize("method", ["wald", 3, None])
def test_an_unknown_method_is_refused_and_shown(method: Any) -> None:
    with pytest.raises(SpecificationError, match="method must be one of"):
        audit(response, PureDP(1.0), PAIR, method=method)


def test_the_same_seed_gives_the_same_result_to_the_byte() -> None:
    one, two = (json.dumps(fixed(seed=3).to_json()) for _ in range(2))
    assert one == two
    assert one != json.dumps(fixed(seed=4).to_json())


def test_shared_noise_is_a_deviation_and_a_leak_beside_it_a_violation() -> None:
    def shared(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.full(n, rng.normal())

    assert fixed(shared, PureDP(1.0), draws=400).verdict == Verdict.DEVIATION

    def leaky(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.full(n, np.rint(rng.normal() * 16) / 16 + 100 * data[0])

    found = fixed(leaky, PureDP(1.0), draws=400)
    assert found.verdict == Verdict.VIOLATION
    assert "judged on one draw a call" in found.message


def test_a_target_that_fails_is_an_error() -> None:
    def fails(data: Any, n: int, rng: np.random.Generator) -> Any:
        raise RuntimeError("no")

    assert fixed(fails).verdict == Verdict.ERROR


def test_outputs_that_never_vary_give_no_bound() -> None:
    found = fixed(lambda data, n, rng: np.zeros(n), PureDP(1.0))
    assert found.lower_bound == 0.0
    assert found.verdict != Verdict.VIOLATION


# ---------------------------------------------------------------------------------------- power


def test_the_ceiling_is_what_perfectly_distinguishable_outputs_certify() -> None:
    found = fixed(lambda data, n, rng: np.full(n, data[0]), PureDP(1.0))
    assert found.lower_bound == found.ceiling == fixed_ceiling(2_000, PureDP(1.0), 0.01)
    low = 0.005 ** (1 / 2_000)  # all of 2,000 at alpha / 2
    assert found.ceiling == pytest.approx(math.log(low / (1 - low)))
    assert fixed_ceiling(0, PureDP(1.0), 0.01) == 0.0


@pytest.mark.parametrize(("p", "q", "n"), [(0.8, 0.2, 60), (0.6, 0.15, 300), (0.02, 0.0005, 2_000)])
def test_the_probability_of_a_flag_is_that_of_the_exact_sum(p: float, q: float, n: int) -> None:
    claim, counts = PureDP(1.0), np.arange(n + 1)
    low = clopper_pearson(counts, n, 0.025, "lower")[:, None]
    high = clopper_pearson(counts, n, 0.025, "upper")[None, :]
    mass = stats.binom.pmf(counts, n, p)[:, None] * stats.binom.pmf(counts, n, q)[None, :]
    exact = mass[(low > high) & (claim.level_of(low, high) > 1.0)].sum()
    # 32 equally likely cells for each count: each cell on the border of the rejected region is right to a half, and a
    # monotone border crosses at most 64 of 1,024.
    assert flag_probability(p, q, n, claim, 0.05) == pytest.approx(exact, abs=32 / 1024)


def test_what_is_resolved_would_be_flagged_by_fewer_draws_than_judge() -> None:
    found = fixed(claim=PureDP(LEVEL), draws=20_000)
    level, n = found.resolves, found.record["judged"]["n"]
    assert level is not None
    assert LEVEL < level < 2.5 * LEVEL
    assert flag_probability(math.exp(level) * 0.01, 0.01, int(2 * n / LEARNING[0].divisor), PureDP(LEVEL), 0.01) >= 0.9


# ------------------------------------------------------------------------------------- results


def test_results_say_which_method_it_was() -> None:
    found = fixed(claim=PureDP(0.5))
    assert found.method == found.record["method"] == "clopper-pearson"
    assert audit(response, PureDP(0.5), PAIR, draws=400).method == "e-process"
    text = explain(found)
    assert "clopper-pearson" in text
    assert "e-value" not in text
    assert "method='clopper-pearson'" in found.replay
    assert found.counterexample.e_value_log10 is None
    assert found.counterexample.x_count == found.record["judged"]["x"]
    assert (found.log10_e_value, found.log10_max_e_value) == (None, None)


def test_results_fit_the_schema_and_the_reports(tmp_path: Any) -> None:
    content = make_document({"dpaudit": "0", "seed": 0, "alpha": 0.01}, [fixed(claim=PureDP(0.5)), fixed()], [])
    content = json.loads(json.dumps(make_plain(content)))
    jsonschema.validate(content, report.read_schema())
    written = report.write_reports(content, tmp_path, None)
    texts = {path.name: path.read_text(encoding="utf-8") for path in written}
    assert "clopper-pearson" in texts["report.html"]
    assert all("10^nan" not in text and "e-value –" not in text for text in texts.values())


def test_a_budget_in_seconds_gives_halves_of_one_size_and_can_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(1_000_000))
    with monkeypatch.context() as patch:
        patch.setattr("auditor.audits.loop.time.monotonic", lambda: float(next(ticks)))
        settings = Settings(draws=100_000, seconds=40.0, method="clopper-pearson")
        cut = run_audit(response, PureDP(LEVEL), [PAIR], settings, Question())
    assert cut.truncated_by == "time"
    assert cut.record["judged"]["n"] == sum(n for _, n, _ in cut.record["chunks"]) < 25_000
    settings = Settings(draws=100_000, chunks=len(cut.record["chunks"]), method="clopper-pearson")
    again = run_audit(response, PureDP(LEVEL), [PAIR], settings, Question())
    assert (again.record, again.lower_bound) == (cut.record, cut.lower_bound)


def test_a_learned_score_can_be_the_event() -> None:
    def product(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        first = rng.choice([-1.0, 1.0], n)
        second = first * np.where(rng.random(n) < (0.9 if data[0] else 0.1), 1, -1)
        return np.rint(np.column_stack([first, second]) * np.abs(rng.normal(size=(n, 2))) * 2.0**12) / 2.0**12

    # The score is the best event by far; min(output) comes next, and half of the runs or so find it in the first half.
    runs = [fixed(product, PureDP(1.0), learners="logistic", draws=4_000, seed=seed) for seed in range(20)]
    assert all(found.verdict == Verdict.VIOLATION for found in runs)
    assert any("score" in found.event for found in runs)
    assert all(found.record["training"]["fits"] > 0 for found in runs)
