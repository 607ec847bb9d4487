"""The public functions: what they find, what they refuse, what they say."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import auditor
from auditor import (
    AddRemoveOne,
    ApproxDP,
    GaussianDP,
    Pair,
    PrivacyViolation,
    PureDP,
    ReplaceOne,
    SpecificationError,
    TargetError,
    Verdict,
    assert_private,
    audit,
    explain,
    one_draw,
)
from auditor.evidence.two_sample_bet import Stake, Wealth
from tests.commandline import run_line

Rng = np.random.Generator

PAIR = Pair(np.array([1, 0, 0]), np.array([0, 0, 0]), "first record")


def response(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
    """Randomised response on the first record with epsilon exactly 1."""
    bit, truthful = int(data[0]), rng.random(n) < math.e / (1 + math.e)
    return np.where(truthful, bit, 1 - bit)


def leaky(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
    """Randomised response with epsilon ln 19 = 2.94."""
    bit = int(data[0])
    return np.where(rng.random(n) < 0.95, bit, 1 - bit)


def boom(data: Any, n: int, rng: Rng) -> Any:
    raise RuntimeError("no entropy left")


# ------------------------------------------------------------------------------------- verdicts


def test_randomised_response_at_its_level_is_consistent() -> None:
    # alpha = 1e-6: a false alarm has at most this probability.
    result = audit(response, PureDP(1.0), PAIR, exact=1.0, draws=40_000, alpha=1e-6)
    assert result.verdict == Verdict.CONSISTENT
    assert result
    assert result.counterexample is None
    assert result.lower_bound is not None
    assert result.ceiling is not None
    assert result.resolves is not None
    # The Hoeffding bound on both counts at 1e-6 leaves 0.02 of 0.73: a tight audit certifies well above a half.
    assert 0.5 < result.lower_bound <= 1.0
    assert result.resolution["0.01"] == result.resolves
    assert 1.0 < result.resolution["0.1"] < result.resolves < 2.0 < result.resolution["0.001"]
    assert result.reached == pytest.approx(result.lower_bound, abs=1e-8)  # of a claim of 1
    assert result.ceiling == pytest.approx(math.log(2 * 20_000 / math.log(1e6)), abs=0.01)
    assert result.draws == 40_000


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-3), GaussianDP(1.0)], ids=str)
def test_a_leak_is_a_violation_in_every_notion(claim: Any) -> None:
    # 20,000 draws a side, each of which gains more than 0.1 nats: missed only if the counts are tens of standard
    # deviations off.
    result = audit(leaky, claim, PAIR, draws=40_000)
    assert result.verdict == Verdict.VIOLATION
    assert not result
    assert result.draws < 40_000
    assert result.log10_max_e_value is not None
    assert result.log10_max_e_value >= 2


@pytest.mark.parametrize("pair", [PAIR, Pair(PAIR.y, PAIR.x)], ids=["given order", "other order"])
def test_a_violation_is_found_in_either_order_of_the_pair(pair: Pair) -> None:
    assert audit(leaky, PureDP(1.0), pair, draws=40_000).verdict == Verdict.VIOLATION


def test_the_pair_that_shows_it_is_found_among_others() -> None:
    same = [Pair(np.array([0, k]), np.array([0, 0]), f"record {k}") for k in range(1, 8)]
    result = audit(leaky, PureDP(1.0), [*same[:4], PAIR, *same[4:]], draws=80_000)
    assert result.verdict == Verdict.VIOLATION
    assert result.pair == "first record"
    assert result.counterexample is not None
    assert result.counterexample.pair == "first record"


def test_a_level_that_so_few_draws_do_not_resolve_is_inconclusive_and_says_how_many_would() -> None:
    result = audit(response, PureDP(1.0), PAIR, draws=200, detect=1.5, alpha=1e-6)
    assert result.verdict == Verdict.INCONCLUSIVE
    assert not result
    said = re.search(r"on events of probability 0.01, 1.5 was to be found: ([\d,]+) draws would do", result.message)
    assert said is not None, result.message
    draws = int(said[1].replace(",", ""))
    assert audit(response, PureDP(1.0), PAIR, draws=draws, detect=1.5, alpha=1e-6).verdict == Verdict.CONSISTENT
    fewer = audit(response, PureDP(1.0), PAIR, draws=int(0.9 * draws), detect=1.5, alpha=1e-6)
    assert fewer.verdict == Verdict.INCONCLUSIVE


def test_no_draws_resolve_what_is_claimed() -> None:
    result = audit(response, PureDP(1.0), PAIR, draws=200, detect=1.0, alpha=1e-6)
    assert "1 was to be found, which is no more than is claimed" in result.message


def test_the_resolution_depends_on_the_draws_and_not_on_what_was_found() -> None:
    found = [audit(response, PureDP(1.0), PAIR, draws=2_000, seed=seed, alpha=1e-6) for seed in range(5)]
    found.append(audit(lambda data, n, rng: rng.random(n), PureDP(1.0), PAIR, draws=2_000))
    assert len({json.dumps(result.resolution) for result in found[:5]}) == 1
    assert found[5].resolves is not None
    assert found[0].resolves is not None
    assert found[5].resolves < found[0].resolves  # by its larger alpha
    more = audit(response, PureDP(1.0), PAIR, draws=20_000, alpha=1e-6)
    assert more.resolves is not None
    assert more.resolves < found[0].resolves


def test_a_violation_says_nothing_of_power() -> None:
    result = audit(response, PureDP(0.5), PAIR, draws=20_000)
    assert result.verdict == Verdict.VIOLATION
    assert result.resolves is None
    assert result.resolution == {}
    assert result.reached is not None
    assert result.reached >= 1.0


@pytest.mark.parametrize(
    ("mechanism", "quoted"),
    [
        (boom, "RuntimeError: no entropy left"),
        (lambda data, n, rng: np.zeros(n - 1), "shape"),
        (lambda data, n, rng: None, "None"),
        (lambda data, n, rng: 3.25, "3.25"),
        (lambda data, n, rng: (k for k in range(n)), "generator"),
        (lambda data, n, rng: time.sleep(60), "did not answer within 0.2 s"),
        (lambda data: 1, "TypeError"),
    ],
    ids=["raises", "too few", "nothing", "scalar", "generator", "hangs", "wrong signature"],
)
def test_what_a_mechanism_does_wrong_is_an_error_verdict_that_quotes_it(mechanism: Any, quoted: str) -> None:
    result = audit(mechanism, PureDP(1.0), PAIR, draws=400, limit=0.2)
    assert result.verdict == Verdict.ERROR
    assert not result
    assert quoted in result.message
    assert quoted in str(result)
    with pytest.raises(TargetError) as caught:
        assert_private(mechanism, PureDP(1.0), PAIR, draws=400, limit=0.2)
    assert quoted in str(caught.value)


def test_an_error_that_comes_late_is_an_error_verdict() -> None:
    def late(data: Any, n: int, rng: Rng) -> Any:
        if n > 300:
            raise OSError("disk full")
        return response(data, n, rng)

    result = audit(late, PureDP(1.0), PAIR, draws=40_000)
    assert result.verdict == Verdict.ERROR
    assert "disk full" in result.message


# -------------------------------------------------------------------------------- odd mechanisms


class Hostile:
    """Raises whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __len__(self) -> int:
        raise RuntimeError("length")

    def __float__(self) -> float:
        raise RuntimeError("number")

    def __repr__(self) -> str:
        raise RuntimeError("text")


