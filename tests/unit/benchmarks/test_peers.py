"""The benchmark against peers: what is measured is what is said, with the peer replaced by a stand-in."""

from __future__ import annotations

import math
import os
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from auditor.errors import TargetError
from auditor.evidence.binomial import clopper_pearson
from auditor.targets.environments import check_requirements
from benchmarks.peers import __main__ as command_line
from benchmarks.peers import contenders as contending
from benchmarks.peers.cases import ALPHA, PairOfDraws, PeerCase, cases, identical
from benchmarks.peers.contenders import DPAUDIT, ORACLE, PEERS, SPLIT, RecordedDraws, bound, contenders, smallest
from benchmarks.peers.process import REQUIREMENTS, PeerCommand, PeerProcess

HELPER = Path(command_line.__file__).with_name("helper.py")
#: The library's interface as far as it is used, with bounds that give away what they were asked.
LIBRARY = """
import numpy as np


class Split:
    def __init__(self, threshold_estimation_frac=0.5, seed=None):
        self.seed = seed


class CanaryScoreAuditor:
    def __init__(self, in_canary_scores, out_canary_scores):
        self.inside, self.outside = in_canary_scores, out_canary_scores

    def epsilon_clopper_pearson(self, significance, delta=0, one_sided=True, *, threshold_strategy=None):
        if threshold_strategy is not None:
            return float(threshold_strategy.seed)
        return max(0.0, float(np.sum(self.inside) - np.sum(self.outside)))

    def epsilon_from_gdp(self, significance, delta, eps_tol=1e-6):
        if not 0 < delta <= 1:
            raise ValueError(f"delta must be in (0, 1], got {delta}.")
        return 99.0
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> PeerCommand:
    """The real helper on the stand-in library."""
    (tmp_path / "jax_privacy").mkdir()
    (tmp_path / "jax_privacy" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "jax_privacy" / "auditing.py").write_text(LIBRARY, encoding="utf-8")
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    return PeerCommand((sys.executable, str(HELPER)), tuple(sorted(variables.items())))


def speaking(answer: str, tmp_path: Path, limit: float = 20.0) -> PeerProcess:
    """A peer that answers every line with the same."""
    script = tmp_path / "peer.py"
    script.write_text(f"import sys\nfor line in sys.stdin:\n    {answer}\n    sys.stdout.flush()\n", encoding="utf-8")
    return PeerProcess((sys.executable, str(script)), limit=limit)


def named(part: str) -> PeerCase:
    (found,) = [case for case in [*cases(), *identical()] if part in case.name]
    return found


ONE = np.array([1.0])


def test_every_bound_of_the_peer_is_asked_for_as_it_is_named(stand_in: PeerCommand) -> None:
    peer = PeerProcess(stand_in.words, dict(stand_in.variables))
    inside, outside = np.array([0.1, 1e-300, 3.0]), np.array([0.25])
    try:
        assert peer.ask("bonferroni", inside, outside, alpha=0.05, delta=0.0, seed=0).epsilon == 0.1 + 3.0 - 0.25
        answer = peer.ask("split", inside, outside, alpha=0.05, delta=0.0, seed=17)
        assert answer.epsilon == 17.0
        assert 0 <= answer.seconds < 20
        with pytest.raises(TargetError, match=r"the peer failed: ValueError: delta must be in \(0, 1\], got 0.0"):
            peer.ask("gdp", inside, outside, alpha=0.05, delta=0.0, seed=0)
        assert peer.ask("gdp", inside, outside, alpha=0.05, delta=1e-5, seed=0).epsilon == 99.0  # it is still there
        with pytest.raises(TargetError, match="no such bound: 'other'"):
            peer.ask("other", inside, outside, alpha=0.05, delta=0.0, seed=0)
    finally:
        peer.close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("print('hello there')", "not JSON: 'hello there'"),
        ("print('[1]')", "did not answer request 1"),
        ('print(\'{"id": 2, "epsilon": 1.0, "seconds": 0.1}\')', "did not answer request 1"),
        ('print(\'{"id": 1, "epsilon": NaN, "seconds": 0.1}\')', "epsilon must be a finite number of at least 0"),
        ('print(\'{"id": 1, "epsilon": true, "seconds": 0.1}\')', "epsilon must be a finite number of at least 0"),
        ('print(\'{"id": 1, "epsilon": 1.0}\')', "seconds must be a finite number of at least 0"),
        ("sys.exit(3)", "ended with exit code 3"),
    ],
)
def test_a_peer_that_answers_something_else_is_an_error_that_shows_it(
    answer: str, message: str, tmp_path: Path
) -> None:
    peer = speaking(answer, tmp_path)
    try:
        with pytest.raises(TargetError, match=message):
            peer.ask("bonferroni", ONE, ONE, alpha=0.05, delta=0.0, seed=0)
    finally:
        peer.close()


def test_a_peer_that_hangs_is_an_error(tmp_path: Path) -> None:
    peer = speaking("import time; time.sleep(60)", tmp_path, limit=0.5)
    try:
        with pytest.raises(TargetError, match=r"within 0\.5 s"):
            peer.ask("bonferroni", ONE, ONE, alpha=0.05, delta=0.0, seed=0)
    finally:
        peer.close()


def test_the_peer_is_pinned() -> None:
    assert check_requirements(REQUIREMENTS)
    assert all("==" in requirement for requirement in REQUIREMENTS)


def test_recorded_draws_are_handed_out_once_and_in_order() -> None:
    rng = np.random.default_rng(0)
    draws = PairOfDraws(np.arange(5), np.arange(10, 15))
    recorded = RecordedDraws(draws)
    assert recorded([1], 2, rng).tolist() == [0, 1]
    assert recorded([0], 3, rng).tolist() == [10, 11, 12]
    assert recorded([1], 3, rng).tolist() == [2, 3, 4]
    with pytest.raises(ValueError, match="3 draws were asked for after 3 of 5"):
        recorded([0], 3, rng)
    again = RecordedDraws(draws, again=True)
    assert again([1], 4, rng).tolist() == [0, 1, 2, 3]
    assert again([1], 3, rng).tolist() == [4, 0, 1]


@pytest.mark.parametrize("case", [*cases(), *identical()], ids=lambda case: case.name)
def test_draws_follow_the_law_that_the_oracle_chooses_by(case: PeerCase) -> None:
    # Dvoretzky, Kiefer, Wolfowitz and Massart: 2 exp(-2 n e^2) = 5e-8 a side, 8e-7 for the 16 sides together, whatever
    # the seed. A step of the lattice, 2^-10, moves a tail by at most the density's maximum, 1, times it.
    n = 20_000
    allowed = math.sqrt(math.log(2 / 5e-8) / (2 * n)) + 2**-10
    draws = case.draws(3, n)
    for side, tail in ((draws.x, case.p), (draws.y, case.q)):
        share = (side[:, None] >= case.thresholds[None, ::10]).mean(axis=0)
        assert np.abs(share - tail[::10]).max() <= allowed


def test_draws_are_the_same_for_every_contender() -> None:
    case = named("Laplace, epsilon 1")
    assert (case.draws(1, 100).x == case.draws(1, 100).x).all()
    assert (case.draws(1, 100).x != case.draws(2, 100).x).any()


def test_true_levels_are_those_of_the_laws() -> None:
    for case in cases():
        # No half line shows more than the true level, and the best one nearly all of it, unless it is of a tail: at
        # delta = 1e-5 the grid of thresholds ends before the event that shows all.
        shown = float(np.max(case.claim.level_of(case.p, case.q)))
        assert 0.9 * case.truth <= shown <= case.truth * (1 + 1e-6), case.name
    assert [case.truth for case in identical()] == [0.0, 0.0]


def test_the_oracle_is_the_clopper_pearson_bound_of_the_known_event() -> None:
    case, n = named("randomised"), 1_000
    draws = case.draws(5, n)
    p = stats.binomtest(int(draws.x.sum()), n).proportion_ci(1 - ALPHA, "exact").low  # two-sided: alpha / 2 each
    q = stats.binomtest(int(draws.y.sum()), n).proportion_ci(1 - ALPHA, "exact").high
    expected = max(math.log(p / q), math.log((1 - q) / (1 - p)))
    assert bound(ORACLE, case, draws, 0, None) == pytest.approx(expected, rel=1e-9)


def test_the_oracle_knows_where_the_rare_event_is() -> None:
    case = named("Gaussian, as mu")
    lower, upper = (
        clopper_pearson(1_000 * tail, 1_000, ALPHA / 2, side)  # type: ignore[arg-type]
        for tail, side in ((case.p, "lower"), (case.q, "upper"))
    )
    with np.errstate(invalid="ignore"):
        levels = np.where(lower > upper, case.claim.level_of(lower, upper), 0.0)
    assert levels[case.thresholds == case.best(1_000)].item() == levels.max()


def test_bounds_of_all_contenders_are_bounds_on_the_same_level(stand_in: PeerCommand) -> None:
    # Each of our bounds exceeds the truth with probability at most alpha, so no such thing is asserted; that it is half
    # of the truth takes a deviation of more than ten standard deviations at 4,000 draws a side.
    case = named("randomised")
    draws = case.draws(0, 4_000)
    found = {contender: bound(contender, case, draws, 7, stand_in) for contender in contenders(case, True)}
    assert list(found) == [DPAUDIT, ORACLE, SPLIT, PEERS["bonferroni"], PEERS["split"]]
    assert all(found[contender] > 0.5 for contender in (DPAUDIT, ORACLE, SPLIT))
    assert found[PEERS["split"]] == 7.0  # the seed: the epsilon is the level of a pure claim
    assert contenders(case, False) == [DPAUDIT, ORACLE, SPLIT]
    with pytest.raises(ValueError, match="needs the peer's command"):
        bound(PEERS["split"], case, draws, 0, None)


def test_the_peers_epsilon_is_turned_into_mu() -> None:
    case = named("Gaussian, as mu")
    (within,) = [case for case in cases() if "1e-5" in case.name]
    assert contending.level_of_epsilon(case.claim, within.truth, case.delta) == pytest.approx(case.truth, rel=1e-6)
    assert contending.level_of_epsilon(case.claim, 0.0, case.delta) == 0.0
    assert contending.level_of_epsilon(within.claim, 1.25, within.delta) == 1.25


@pytest.mark.parametrize("enough", [1, 32, 33, 700, 999, 1_000, 1_001])
def test_the_smallest_sample_is_found(enough: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = named("randomised")
    # Of five samples, two never refute: three are the half that is asked for.
    monkeypatch.setattr(
        contending,
        "bound",
        lambda _contender, _case, draws, seed, _command: 1.0 if seed > 1 and len(draws.x) >= enough else 0.0,
    )
    found = smallest("any", case, [PairOfDraws(np.zeros(1_000), np.zeros(1_000))] * 5, None)
    steps = [n for n in (round(32 * 2 ** (k / 4)) for k in range(20)) if enough <= n <= 1_000]
    assert found == (steps[0] if steps else math.inf)


def test_what_a_count_says() -> None:
    assert command_line.judged(500, 500) == command_line.INVALID
    assert command_line.judged(0, 500) == "valid here"
    assert command_line.judged(25, 500) == "not settled"
    assert command_line.marked("name", 400, 500) == f"name, {command_line.INVALID}: above the truth in 80%"
    assert command_line.marked("name", 1, 500) == "name"
    low, high = command_line.rate_interval(31, 500)
    assert stats.binom.sf(30, 500, low) == pytest.approx(0.0005)
    assert stats.binom.cdf(31, 500, high) == pytest.approx(0.0005)


@pytest.mark.parametrize("trials", [30, 500, 2_000])
def test_a_bound_of_just_alpha_is_hardly_ever_called_invalid(trials: int) -> None:
    least = next(count for count in range(trials + 1) if command_line.judged(count, trials) == command_line.INVALID)
    assert stats.binom.sf(least - 1, trials, ALPHA) <= (1 - command_line.CONFIDENCE) / 2


def test_an_invalid_peer_is_counted(stand_in: PeerCommand) -> None:
    case = named("no difference, Gaussian")
    found = command_line.alarms_of(case, range(3), 200, stand_in)
    assert found[PEERS["gdp"]] == 3  # 99, where the truth is 0
    assert found[PEERS["split"]] == 2  # the seed, which is 0 once


SMALL = ["--bounds", "1", "--runs", "1", "--nulls", "4", "--timings", "1", "--most-draws", "1000", "--jobs", "1"]


def test_the_report_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "peers.md"
    assert command_line.main([*SMALL, "--no-peer", "--only", "randomised", "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert capsys.readouterr().out == text + "\n"
    assert "### randomised response" in text
    assert "jax-privacy: left out." in text
    for contender in (DPAUDIT, ORACLE, SPLIT):
        # Once for the bounds, once for the bounds above the truth.
        assert text.count(f"| {contender} | ") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "0"], "--runs must be at least 1, got 0"),
        (["--most-draws", "999"], "--most-draws must be at least 1000, got 999"),
        (["--out", "nowhere/at/all.md"], "no such folder: 'nowhere/at'"),
        (["--no-peer", "--only", "no such case"], "--only 'no such case': no such case among"),
    ],
)
def test_bad_options_are_refused_before_anything_is_drawn(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = command_line.main([*SMALL, *arguments])
    except SystemExit as stop:
        code = int(stop.code or 0)
    assert code == 2
    assert message in capsys.readouterr().err


def test_a_case_says_what_is_asked_of_it() -> None:
    case = replace(named("Laplace, epsilon 2"), truth=1.5)
    assert str(case.too_small) == str(case.notion(0.8 * 1.5))
    # ln(1/alpha) over the rate is more draws for a claim that is closer to the truth.
    assert named("Laplace, epsilon 2").oracle_draws() < replace(case, truth=2.4).oracle_draws()


def test_the_page_names_every_benchmark_and_only_options_that_exist() -> None:
    folder = Path(command_line.__file__).parents[1]
    page = (folder / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"`python -m benchmarks\.(\w+)([^`]*)`", page)
    sources = {path.stem: path.read_text("utf-8") for path in folder.glob("*.py")}
    sources = {name: source for name, source in sources.items() if 'if __name__ == "__main__"' in source}
    sources |= {path.parent.name: path.read_text("utf-8") for path in folder.glob("*/__main__.py")}
    assert {name for name, _ in commands} == sources.keys()
    own = re.findall(r"`(--[a-z-]+)", page.partition("## Against peers")[2])
    for name, options in [*commands, ("peers", " ".join(set(own) - {"--jobs"}))]:
        assert all(f'"{option}"' in sources[name] for option in re.findall(r"--[a-z-]+", options)), name
    assert "benchmarks.peers --out reports/peers.md" in (folder.parent / "Makefile").read_text("utf-8")
