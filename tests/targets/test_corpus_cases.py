"""Cases of the corpus of real defects: confirmed by counting, found on their crafted pair, with their cause named.

The libraries draw from their own entropy, so that each run has other draws. The cases are those whose event occurs on
one dataset only, in one draw of ten at least, so that a hundred draws are enough. Their environments are those of the
adapters, and `tests.targets.test_adapters` fails if none of these can be installed. A control is accused with
probability 0.01 by its alpha, so that controls are left to `python -m benchmarks.real_defects`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from auditor.cli.corpus.audits import Method, audit_case, names_cause
from auditor.cli.corpus.cases import LibraryCase, find_cases
from auditor.cli.corpus.confirm import confirm_case
from auditor.errors import SpecificationError

ROOT = Path(__file__).parents[2]
CASES = (
    "diffprivlib/histogram_bins",
    "diffprivlib/histogram_weights",
    "diffprivlib/kmeans_labels",
    "diffprivlib/laplace_doubles",
    "diffprivlib/linear_regression_sensitivity",
    "diffprivlib/mean_doubles",
    "diffprivlib/naive_bayes_classes",
    "diffprivlib/quantile_nan",
    "opendp/last_bit",
    "pipeline_dp/nan_value",
    "pipeline_dp/no_rows",
    "python_dp/gaussian_bits",
)


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def case_named(name: str) -> LibraryCase:
    (case,) = [case for case in find_cases(Path("corpus")) if case.name == name]
    return case


@pytest.mark.parametrize("name", CASES)
def test_a_defect_is_found_on_its_pair(name: str) -> None:
    case = case_named(name)
    found = audit_case(case, Method("pair", crafted=True, seconds=4.0))
    if found.verdict == "not installed":
        pytest.skip(found.said)
    assert found.flagged, f"{found.verdict}: {found.said}"
    assert names_cause(case.cause, found.said), found.said


def test_the_other_release_is_not_refuted_by_counting() -> None:
    case = replace(case_named("opendp/last_bit"), draws=400)
    try:
        assert confirm_case(case).refuted
        assert not confirm_case(case, fixed=True).refuted
    except SpecificationError as error:
        pytest.skip(str(error))


def test_the_corpus_is_as_large_as_it_says() -> None:
    cases = find_cases(Path("corpus"))
    defects = [case for case in cases if not case.is_control]
    assert len(defects) >= 40
    assert len(cases) - len(defects) >= 25
    assert len({case.path.parent.name for case in defects}) >= 10
    assert all(case.level > case.guarantee.level and not math.isnan(case.level) for case in defects)
    assert set(CASES) <= {case.name for case in defects}