class Opaque(Hostile):
    """Has no number, so that its attributes are asked for."""

    __float__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("value", [Hostile(), Opaque(), list, [str, 1]], ids=["hostile", "opaque", "class", "classes"])
def test_outputs_that_raise_when_they_are_looked_at_end_no_audit(value: Any) -> None:
    def mixed(data: Any, n: int, rng: Rng) -> list[Any]:
        return [value if one else (1,) for one in rng.integers(2, size=n)]

    result = audit(mixed, PureDP(1.0), PAIR, draws=2_000)
    assert result.verdict in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE)
    gives_away = audit(lambda data, n, rng: [value if data[0] else (1,)] * n, PureDP(1.0), PAIR, draws=2_000)
    assert gives_away.verdict == Verdict.VIOLATION


def test_an_output_that_contains_itself_is_an_error_verdict_that_shows_it() -> None:
    endless: list[Any] = [1]
    endless.append(endless)
    for mechanism in (lambda data, n, rng: [endless] * n, one_draw(lambda data, rng: endless)):
        result = audit(mechanism, PureDP(1.0), PAIR, draws=400)
        assert result.verdict == Verdict.ERROR
        assert "an output contains itself, or is nested too deeply to be read: [1, [1, [" in result.message


@pytest.mark.parametrize("value", [0, 1.5, "same", None, (1, 2), np.zeros(3), math.nan, math.inf], ids=repr)
def test_outputs_that_never_vary_are_no_violation_and_no_deviation(value: Any) -> None:
    result = audit(lambda data, n, rng: [value] * n, PureDP(1.0), PAIR, draws=2_000)
    assert result.verdict in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE)
    assert result.lower_bound == 0.0


