"""Tasks that a new user meets, done with documented commands only; what is asserted is what the user sees."""

from __future__ import annotations

import json
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commandline import Command, Said

#: Options that say what neighbours are, for targets on rows of 0 and 1.
BITS = ("--relation", "replace-one", "--domain", "0,1", "--rows", "3", "--min-rows", "1")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Write a file into the user's folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])

    def put(name: str, text: str) -> Path:
        file = tmp_path / name
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return file

    return put


def assert_violated(said: Said, *shown: str) -> None:
    assert said.code == 1, said
    for text in ("violates its claim", *shown):
        assert text in said.out, said


def assert_passed(said: Said) -> None:
    assert said.code == 0, said
    assert "consistent" in said.out
    assert "lower bound" in said.out


def test_a_numpy_mean(dpaudit: Command, write: Callable[[str, str], Path]) -> None:
    """The noise is for values in [0, 10], and nothing clips them: found with values outside the domain."""
    write(
        "release_mean.py",
        """
        import numpy as np

        def mean(data, n, rng):
            values = np.asarray(data, dtype=float)
            return np.round(values.mean() + rng.laplace(scale=10 / len(values), size=n), 1)

        def clipped(data, n, rng):
            values = np.clip(np.rint(data), 0, 10)
            p = 1 - np.exp(-1 / 10)
            return values.sum() + rng.geometric(p, n) - rng.geometric(p, n)
        """,
    )
    domain = ("--claim", "epsilon=1", "--relation", "replace-one", "--domain", "0:10", "--min-rows", "2", "--rows", "3")
    checked = dpaudit("check", "release_mean.py:mean")
    assert checked.code == 0, checked
    assert "seeded        yes" in checked.out
    found = dpaudit("attack", "release_mean.py:mean", *domain, "--outside", "--no-also")
    assert_violated(found, "x'", "event", "lower bound")
    assert_passed(
        dpaudit("attack", "release_mean.py:clipped", *domain, "--outside", "--draws", "10000", "--detect", "9")
    )


def test_a_histogram_as_a_dict(dpaudit: Command, write: Callable[[str, str], Path]) -> None:
    """Categories without rows are left out: a key that is present or not."""
    write(
        "histogram.py",
        """
        import numpy as np

        def counts(data, rng):
            noise = lambda: int(rng.geometric(1 - np.exp(-0.5)) - rng.geometric(1 - np.exp(-0.5)))
            return {str(c): int(np.sum(np.asarray(data) == c)) + noise() for c in sorted(set(data))}

        def all_counts(data, rng):
            noise = lambda: int(rng.geometric(1 - np.exp(-0.5)) - rng.geometric(1 - np.exp(-0.5)))
            return {c: int(np.sum(np.asarray(data) == c)) + noise() for c in "abc"}
        """,
    )
    options = ("--one-draw", "--claim", "epsilon=1", "--relation", "replace-one", "--domain", "a,b,c", "--rows", "2")
    assert_violated(dpaudit("attack", "histogram.py:counts", *options, "--jobs", "1"), "key", "event")
    passed = dpaudit("attack", "histogram.py:all_counts", *options, "--draws", "6000", "--detect", "20", "--jobs", "1")
    assert_passed(passed)


def test_rows_of_group_by(dpaudit: Command, write: Callable[[str, str], Path]) -> None:
    """Groups whose noisy count is small are dropped, but the threshold ignores groups of one: the length tells."""
    write(
        "group_by.py",
        """
        import numpy as np

        def query(data, rng):
            values, counts = np.unique(data, return_counts=True)
            noisy = counts + rng.geometric(0.6, len(counts)) - rng.geometric(0.6, len(counts))
            return [{"group": int(v), "count": int(c)} for v, c in zip(values, noisy)]
        """,
    )
    said = dpaudit("attack", "group_by.py:query", "--one-draw", "--claim", "epsilon=1", *BITS, "--jobs", "1")
    assert_violated(said, "output[0]")


def test_a_table_of_pandas(dpaudit: Command, write: Callable[[str, str], Path], tmp_path: Path) -> None:
    """Rows come from two CSV files; the differing row is the one that the report is about."""
    write(
        "wages.py",
        """
        import numpy as np

        def mean_wage(frame, n, rng):
            return np.rint(frame["wage"].to_numpy().sum() + rng.laplace(scale=5.0, size=n))
        """,
    )
    for name, wage in (("x.csv", 40), ("y.csv", 10)):
        (tmp_path / name).write_text(f"person,wage\n1,20\n2,30\n3,{wage}\n", encoding="utf-8")
    options = ("--claim", "epsilon=1", "--data", "x.csv", "--neighbor", "y.csv")
    assert_violated(dpaudit("attack", "wages.py:mean_wage", *options), "event")


def test_a_scalar(dpaudit: Command, write: Callable[[str, str], Path], tmp_path: Path) -> None:
    """The dataset is one number."""
    write(
        "answer.py",
        """
        import numpy as np

        def vote(data, n, rng):
            return np.where(rng.random(n) < 0.9, data, 1 - data)
        """,
    )
    for name, value in (("yes.json", "1"), ("no.json", "0")):
        (tmp_path / name).write_text(value, encoding="utf-8")
    pair = ("--data", "yes.json", "--neighbor", "no.json")
    assert_violated(dpaudit("attack", "answer.py:vote", "--claim", "epsilon=1", *pair), "event")
    assert_passed(dpaudit("attack", "answer.py:vote", "--claim", "epsilon=2.2", *pair))


