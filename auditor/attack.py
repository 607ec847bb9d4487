"""Auditing a target that the command line names."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from auditor.audit import Question, run_audit
from auditor.collect import DRAWS, Settings
from auditor.errors import SpecificationError
from auditor.evidence.independence import check_independence
from auditor.guarantees import ApproxDP, GaussianDP, Guarantee, PureDP
from auditor.neighbors import RELATIONS, AnswersWithin, Pair, check_pairs
from auditor.results import AuditResult
from auditor.sampling import Sampler
from auditor.targets import Mechanism, function_from, one_draw, target_from


def parse_claim(text: str) -> Guarantee:
    """Read "epsilon=1", "epsilon=1, delta=1e-6" or "mu=0.5".

    Raises
    ------
    SpecificationError
        If it cannot be read, or a value is out of range.
    """
    values: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        try:
            if not equals or name.strip() in values:
                raise ValueError
            values[name.strip()] = float(value)
        except ValueError:
            raise SpecificationError(
                f"claim {text!r}: cannot read {part.strip()!r}, "
                'expected for example "epsilon=1, delta=1e-6" or "mu=0.5"'
            ) from None
    try:
        match sorted(values):
            case ["epsilon"]:
                return PureDP(values["epsilon"])
            case ["delta", "epsilon"]:
                return ApproxDP(values["epsilon"], values["delta"])
            case ["mu"]:
                return GaussianDP(values["mu"])
    except ValueError as error:
        raise SpecificationError(f"claim {text!r}: {error}") from error
    raise SpecificationError(
        f"claim {text!r}: expected epsilon, epsilon and delta, or mu, got {', '.join(sorted(values))}"
    )


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
    """Read the values of a row: "0,1", "0:10" (integers, both ends), "a,b,c"."""
    low, colon, high = text.partition(":")
    try:
        values: list[Any] = list(range(int(low), int(high) + 1)) if colon else [_value(v) for v in text.split(",")]
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
    if rows < 1:
        raise SpecificationError(f"rows must be at least 1, got {rows}")
    values = parse_domain(domain)
    if RELATIONS[relation] is AnswersWithin and not all(isinstance(v, int | float) for v in values):
        raise SpecificationError(f"domain {domain!r}: query answers must be numbers")
    return list(RELATIONS[relation]().patterns(values, rows)), False


def attack_once(
    target: str,
    claim_text: str,
    data: Path | None,
    neighbor: Path | None,
    relation: str | None,
    domain: str | None,
    rows: int,
    single: bool,
    stop: str,
    alpha: float,
    seed: int,
    draws: int | None,
    seconds: float | None,
) -> tuple[dict[str, Any], AuditResult, float]:
    """Audit a named target; returns the manifest, the result and the seconds it took."""
    begun = time.perf_counter()
    guarantee = parse_claim(claim_text)
    pairs, private = pairs_of(data, neighbor, relation, domain, rows)
    mechanism = _target(target, single)
    settings = Settings(alpha=alpha, draws=DRAWS if draws is None else draws, seconds=seconds, stop=stop, seed=seed)
    where = ["--data", str(data), "--neighbor", str(neighbor)] if private else []
    if relation is not None:
        where += ["--relation", relation]
    if domain is not None and not private:
        where += ["--domain", domain, "--rows", str(rows)]
    options = ["--alpha", f"{alpha:g}", "--draws", str(settings.draws), "--seed", str(seed), "--stop", stop]
    options += ["--one-draw"] if single else []
    replay = shlex.join(["dpaudit", "attack", target, "--claim", claim_text, *where, *options])
    id_ = f"attack/L1/{guarantee.notion.replace(' ', '_').lower()}/{target}"
    labels = {"entry": "attack", "source": {"document": "command line", "place": target}, "title": target}
    result = run_audit(
        mechanism, guarantee, pairs, settings, Question(id_, labels=labels, replay=replay, private=private)
    )
    about = {
        "dpaudit": metadata.version("dpaudit"),
        "libraries": {"numpy": np.__version__},
        "target": target,
        "seed": seed,
        "alpha": alpha,
        "draws": settings.draws,
        "seconds": seconds,
    }
    return about, result, time.perf_counter() - begun


def _target(text: str, single: bool) -> Mechanism:
    if text.startswith(("exec:", "http://", "https://")):
        raise SpecificationError(f"target {text!r}: this version audits Python callables only, package.module:callable")
    if single:
        return one_draw(function_from(text))
    return target_from(text)


def check_target(text: str, data: Path | None, draws: int, single: bool) -> tuple[list[str], bool]:
    """Report on a target: that it answers, its speed, seededness, independence, and the time of a budget."""
    mechanism = _target(text, single)
    rows = read_data(data) if data is not None else np.zeros(1)
    sampler = Sampler(mechanism, 0, "check", limit=60.0)
    first = sampler.draw(rows, 16, "shape")
    again = sampler.draw(rows, 16, "shape")
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
    lines = [
        f"answers       {shape} for 16 draws",
        f"speed         {_duration(each)} a draw in batches of {n:,}",
        f"seeded        {'yes' if seeded else 'no: it has entropy of its own, so results differ from run to run'}",
        f"independent   {'no sign against it' if independence.passed else 'NO: ' + independence.finding}",
        f"{draws:,} draws take about {_duration(each * draws)}",
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