@pytest.mark.parametrize(
    ("on_x", "on_y"),
    [
        ("yes", "no"),
        (0, 1),
        (None, 0.5),
        ("1", 1),
        ([1], [1, 2]),
        (math.nan, 0.0),
        (math.inf, -math.inf),
        ({"a": 1}, {}),
    ],
    ids=repr,
)
def test_outputs_that_tell_the_datasets_apart_for_sure_are_a_violation_within_a_hundred_draws(
    on_x: Any, on_y: Any
) -> None:
    result = audit(lambda data, n, rng: [on_x if data[0] else on_y] * n, PureDP(1.0), PAIR)
    assert result.verdict == Verdict.VIOLATION
    assert result.draws <= 100


def test_string_outputs_are_audited_as_symbols() -> None:
    def words(data: Any, n: int, rng: Rng) -> list[str]:
        return ["yea" if bit else "nay" for bit in leaky(data, n, rng)]

    result = audit(words, PureDP(1.0), PAIR, draws=40_000)
    assert result.verdict == Verdict.VIOLATION
    assert result.event in ("output is 'yea'", "output is 'nay'")


def test_an_exception_that_depends_on_the_data_gives_them_away() -> None:
    def fails(data: Any, rng: Rng) -> float:
        if data[0] and rng.random() < 0.3:
            raise OverflowError
        return float(rng.integers(0, 4))

    result = audit(one_draw(fails), PureDP(1.0), PAIR, draws=4_000)
    assert result.verdict == Verdict.VIOLATION
    assert result.event is not None
    assert "raised OverflowError" in result.event


def test_outputs_that_change_their_shape_from_call_to_call_are_judged() -> None:
    result = audit(lambda data, n, rng: np.zeros((n, 2 + n % 2)), PureDP(1.0), PAIR, draws=2_000)
    assert result.verdict in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE, Verdict.DEVIATION, Verdict.ERROR)


@pytest.mark.parametrize("shape", [(), (3,)], ids=["numbers", "vectors"])
def test_infinite_and_huge_outputs_are_audited_without_a_warning(shape: tuple[int, ...]) -> None:
    # pytest turns warnings into errors.
    def target(data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
        return rng.choice([math.inf, -math.inf, math.nan, 1e308, -1e308, 0.1], (n, *shape))

    result = audit(target, PureDP(1.0), PAIR, draws=2_000, alpha=1e-6)
    assert result.verdict in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE)


# ------------------------------------------------------------------------------------ arguments

