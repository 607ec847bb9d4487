"""Auditing a target that the command line names."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditor.audit import Question, run_audit
from auditor.collect import DRAWS, FIRST, METHODS, Settings
from auditor.dry_run import Speed, audit_seconds, probe
from auditor.errors import SpecificationError, TargetError, finite
from auditor.evidence.independence import check_independence
from auditor.guarantees import PureDP, parse_claim
from auditor.neighbors import RELATIONS, AnswersWithin, Pair, check_pairs
from auditor.results import AuditResult
from auditor.sampling import Sampler, check_seed
from auditor.targets import Mechanism, function_from, one_draw, target_from

#: Most rows of a crafted dataset, and values of a row; arbitrary, so that a slip of the pen does not fill the memory.
MOST = 1_000_000


def read_data(path: Path) -> Any:
    """Read a dataset: .csv as a DataFrame, .json as an array or list, .npy as an array."""
    readers: dict[str, Callable[[Path], Any]] = {".csv": pd.read_csv, ".json": _read_json, ".npy": np.load}
    if path.suffix not in readers:
        raise SpecificationError(f"data file {str(path)!r}: expected .csv, .json or .npy")
    try:
        data = readers[path.suffix](path)
    except (OSError, ValueError) as error:
        raise SpecificationError(f"data file {str(path)!r} cannot be read: {error}") from error
    if np.ndim(data) == 0:
        raise SpecificationError(f"data file {str(path)!r}: expected rows, got a single value")
    return data


def _read_json(path: Path) -> Any:
    rows = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(rows, list):
        raise SpecificationError(f"data file {str(path)!r}: expected an array of rows, got {type(rows).__name__}")
    return (
        np.array(rows) if rows and all(isinstance(r, int | float) and not isinstance(r, bool) for r in rows) else rows
    )


def parse_domain(text: str) -> list[Any]:
    """Read the values of a row: "0,1", "0:10" (integers, both ends), "a,b,c".

    Raises
    ------
    SpecificationError
        If it cannot be read, or has fewer than two values or more than `MOST`.
    """
    low, colon, high = text.partition(":")
    try:
        if colon and int(high) - int(low) >= MOST:
            raise SpecificationError(f"domain {text!r}: expected at most {MOST:,} values")
        values: list[Any] = list(range(int(low), int(high) + 1)) if colon else [_value(v) for v in text.split(",")]
    except SpecificationError:
        raise
    except ValueError:
        values = []
    if len(values) < 2:
        raise SpecificationError(f'domain {text!r}: expected at least two values, as in "0,1", "0:10" or "a,b,c"')
    return values


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()


def pairs_of(
    data: Path | None, neighbor: Path | None, relation: str | None, domain: str | None, rows: int
) -> tuple[list[Pair], bool]:
    """Pairs that the command line asks for, and whether they are from files (and private)."""
    if relation is not None and relation not in RELATIONS:
        raise SpecificationError(f"relation must be one of {', '.join(RELATIONS)}, got {relation!r}")
    if (data is None) != (neighbor is None):
        raise SpecificationError("--data and --neighbor go together")
    if data is not None and neighbor is not None:
        pairs = [Pair(read_data(data), read_data(neighbor), f"{data.name} against {neighbor.name}")]
        check_pairs(pairs, RELATIONS[relation]() if relation else None)
        return pairs, True
    if relation is None or domain is None:
        raise SpecificationError("give --data and --neighbor, or --relation and --domain")
    if not 1 <= rows <= MOST:
        raise SpecificationError(f"rows must be at least 1 and at most {MOST:,}, got {rows}")
    values = parse_domain(domain)
    if RELATIONS[relation] is AnswersWithin and not all(isinstance(v, int | float) for v in values):
        raise SpecificationError(f"domain {domain!r}: query answers must be numbers")
    return list(RELATIONS[relation]().patterns(values, rows)), False


@dataclass(frozen=True)
class Attack:
    """What the command line asks of one target.

    Parameters
    ----------
    target : str
        ``package.module:callable`` or ``path/to/file.py:callable``.
    claim : str
        What is claimed, as `parse_claim` reads it.
    data, neighbor : Path or None
        Files with the two datasets; their values are private and never shown.
    relation, domain : str or None
        Instead of files: a relation of `RELATIONS` and the values of a row, see `parse_domain`.
    rows : int
        Rows of the datasets made from the domain, at least 1.
    one_draw : bool
        The target is a function ``(data, rng) -> output`` of one draw.
    stop : str
        "verdict" or "budget", see `Settings`.
    alpha : float
        Probability of a false alarm, in (0, 1).
    seed : int
        At least 0.
    draws : int
        Budget in outputs, both sides together.
    seconds : float or None
        Budget in seconds.
    detect : float or None
        Level that is to be detectable; default twice the claimed one.
    method : str
        How the claim is judged, see `Settings`.

    Raises
    ------
    SpecificationError
        If an option is out of its range.
    """

    target: str
    claim: str
    data: Path | None = None
    neighbor: Path | None = None
    relation: str | None = None
    domain: str | None = None
    rows: int = 10
    one_draw: bool = False
    stop: str = "verdict"
    alpha: float = 0.01
    seed: int = 0
    draws: int = DRAWS
    seconds: float | None = None
    detect: float | None = None
    method: str = METHODS[0]

    def __post_init__(self) -> None:
        check_seed(self.seed)
        finite(seconds=self.seconds, detect=self.detect)
        self.settings()  # which checks the others

    def settings(self) -> Settings:
        """How the target is audited."""
        return Settings(
            alpha=self.alpha,
            draws=self.draws,
            seconds=self.seconds,
            stop=self.stop,
            seed=self.seed,
            detect=self.detect,
            method=self.method,
        )

    @property
    def private(self) -> bool:
        """The datasets come from files."""
        return self.data is not None and self.neighbor is not None

    def replay(self) -> str:
        """The command that makes the same attack again."""
        words = ["dpaudit", "attack", self.target, "--claim", self.claim]
        if self.private:
            words += ["--data", str(self.data), "--neighbor", str(self.neighbor)]
        if self.relation is not None:
            words += ["--relation", self.relation]
        if self.domain is not None and not self.private:
            words += ["--domain", self.domain, "--rows", str(self.rows)]
        words += ["--alpha", f"{self.alpha!r}", "--draws", str(self.draws), "--seed", str(self.seed)]
        words += ["--stop", self.stop]
        if self.detect is not None:
            words += ["--detect", f"{self.detect!r}"]
        if self.method != METHODS[0]:
            words += ["--method", self.method]
        return shlex.join([*words, *(["--one-draw"] if self.one_draw else [])])


def attack_once(attack: Attack) -> tuple[dict[str, Any], AuditResult, float]:
    """Audit a named target; returns the manifest, the result and the seconds it took.

    Raises
    ------
    SpecificationError
        If the claim, the datasets or the target cannot be read. What the target does wrong is a verdict, "error".
    """
    begun = time.perf_counter()
    guarantee = parse_claim(attack.claim)
    pairs, private = pairs_of(attack.data, attack.neighbor, attack.relation, attack.domain, attack.rows)
    mechanism = _target(attack.target, attack.one_draw)
    settings = attack.settings()
    id_ = f"attack/L1/{guarantee.notion.replace(' ', '_').lower()}/{attack.target}"
    labels = {"entry": "attack", "source": {"document": "command line", "place": attack.target}, "title": attack.target}
    question = Question(id_, labels=labels, replay=attack.replay(), private=private)
    result = run_audit(mechanism, guarantee, pairs, settings, question)
    about = {
        "dpaudit": metadata.version("dpaudit"),
        "libraries": {"numpy": np.__version__},
        "target": attack.target,
        "seed": attack.seed,
        "alpha": attack.alpha,
        "draws": settings.draws,
        "seconds": attack.seconds,
        "detect": attack.detect,
        "method": attack.method,
    }
    return about, result, time.perf_counter() - begun


def _target(text: str, single: bool) -> Mechanism:
    if text.startswith(("exec:", "http://", "https://")):
        raise SpecificationError(f"target {text!r}: this version audits Python callables only, package.module:callable")
    if single:
        return one_draw(function_from(text))
    return target_from(text)


def check_target(text: str, data: Path | None, draws: int, single: bool) -> tuple[list[str], bool]:
    """Report on a target: that it answers, its speed, seededness, independence, and the time of a budget.

    Returns
    -------
    list of str, bool
        Lines for the user, and whether the draws may be independent.

    Raises
    ------
    SpecificationError
        If the target or the data cannot be read.
    TargetError
        If the target does not answer.
    """
    mechanism = _target(text, single)
    rows = read_data(data) if data is not None else np.zeros(1)
    sampler = Sampler(mechanism, 0, "check", limit=60.0)
    try:
        first = sampler.draw(rows, 16, "shape")
    except TargetError as error:
        if data is not None:
            raise
        raise TargetError(f"{error} (on the dataset [0]; name another with --data)") from error
    begun = time.perf_counter()
    again = sampler.draw(rows, 16, "shape")
    short = time.perf_counter() - begun
    seeded = _same(first, again)
    # Double the batch until it takes a tenth of a second, which the clock resolves well.
    n, took = 16, 0.0
    while took < 0.1 and n < 1 << 20:
        n *= 2
        begun = time.perf_counter()
        sampler.draw(rows, n, "speed", n)
        took = time.perf_counter() - begun
    independence = check_independence(sampler, rows)
    each = took / n
    shape = f"an array of shape {first.shape}, {first.dtype}" if isinstance(first, np.ndarray) else "a list of values"
    width = int(np.prod(first.shape[1:])) if isinstance(first, np.ndarray) else 1
    audit = audit_seconds(
        Speed((16, n), (short, took), width), Settings(draws=max(draws, 4 * FIRST)), 1, probe(PureDP(1.0))
    )
    lines = [
        f"answers       {shape} for 16 draws",
        f"speed         {_duration(each)} a draw in batches of {n:,}",
        f"seeded        {'yes' if seeded else 'no: it has entropy of its own, so results differ from run to run'}",
        f"independent   {'no sign against it' if independence.passed else 'NO: ' + independence.finding}",
        f"{draws:,} draws take about {_duration(each * draws)}, an audit with so many about {_duration(audit)}",
    ]
    return lines, independence.passed


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return bool(repr(a) == repr(b))


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{math.ceil(seconds / 1e-9)} ns"
