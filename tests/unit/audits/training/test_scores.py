"""Audits of canary scores: what each assumption certifies, bad input, and the command."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auditor import audit_scores
from auditor.audits.training.scores import ASSUMPTIONS, INDEPENDENT, NOTHING, guess_in_order, read_scores
from auditor.cli.scores import read_scores_file
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee, PureDP
from tests.commandline import Command


def gaussian(canaries: int, mu: float, seed: int, sign: float = 1.0) -> tuple[Any, Any]:
    """Scores of canaries that do not interact, of exactly mu-GDP before they are rounded."""
    rng = np.random.default_rng(seed)
    coins = rng.random(canaries) < 0.5
    scores = np.round(sign * (rng.normal(size=canaries) + mu * coins), 2)
    return scores[coins], scores[~coins]


CLAIMS: list[Guarantee] = [PureDP(1.0), ApproxDP(1.0, 1e-5), GaussianDP(0.3)]


@pytest.mark.parametrize("assume", ASSUMPTIONS)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_scores_far_beyond_a_claim_refute_it_in_either_direction(claim: Guarantee, assume: str) -> None:
    for sign in (1.0, -1.0):
        result = audit_scores(*gaussian(1_000, 3.0, 500, sign), claim, assume=assume)
        assert result.verdict == "violation"
        assert result.lower_bound is not None
        assert result.ceiling is not None
        assert claim.level <= result.lower_bound <= result.ceiling
        assert result.draws == 1_000
        assert ("do not interact" in result.caveat) == (assume == INDEPENDENT)


@pytest.mark.parametrize("assume", ASSUMPTIONS)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_scores_that_say_nothing_refute_nothing(claim: Guarantee, assume: str) -> None:
    result = audit_scores(*gaussian(400, 0.0, 501), claim, assume=assume)
    assert result.verdict in ("consistent", "inconclusive")
    assert result.lower_bound is not None
    assert result.lower_bound < claim.level


@pytest.mark.parametrize("assume", ASSUMPTIONS)
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_so_few_canaries_that_nothing_refutes_the_claim_decide_nothing(claim: Guarantee, assume: str) -> None:
    result = audit_scores([1.0, 2.0], [0.0, -1.0], claim, assume=assume)
    assert result.verdict == "inconclusive"
    assert "To do: give it more canaries" in result.undecided


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_a_level_beyond_the_ceiling_is_said_to_be_missed(claim: Guarantee) -> None:
    scores = gaussian(400, 0.0, 501)
    ceiling = audit_scores(*scores, claim).ceiling
    assert ceiling is not None
    assert audit_scores(*scores, claim, detect=0.99 * ceiling).verdict == "consistent"
    result = audit_scores(*scores, claim, detect=1.01 * ceiling)
    assert result.verdict == "inconclusive"
    assert f"400 canaries certify at most {ceiling:.4g}" in result.message


def test_more_is_certified_where_more_is_assumed() -> None:
    scores = gaussian(1_000, 1.0, 502)
    least, most = (audit_scores(*scores, GaussianDP(1.0), assume=a).lower_bound or 0.0 for a in (NOTHING, INDEPENDENT))
    assert least < most < 1.0


def test_the_order_of_a_file_does_not_matter_but_by_luck_and_the_seed_repeats_it() -> None:
    inside, outside = gaussian(300, 2.0, 503)
    for assume in ASSUMPTIONS:
        once = audit_scores(inside, outside, PureDP(1.0), assume=assume, seed=4)
        assert once.to_json() == audit_scores(inside, outside, PureDP(1.0), assume=assume, seed=4).to_json()


def test_equal_scores_are_no_evidence_whatever_the_order() -> None:
    for assume in ASSUMPTIONS:
        result = audit_scores(np.zeros(200), np.zeros(200), PureDP(0.1), assume=assume)
        assert result.verdict != "violation"


def test_each_guess_depends_on_the_scores_and_earlier_coins_only() -> None:
    inside, outside = gaussian(40, 1.0, 504)
    scores = read_scores(inside, outside)
    right, sure = guess_in_order(scores, 1.0, 7)
    values, included = scores.shuffled(7)
    order = np.argsort(values, kind="stable")
    last = order[len(order) // 2 - 1 : len(order) // 2 + 1]  # the middle is opened last
    flipped = included.copy()
    flipped[last] = ~flipped[last]

    class Flipped(type(scores)):  # type: ignore[misc]
        def shuffled(self, seed: int) -> Any:
            return values, flipped

    again_right, again_sure = guess_in_order(Flipped(inside, outside), 1.0, 7)
    assert (again_sure == sure).all()
    assert (again_right[:-2] == right[:-2]).all()


class NeedsGradient:
    """A tensor that numpy cannot read."""

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("use detach")


@pytest.mark.parametrize(
    ("inside", "outside", "options", "says"),
    [
        ([1.0, float("nan")], [0.0, 1.0], {}, "number 2 is nan"),
        ([1.0], [], {}, "at least 2 canaries, got 1"),
        (["a", "b"], [0.0, 1.0], {}, "must be numbers: got 'a'"),
        (["1", "2"], [0.0, 1.0], {}, "must be numbers: got '1'"),
        ([1.0, None], [0.0, 1.0], {}, "must be numbers: got None"),
        ([1.0, 2j], [0.0, 1.0], {}, r"must be numbers: got \(1"),
        ([1, 10**400], [0.0, 1.0], {}, "must be numbers: int too large"),
        (np.zeros(2, "datetime64[s]"), [0.0, 1.0], {}, "must be numbers: got datetime"),
        ([[1.0, 2.0]], [0.0], {}, "got shape"),
        (list(range(100)), [0.0], {}, "not from fair coins"),
        (np.ma.masked_array([1.0, 999.0], [False, True]), [0.0, 1.0], {}, "must be numbers: entry 2 is masked"),
        (NeedsGradient(), [0.0, 1.0], {}, "must be numbers: use detach"),
        ([1.0, 2.0], [0.0, 1.0], {"assume": "hope"}, "'hope'"),
        ([1.0, 2.0], [0.0, 1.0], {"alpha": 0}, "got 0"),
        ([1.0, 2.0], [0.0, 1.0], {"guesses": 5}, "from 1 to 4, got 5"),
        ([1.0, 2.0], [0.0, 1.0], {"guesses": 2}, "guesses = 2 has no effect on bets"),
        ([1.0, 2.0], [0.0, 1.0], {"detect": float("nan")}, "detect must be a positive number, got nan"),
        ([1.0, 2.0], [0.0, 1.0], {"detect": "2"}, "detect must be a positive number, got '2'"),
        ([1.0, 2.0], [0.0, 1.0], {"detect": float("inf")}, "detect must be a finite number, got inf"),
        ([1.0, 2.0], [0.0, 1.0], {"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ([1.0, 2.0], [0.0, 1.0], {"seed": 1.5}, "seed must be an integer of at least 0, got 1.5"),
    ],
)
def test_bad_input_is_refused_with_the_value(inside: Any, outside: Any, options: Any, says: str) -> None:
    with pytest.raises(SpecificationError, match=says):
        audit_scores(inside, outside, PureDP(1.0), **options)
    with pytest.raises(SpecificationError, match="claim must be a guarantee"):
        audit_scores([1.0, 2.0], [0.0, 1.0], 1.0)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("assume", ASSUMPTIONS)
def test_scores_and_claims_at_the_ends_of_floats_are_audited(assume: str) -> None:
    audit_scores([1.0] * 40, [0.0] * 40, PureDP(800.0), assume=assume)
    result = audit_scores([1.7e308] * 40, [-1.7e308] * 40, PureDP(1.0), assume=assume)
    assert result.verdict == "violation"
    counts = result.record["canary_scores"]
    assert (counts["inside"][-1], counts["outside"][0]) == (40, 40)


def test_a_seed_of_numpy_is_that_integer() -> None:
    inside, outside = gaussian(20, 3.0, 505)
    one, two = (audit_scores(inside, outside, PureDP(1.0), seed=seed) for seed in (3, np.int64(3)))  # type: ignore[arg-type]
    assert one == two


def test_the_command_reads_all_kinds_of_files(dpaudit: Command, tmp_path: Path) -> None:
    inside, outside = gaussian(600, 3.0, 505)
    (tmp_path / "in.csv").write_text("loss,name\n" + "".join(f"{v},a\n" for v in inside), encoding="utf-8")
    (tmp_path / "out.csv").write_text("loss,name\n" + "".join(f"{v},b\n" for v in outside), encoding="utf-8")
    (tmp_path / "in.json").write_text(json.dumps(inside.tolist()), encoding="utf-8")
    np.save(tmp_path / "out.npy", outside)
    claim = ("--claim", "epsilon=1,delta=1e-5")
    named = dpaudit("scores", tmp_path / "in.csv", tmp_path / "out.csv", *claim, "--column", "loss", "--out", tmp_path)
    assert named.code == 1, named
    assert "however canaries interact" in named.out
    assert (tmp_path / "report.html").exists()
    (record,) = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["claims"]
    program, *again = shlex.split(record["replay"])
    assert program == "dpaudit"
    assert dpaudit(*again).out == named.out.replace(named.out.partition("scores/L1")[0], "")
    other = dpaudit("scores", tmp_path / "in.json", tmp_path / "out.npy", *claim)
    assert other.out == named.out
    lines = tmp_path / "in_lines.csv"
    lines.write_text("\n".join(map(str, inside)), encoding="utf-8")
    assert dpaudit("scores", lines, tmp_path / "out.npy", *claim).out == named.out


def test_columns_of_pandas_that_can_have_no_value_are_read(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame({"0": pd.array([1, None, 2], "Int64")}).to_parquet(tmp_path / "whole.parquet")
    pd.DataFrame({"in": pd.array([True, None, False], "boolean")}).to_parquet(tmp_path / "truth.parquet")
    assert read_scores_file(tmp_path / "whole.parquet", None, "drop").tolist() == [1.0, 2.0]
    assert read_scores_file(tmp_path / "truth.parquet", "in", "drop").tolist() == [1.0, 0.0]
    with pytest.raises(SpecificationError, match="score 2 is missing"):
        read_scores_file(tmp_path / "whole.parquet", "0", "error")


def test_the_command_refuses_what_it_cannot_read(dpaudit: Command, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("loss,name\n1.5,a\n,b\n", encoding="utf-8")
    (tmp_path / "out.json").write_text("[1.0, null, 2.0]", encoding="utf-8")
    (tmp_path / "words.json").write_text('["a", "b"]', encoding="utf-8")
    (tmp_path / "mixed.csv").write_text("loss\n1.5\noops\n", encoding="utf-8")
    (tmp_path / "some.json").write_text("[1.0, 2.0]", encoding="utf-8")
    (tmp_path / "series.json").write_text('{"7": 1.0, "9": 2.0}', encoding="utf-8")  # as pandas writes one
    (tmp_path / "blank.csv").write_text("loss\n1.5\n\n2.5\n", encoding="utf-8")
    np.save(tmp_path / "times.npy", np.zeros(2, "datetime64[s]"))
    (tmp_path / "twice.csv").write_text("loss,loss,name\n1.5,9.5,a\n2.5,8.5,b\n", encoding="utf-8")
    (tmp_path / "bare.csv").write_text("0.5,0.7\n1.5,9.5\n", encoding="utf-8")
    (tmp_path / "pandas.csv").write_text("0\n1.5\n", encoding="utf-8")  # as a Series without a name is written
    claim = ("--claim", "epsilon=1")
    for arguments, says in (
        (("twice.csv", "some.json", "--column", "loss.1"), "no column 'loss.1'; it has loss, loss, name"),
        (("bare.csv", "some.json", "--column", "0.5"), "its first line holds numbers, 0.5, 0.7"),
        (("pandas.csv", "some.json"), "its first line, 0, is a score or the name of the column"),
        (("in.csv", "out.json"), "choose one by --column"),
        (("in.csv", "out.json", "--column", "lose"), "no column 'lose'"),
        (("twice.csv", "some.json", "--column", "loss"), "2 columns of the name 'loss'"),
        (("out.json", "some.json"), "score 2 is missing"),
        (("words.json", "some.json"), "words.json"),
        (("mixed.csv", "some.json"), "score 2 is 'oops'"),  # not the first one, which is a number
        (("none.json", "some.json"), "none.json"),
        (("some.json", "some.json", "--column", "loss"), "no columns"),
        (("series.json", "some.json"), "must hold an array of numbers, got dict"),
        (("times.npy", "some.json"), "must hold an array of numbers: got datetime"),
        (("blank.csv", "some.json"), "line 3 is empty, which may be a missing score"),
        (("some.json", "some.json"), "the same file"),
    ):
        files = [tmp_path / arguments[0], tmp_path / arguments[1], *arguments[2:]]
        said = dpaudit("scores", *files, *claim)
        assert said.code == 2, said
        assert says in said.err
    assert dpaudit("scores", tmp_path / "out.json", tmp_path / "some.json", *claim, "--missing", "drop").code in (0, 3)


@pytest.mark.parametrize("id_", [3, None, ""])
def test_an_id_that_is_no_text_is_refused(id_: Any) -> None:
    with pytest.raises(SpecificationError, match=f"id must be a text, got {id_!r}"):
        audit_scores(np.zeros(9), np.ones(9), PureDP(1.0), id=id_)