BAD: list[tuple[str, Any]] = [
    ("alpha", 0),
    ("alpha", 1),
    ("alpha", -0.5),
    ("alpha", math.nan),
    ("alpha", "0.1"),
    ("alpha", True),
    ("draws", 0),
    ("draws", 31),
    ("draws", 1e6),
    ("draws", True),
    ("draws", "1000"),
    ("seconds", 0),
    ("seconds", -1),
    ("seconds", math.nan),
    ("seconds", "1"),
    ("stop", "now"),
    ("stop", None),
    ("seed", -1),
    ("seed", 1.5),
    ("seed", None),
    ("detect", 0),
    ("detect", -2.0),
    ("detect", "2"),
    ("detect", math.inf),
    ("limit", 0),
    ("limit", "60"),
    ("exact", "1"),
    ("id", 3),
    ("relation", "replace-one"),
    ("relation", ReplaceOne),
    ("learners", 3),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda value: repr(value))
def test_a_bad_option_is_refused_and_shown(name: str, value: Any) -> None:
    options: dict[str, Any] = {"draws": 400, name: value}
    with pytest.raises(SpecificationError, match=name) as caught:
        audit(response, PureDP(1.0), PAIR, **options)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("claim", [1.0, "epsilon=1", None, PureDP], ids=repr)
def test_what_is_no_guarantee_is_refused_and_shown(claim: Any) -> None:
    with pytest.raises(SpecificationError, match="guarantee") as caught:
        audit(response, claim, PAIR, draws=400)
    assert repr(claim) in str(caught.value)


@pytest.mark.parametrize("pairs", [None, 3, "pair", [1], [PAIR, (1, 2)], (PAIR.x, PAIR.y)], ids=repr)
def test_what_are_no_pairs_is_refused_and_shown(pairs: Any) -> None:
    with pytest.raises(SpecificationError, match=r"[Pp]air"):
        audit(response, PureDP(1.0), pairs, draws=400)


def test_no_pairs_are_refused() -> None:
    with pytest.raises(SpecificationError, match="no pair"):
        audit(response, PureDP(1.0), [], draws=400)


def test_pairs_that_are_no_neighbours_are_refused() -> None:
    with pytest.raises(SpecificationError, match="3 rows against 3"):
        audit(response, PureDP(1.0), PAIR, relation=AddRemoveOne())
    audit(response, PureDP(1.0), PAIR, relation=ReplaceOne(), draws=400)


def test_what_cannot_be_called_is_refused_and_shown() -> None:
    not_callable: Any = 17
    with pytest.raises(SpecificationError, match="17"):
        audit(not_callable, PureDP(1.0), PAIR)


# ---------------------------------------------------------------------------------- determinism


@pytest.mark.parametrize("stop", ["verdict", "budget"])
@pytest.mark.parametrize("mechanism", [response, leaky], ids=lambda f: f.__name__)
def test_the_same_seed_gives_the_same_result_to_the_byte(mechanism: Any, stop: str) -> None:
    one, other = (
        json.dumps(audit(mechanism, PureDP(1.0), PAIR, draws=4_000, seed=3, stop=stop).to_json()) for _ in range(2)
    )
    assert one == other


def test_another_seed_or_id_gives_other_draws() -> None:
    def counts(**options: Any) -> str:
        return json.dumps(audit(response, PureDP(1.0), PAIR, draws=4_000, **options).to_json()["record"])

    # Some thirty chunks of counts agree by chance with a probability below 1e-20.
    assert len({counts(seed=3), counts(seed=4), counts(seed=3, id="other/L1/claim/case")}) == 3


def test_results_are_strict_json() -> None:
    result = audit(lambda data, n, rng: np.zeros(n), PureDP(1.0), PAIR, draws=400)  # its resolution is infinite
    text = json.dumps(result.to_json(), allow_nan=False)
    assert json.loads(text) == result.to_json()