def test_a_function_of_data_and_epsilon(dpaudit: Command, write: Callable[[str, str], Path]) -> None:
    """The signature is not the expected one: the message has the line that mends it."""
    write(
        "count.py",
        """
        import numpy as np

        def count(data, epsilon):
            return int(np.sum(data) + np.random.geometric(1 - np.exp(-2 * epsilon))
                       - np.random.geometric(1 - np.exp(-2 * epsilon)))
        """,
    )
    refused = dpaudit("check", "count.py:count")
    assert refused.code == 2, refused
    assert "--arg epsilon=" in refused.err
    assert "--one-draw" in refused.err
    target = ("count.py:count", "--one-draw", "--arg", "epsilon=1")
    checked = dpaudit("check", *target)
    assert checked.code == 0, checked
    assert_violated(dpaudit("attack", *target, "--claim", "epsilon=1", *BITS, "--jobs", "1"), "event")


def test_a_service(dpaudit: Command, write: Callable[[str, str], Path]) -> None:
    """A program that speaks lines of JSON, started with the helper that `dpaudit helper` prints."""
    printed = dpaudit("helper")
    assert printed.code == 0
    write("dpaudit_target.py", printed.out)
    write(
        "service.py",
        """
        def bit(data, n, rng):
            return [data[0] if rng.random() < 0.95 else 1 - data[0] for _ in range(n)]
        """,
    )
    command = f"exec:{sys.executable} dpaudit_target.py service.py:bit"
    checked = dpaudit("check", command)
    assert checked.code == 0, checked
    assert_violated(dpaudit("attack", command, "--claim", "epsilon=1", *BITS), "event")


def test_a_private_csv(dpaudit: Command, write: Callable[[str, str], Path], tmp_path: Path) -> None:
    """Nothing of the datasets reaches the terminal or the reports."""
    write(
        "diagnosis.py",
        """
        import numpy as np

        def cases(frame, n, rng):
            print("patients:", frame["code"].tolist())
            return (frame["code"] == 8675309).sum() + rng.geometric(0.95, n) - rng.geometric(0.95, n)
        """,
    )
    for name, code in (("x.csv", 8675309), ("y.csv", 1234567)):
        (tmp_path / name).write_text(f"code\n5550123\n{code}\n", encoding="utf-8")
    options = ("--claim", "epsilon=1", "--data", "x.csv", "--neighbor", "y.csv", "--out", "out")
    said = dpaudit("attack", "diagnosis.py:cases", *options)
    assert_violated(said, "event")
    written = [file.read_text(encoding="utf-8") for file in (tmp_path / "out").iterdir()]
    assert len(written) >= 6
    for secret in ("8675309", "5550123", "1234567"):
        assert not any(secret in text for text in (*written, said.out, said.err))


def test_a_flaky_target(dpaudit: Command, write: Callable[[str, str], Path]) -> None:
    """A draw in fifty raises on one dataset only: the exception is an output like any other, and tells."""
    write(
        "flaky.py",
        """
        import math

        def release(data, rng):
            value = sum(data) + int(rng.geometric(0.5)) - int(rng.geometric(0.5))
            if sum(data) == 0 and rng.random() < 0.3:
                raise ZeroDivisionError("no rows in the group")
            return value
        """,
    )
    options = ("--one-draw", "--claim", "epsilon=1", *BITS, "--jobs", "1")
    assert_violated(dpaudit("attack", "flaky.py:release", *options), "exception")


def test_a_model_in_its_own_environment(
    dpaudit: Command, write: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model with fit and predict, of a package that only its own environment has."""
    monkeypatch.setenv("DPAUDIT_CACHE", str(tmp_path / "cache"))
    about, package = "private_models-1.0.dist-info", tmp_path / "private_models-1.0-py3-none-any.whl"
    parts = {
        "private_models.py": textwrap.dedent(
            """
            import random

            class MeanModel:
                def __init__(self, epsilon, random_state=None):
                    self.epsilon, self.random = epsilon, random.Random(random_state)

                def fit(self, X, y):
                    noise = self.random.expovariate(2 * self.epsilon) - self.random.expovariate(2 * self.epsilon)
                    self.mean_ = round(sum(y) + noise)
                    return self

                def predict(self, X):
                    return [self.mean_ for _ in X]
            """
        ),
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: private-models\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*parts, f"{about}/RECORD"])
    with zipfile.ZipFile(package, "w") as archive:
        for name, content in {**parts, f"{about}/RECORD": record}.items():
            archive.writestr(name, content)
    for name, label in (("x.json", 1), ("y.json", 0)):
        (tmp_path / name).write_text(json.dumps({"X": [[0.5], [1.5]], "y": [1, label]}), encoding="utf-8")
    target = f"pip:{package}#private_models:MeanModel"
    options = ("--one-draw", "--arg", "epsilon=1", "--claim", "epsilon=1", "--data", "x.json", "--neighbor", "y.json")
    said = dpaudit("attack", target, *options)
    assert_violated(said, "event", "lower bound")
