"""Adversaries on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auditor.audits.adversaries.named import BY_NAME, adversary_named, parameters_of
from auditor.audits.adversaries.packing import Packing
from auditor.audits.adversaries.reconstruction import Reconstruction
from auditor.cli.attack.options import Attack
from auditor.errors import SpecificationError
from auditor.privacy.guarantees import ApproxDP, PureDP
from tests.commandline import Command

SUMS = """
import numpy as np


def exact(data, n, rng):
    return np.repeat(np.sum(data, axis=0)[None].astype(float), n, axis=0)


def too_little_noise(data, n, rng):
    table = np.asarray(data)
    return table.mean(axis=0) + rng.normal(0, 0.05, (n, table.shape[1]))


def enough_noise(data, n, rng):
    columns = np.shape(data)[1]
    return np.sum(data, axis=0) + rng.laplace(0, columns, (n, columns))
"""


@pytest.fixture
def sums(tmp_path: Path) -> str:
    path = tmp_path / "sums.py"
    path.write_text(SUMS, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_adversary_can_be_named_and_says_what_it_does(name: str) -> None:
    asked = adversary_named(name)
    assert (asked.adversary is None) != (asked.tracing is None)
    assert parameters_of(name)
    if asked.adversary is not None:
        assert str(asked.adversary)
        levels = [asked.adversary.most(PureDP(1.0), level) for level in (0.1, 0.5, 1.0, 2.0)]
        assert levels == sorted(levels)
        assert asked.adversary.most(ApproxDP(1.0, 0.1), 1.0) >= asked.adversary.most(PureDP(1.0), 1.0)


def test_parameters_are_read() -> None:
    assert adversary_named("packing:rows=30,columns=40,unit=means").adversary == Packing(30, 40)
    assert adversary_named("packing:rows=30,unit=means").unit == "means"
    assert adversary_named("reconstruction: rows=16, wrong=2").adversary == Reconstruction(rows=16, wrong=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pack", "must be one of reconstruction, decoding, .*, got 'pack'"),
        ("packing:row=3", "'row=3' is none of rows=100, columns=100, unit=counts"),
        ("packing:rows", "'rows' is none of"),
        ("packing:rows=many", "rows must be a whole number, got 'many'"),
        ("packing:rows=0", "rows must be an integer of at least 1, got 0"),
        ("packing:unit=sums", "unit must be counts or means, got 'sums'"),
        ("tardos:xi=small", "xi must be a number, got 'small'"),
    ],
)
def test_what_cannot_be_read_is_shown(text: str, said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        adversary_named(text)


def test_reconstruction_of_exact_sums(sums: str, tmp_path: Path, dpaudit: Command) -> None:
    out = tmp_path / "out"
    done = dpaudit(
        *("attack", f"{sums}:exact", "--claim", "epsilon=1", "--adversary", "reconstruction:rows=24,queries=96"),
        *("--out", str(out)),
    )
    assert done.code == 1
    assert "violates its claim" in done.out
    claim = json.loads((out / "results.json").read_text(encoding="utf-8"))["claims"][0]
    assert claim["verdict"] == "violation"
    assert claim["lower_bound"] >= 1
    assert "--adversary reconstruction:rows=24,queries=96" in claim["replay"]
    assert "reconstruction of 24 bits" in (out / "report.html").read_text(encoding="utf-8")


def test_an_adversary_of_means(sums: str, dpaudit: Command) -> None:
    target = f"{sums}:too_little_noise"
    done = dpaudit("attack", target, "--claim", "epsilon=0.5", "--adversary", "packing:rows=50,columns=50,unit=means")
    assert done.code == 1


def test_tracing_is_an_ordinary_audit(sums: str, dpaudit: Command) -> None:
    done = dpaudit("attack", f"{sums}:exact", "--claim", "epsilon=1", "--adversary", "tracing:users=6,block=60")
    assert done.code == 1
    assert "codeword" in done.out


def test_a_target_that_resists(sums: str, dpaudit: Command) -> None:
    done = dpaudit(
        *("attack", f"{sums}:enough_noise", "--claim", "epsilon=1", "--draws", "400"),
        *("--adversary", "exhaustive:people=4", "--alpha", "1e-6"),
    )
    assert done.code == 0
    assert "consistent" in done.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"domain": "0,1", "relation": "replace-one"}, "it cannot be used with --data or --domain"),
        ({"relation": "edge"}, "got --relation edge"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, str], said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        Attack("a.py:b", "epsilon=1", adversary="packing", **options)  # type: ignore[arg-type]


def test_tracing_is_for_replaced_rows(sums: str, dpaudit: Command) -> None:
    done = dpaudit(
        *("attack", f"{sums}:exact", "--claim", "epsilon=1", "--adversary", "tracing"),
        *("--relation", "add-remove-one"),
    )
    assert done.code == 2
    assert "tracing replaces a row" in done.err


def test_a_claim_with_an_adversary_is_shown_and_its_time_estimated(dpaudit: Command) -> None:
    path, id_ = (
        "experiments/document_003_bellairs_lectures/blatant.py",
        "003/blatant_nonprivacy_meter/L1/pure_dp/laplace__signs",
    )
    assert "adversary   decoding of 32 bits" in dpaudit("show", id_, path).out
    estimated = dpaudit("run", path, "-k", id_, "--dry-run")
    assert estimated.code == 0
    assert "1 claim would run: 90 draws" in estimated.out