def tails(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Laplace noise, of which many events are bet on together."""
    return np.asarray(rng.laplace(size=n) + data[0])


@pytest.mark.parametrize("mechanism", [leaky, tails])
def test_the_wealth_can_be_computed_again_from_the_record(mechanism: Any) -> None:
    result = audit(mechanism, PureDP(1.0), PAIR, draws=4_000, seed=5)
    wealth = Wealth(PureDP(1.0), np.array([1.0]))
    chunks = result.record["chunks"]
    for _, n, stake in chunks:
        again = None if stake is None else Stake(*stake)
        assert again is None or sum(again.x) == sum(again.y) == n
        wealth.bet(again)
    assert wealth.best[0] / math.log(10) == pytest.approx(result.log10_max_e_value)
    assert 2 * sum(n for _, n, _ in chunks) == result.draws


@pytest.mark.parametrize("stop", ["verdict", "budget"])
def test_chunks_are_small_while_the_wealth_is_near_what_refutes(stop: str) -> None:
    """With one pair, where 8 draws are learned from first; 2.5 nats are near, and 0.03 and 0.15 the parts."""
    result = audit(leaky, PureDP(2.5), PAIR, draws=4_000, seed=5, stop=stop)
    wealth, drawn, near = Wealth(PureDP(2.5), np.array([2.5])), 0, 0
    for _, n, stake in result.record["chunks"]:
        missing, refuted = math.log(100) - wealth.current[0], wealth.best[0] >= math.log(100)
        small = stop == "verdict" and 0 < missing < 2.5 and not refuted
        growth = 0.03 if small else 0.15 if drawn < 2_000 else 0.2
        assert n in (8 if not drawn else max(2 if small else 5, math.ceil(growth * drawn)), 2_000 - drawn)
        wealth.bet(None if stake is None else Stake(*stake))
        drawn, near = drawn + n, near + small
    assert bool(near >= 3) == (stop == "verdict")


# -------------------------------------------------------------------------------- stops, budgets


def test_stopping_at_the_budget_goes_on_after_the_verdict_and_tightens_the_bound() -> None:
    early = audit(leaky, PureDP(1.0), PAIR, draws=40_000, seed=1)
    full = audit(leaky, PureDP(1.0), PAIR, draws=40_000, seed=1, stop="budget")
    assert early.verdict == full.verdict == Verdict.VIOLATION
    assert early.draws < full.draws == 40_000
    assert early.lower_bound is not None
    assert full.lower_bound is not None
    assert early.lower_bound < full.lower_bound <= math.log(19)
    # Ended by its own rule: nothing was cut short.
    assert early.truncated_by is None
    assert full.truncated_by is None


def test_a_budget_in_seconds_ends_the_audit_and_is_marked() -> None:
    def slow(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        if n >= 20:
            time.sleep(0.02)
        return response(data, n, rng)

    result = audit(slow, PureDP(1.0), PAIR, draws=10**7, seconds=0.2)
    assert result.truncated_by == "time"
    assert 0 < result.draws < 10**7
    assert len(result.record["chunks"]) >= 1


def test_an_odd_budget_is_kept_to_the_draw() -> None:
    sizes: list[int] = []

    def target(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        sizes.append(n)
        return response(data, n, rng)

    result = audit(target, PureDP(1.0), PAIR, draws=1_001)
    assert result.draws == 1_000
    assert sum(sizes) == 1_000 + result.independence["draws"]


# ------------------------------------------------------------------------------------------ text


def test_the_counterexample_says_all_that_a_maintainer_needs() -> None:
    with pytest.raises(PrivacyViolation) as caught:
        assert_private(leaky, PureDP(1.0), PAIR, draws=40_000, seed=11, id="mine/L1/pure/leaky")
    text = str(caught.value)
    result = audit(leaky, PureDP(1.0), PAIR, draws=40_000, seed=11, id="mine/L1/pure/leaky")
    again = "pytest tests/unit/audits/test_audit.py::test_the_counterexample_says_all_that_a_maintainer_needs"
    assert text in (explain(result), explain(result).replace(result.replay, again))  # without the plugin, and with it
    found = result.counterexample
    assert found is not None
    for part in (
        "leaky violates its claim ε = 1",
        "pure DP",
        "first record",
        "[1, 0, 0]",
        "[0, 0, 0]",
        found.event,
        f"{found.x_count:,} of {found.n:,}",
        f"{found.y_count:,} of {found.n:,}",
        f"10^{found.e_value_log10:.1f}",
        f"{found.lower_bound:.4g} at confidence 0.99",
    ):
        assert part in text
    assert "seed=11, " in result.replay
    assert "draws=40000, " in result.replay
    assert 5 <= len(text.splitlines()) <= 24  # a screen
    assert found.x_count / found.n > found.y_count / found.n


@pytest.mark.parametrize(
    "options", [{}, {"alpha": 1e-4}, {"stop": "budget"}, {"detect": 3.0}, {"seed": 7, "id": "a/L1/b/c"}], ids=str
)
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-3), GaussianDP(1.0)], ids=str)
def test_the_replay_line_is_python_that_finds_the_same_counterexample(claim: Any, options: dict[str, Any]) -> None:
    found = audit(leaky, claim, PAIR, draws=4_000, **options).counterexample
    assert found is not None
    assert run_line(found.replay).counterexample == found


def test_the_counts_of_the_counterexample_agree_with_its_event() -> None:
    result = audit(leaky, PureDP(1.0), PAIR, draws=40_000, stop="budget", seed=2)
    found = result.counterexample
    assert found is not None
    # 0.95 and 0.05 within six standard deviations, which a binomial count leaves with probability below 1e-8.
    spread = 6 * math.sqrt(0.95 * 0.05 / found.n)
    assert abs(found.x_count / found.n - 0.95) < spread
    assert abs(found.y_count / found.n - 0.05) < spread


def test_a_result_in_one_line_says_what_was_found_and_what_could_have_been() -> None:
    result = audit(response, PureDP(1.0), PAIR, draws=40_000, alpha=1e-6)
    text = str(result)
    for part in (
        "consistent",
        "claimed ε = 1",
        "lower bound",
        "% of the claim",
        "of probability 1 %",
        "of the kinds that are learned",
        "9 of 10 audits",
    ):
        assert part in text
    assert "\n" not in text
    assert explain(result) == text  # nothing to explain


def test_assert_private_returns_the_result_of_a_claim_that_stands() -> None:
    result = assert_private(response, PureDP(1.0), PAIR, draws=4_000, alpha=1e-6, detect=8.0)
    assert result.verdict == Verdict.CONSISTENT
    assert result.resolves is not None


def test_assert_private_on_an_inconclusive_audit_passes_or_fails_with_its_remedy() -> None:
    weak: dict[str, Any] = {"draws": 200, "detect": 1.01, "id": "mine/L1/pure/weak"}
    result = assert_private(response, PureDP(1.0), PAIR, inconclusive="pass", **weak)
    assert result.verdict == Verdict.INCONCLUSIVE
    assert not result
    for given in ({}, {"inconclusive": "fail"}):
        with pytest.raises(AssertionError) as failed:
            assert_private(response, PureDP(1.0), PAIR, **(weak | given))
        assert str(failed.value) == f"{result.id}: {result.undecided} To accept such an audit: inconclusive='pass'."
    assert str(result).endswith(result.undecided)
    assert "1.01 was to be found" in result.undecided
    # One that stands is not failed by it.
    assert assert_private(response, PureDP(1.0), PAIR, draws=8_000, alpha=1e-6, detect=5.0, inconclusive="fail")


@dataclass(frozen=True)
class Keeping:
    """Answers a bit, or its opposite."""

    keep: float = 0.9

    def __call__(self, data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        return np.where(rng.random(n) < self.keep, np.asarray(data).ravel()[0], 0)


def keep_once(data: Any, rng: Rng) -> int:
    return int(data[0] and rng.random() < 0.9)


QUICK = lambda data, n, rng: np.where(rng.random(n) < 0.9, data[0], 0)  # noqa: E731
MANY = np.random.default_rng(0).permutation(1_000)
REPLAYED: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "a dataclass": (Keeping(0.8), [Pair([1], [0])], {}),
    "one draw": (auditor.one_draw(keep_once), [Pair(np.array([1]), np.array([0])), PAIR], {}),
    "a method": (Keeping().__call__, [Pair(np.array([[1.5]]), np.array([[0.0]]))], {}),
    "a lambda": (QUICK, [Pair(np.array([1]), np.array([0]), "a; b")], {"mechanism": QUICK}),
    "a frame": (Keeping(), [Pair(pd.DataFrame({"a": [1, 0]}), pd.DataFrame({"a": [0, 0]}))], {}),
    "a large pair": (Keeping(), [Pair(MANY, MANY * 0)], {"pairs": Pair(MANY, MANY * 0)}),
}


@pytest.mark.parametrize("kind", REPLAYED)
def test_a_replay_line_runs_as_it_is_printed(kind: str) -> None:
    mechanism, pairs, names = REPLAYED[kind]
    found = audit(mechanism, PureDP(1.0), pairs, draws=2_000, method="clopper-pearson", seed=4)
    assert run_line(found.replay, **names).to_json() == found.to_json()
    assert ("  # " in found.replay) == bool(names)


@pytest.mark.parametrize("bad", ["maybe", "", None, True])
def test_what_to_do_with_an_inconclusive_audit_is_checked_before_it_is_made(bad: Any) -> None:
    with pytest.raises(SpecificationError, match=f'inconclusive must be "fail" or "pass", got {bad!r}'):
        assert_private(boom, PureDP(1.0), PAIR, inconclusive=bad)


def test_a_result_is_short_in_a_failing_assertion() -> None:
    result = audit(response, PureDP(1.0), PAIR, draws=200, detect=1.01, id="mine/L1/pure/weak")
    bound = f"lower_bound={result.lower_bound!r}"
    assert repr(result) == f"AuditResult(id='mine/L1/pure/weak', verdict='inconclusive', claimed='ε = 1', {bound}, ...)"


def test_assert_private_fails_a_test_with_a_violation() -> None:
    with pytest.raises(AssertionError):  # so that pytest shows a failure and not an error
        assert_private(leaky, PureDP(1.0), PAIR, draws=40_000)


def test_shared_noise_fails_assert_private() -> None:
    def target(data: Any, n: int, rng: Rng) -> NDArray[np.float64]:
        return np.repeat(np.round(rng.normal(), 3), n)

    with pytest.raises(AssertionError, match=r"not independent: .* To do: make each output draw noise of its own"):
        assert_private(target, PureDP(1.0), PAIR, draws=400, alpha=1e-6)


def test_an_exact_level_is_held_against_the_bound() -> None:
    assert audit(response, PureDP(1.0), PAIR, draws=400_000, exact=1.0, alpha=1e-6).sandwich == "holds"
    # Told that the level is 0.1, the audit contradicts it: its bound is far above.
    wrong = audit(response, PureDP(1.0), PAIR, draws=40_000, exact=0.1, alpha=1e-6)
    assert wrong.sandwich.startswith("failed")
    assert not wrong.ok
    loose = audit(response, PureDP(1.0), PAIR, draws=400, exact=1.0, alpha=1e-6)
    assert loose.sandwich.startswith("loose")


def test_the_draws_of_a_refutation_are_looked_at_within_the_time() -> None:
    # Nearly constant outputs are mostly ties, so that all tests ask for more draws than the budget has seconds for.
    drawn = 0

    def slow(data: Any, n: int, rng: Rng) -> NDArray[np.int64]:
        nonlocal drawn
        drawn += n
        time.sleep(0.001 * n)
        return (rng.random(n) < (0.3 if data[0] else 0.0)).astype(np.int64)

    result = audit(slow, PureDP(1.0), PAIR, draws=100_000, seconds=1.0)
    assert result.verdict == Verdict.VIOLATION
    assert drawn < 4_000  # 20,000 without a limit
