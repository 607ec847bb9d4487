"""Replay of random draws on the neighbouring dataset: what differs between two runs with the same variates."""

from __future__ import annotations

import difflib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from auditor.audits.certificates import prove
from auditor.audits.counterexamples.snippet import show_pair
from auditor.audits.finish import fields_of_claim
from auditor.audits.privacy import audit
from auditor.audits.summary import describe_target
from auditor.datasets import Pair, Relation, check_pairs
from auditor.errors import SpecificationError, TargetError
from auditor.privacy.exact.privacy_curve import GaussianCurve
from auditor.privacy.guarantees import Guarantee, PureDP
from auditor.results import AuditResult, Verdict
from auditor.targets import Mechanism, source_hash
from auditor.targets.outputs import Raised
from auditor.targets.randomness.calls import ask_once
from auditor.targets.randomness.recorder import DrawRecorder, RecordedDraw, Tape
from auditor.targets.randomness.signals import Signal, Uncontrolled
from auditor.targets.values import kind_of, make_visible

#: Parameters that move noise and do not scale it, and those that only say how much of it there is.
_LOCATIONS = ("loc", "mu", "low", "a", "left")
_SIZES = ("size", "dtype", "out", "n", "k", "shape", "d0", "method")
#: Continuous noise: its scale by primitive, with the parameter that holds it.
_SCALES = {"laplace": "scale", "normal": "scale", "gauss": "sigma", "normalvariate": "sigma"}
#: Scalar variates whose effect on the output is looked at.
_MOST_VARIATES = 60
#: Replays, each with other variates: code may branch on them.
_REPLAYS = 3
#: Relative error up to which the output is taken to be linear in the noise.
_LINEAR = 1e-6

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ReplayFinding:
    """What differs between two runs with the same variates.

    Parameters
    ----------
    kind : str
        What it is, such as "scale depends on the data".
    text : str
        What was seen, without values of data.
    place : str
        File and line of the draw, or name of the target.
    detail : str
        Shapes, which tell sizes of datasets; empty if there is nothing to add.
    """

    kind: str
    text: str
    place: str
    detail: str = ""

    def describe(self, private: bool) -> str:
        """Place and what was seen.

        Parameters
        ----------
        private : bool
            Leave out what tells sizes of datasets.
        """
        return f"{self.place}: {self.text}" + (f", {self.detail}" if self.detail and not private else "")


@dataclass(frozen=True)
class _Run:
    """Output and draws of one run."""

    output: Any
    draws: Sequence[RecordedDraw]


def trace(
    mechanism: Mechanism,
    guarantee: Guarantee,
    pair: Pair,
    *,
    relation: Relation | None = None,
    seed: int = 0,
    draws: int = 20_000,
    private: bool = False,
    id: str = "trace/L2/claim/given",  # noqa: A002 - the name that results use
) -> AuditResult:
    """Run a target on two datasets with the same variates.

    Parameters
    ----------
    mechanism : callable
        The target, ``(data, n, rng)``; one output is asked for at a time.
    guarantee : Guarantee
        The claim.
    pair : Pair
        Neighbouring datasets.
    relation : Relation, optional
        When two datasets are neighbours; None leaves that unchecked.
    seed : int
        Seed of the variates.
    draws : int
        Draws, both sides together, of the audit that certifies what was found.
    private : bool
        The datasets are not to be shown.
    id : str
        The result's id.

    Returns
    -------
    AuditResult
        "violation" only with a certificate, by enumeration or by bets on fresh draws; "deviation" if something was
        found that neither of them certifies; "holds" if enumeration shows that the claim holds on this pair; else
        "consistent", or "inconclusive" if the target could not be replayed. ``checks`` has each finding.

    Raises
    ------
    SpecificationError
        If an argument is not what it must be.
    TargetError
        If the target raises on both datasets.

    Notes
    -----
    Valid because: findings never decide. A violation is that of `prove`, which is exact, or that of `audit` on draws
    that are made after the findings, and keyed apart from the variates, so that it is false with probability 0.01 at
    most. A deviation says what was seen, not that the claim is violated.
    """
    if not isinstance(guarantee, Guarantee):
        raise SpecificationError(f"claim must be a guarantee such as PureDP(1.0), got {guarantee!r}")
    check_pairs([pair], relation)
    if draws < 200:
        raise SpecificationError(f"draws must be at least 200, got {draws!r}")
    begun = time.monotonic()
    labels = _labels(mechanism, guarantee, pair, private, id)
    try:
        findings = _drop_repeats(
            [f for k in range(_REPLAYS) for f in find_differences(mechanism, guarantee, pair, seed + k)]
        )
    except Uncontrolled as signal:
        return AuditResult(verdict=Verdict.INCONCLUSIVE, message=f"it cannot be replayed: {signal.reason}", **labels)
    checks = [{"name": f.kind, "passed": False, "finding": f.describe(private)} for f in findings]
    said = "; ".join(f"{check['name']}, {check['finding']}" for check in checks)
    spent = time.monotonic() - begun
    walked = prove(mechanism, guarantee, pairs=pair, seconds=max(0.5, 0.5 * spent), id=id)
    if walked.verdict in (Verdict.VIOLATION, Verdict.HOLDS):
        shown = None if private else walked.event
        if walked.verdict == Verdict.HOLDS:
            checks, said = [], ""  # what differs is within the claim
        message = "; ".join(filter(None, [walked.message, said]))
        return replace(walked, **{**labels, "event": shown, "message": message, "checks": checks, "alpha": 0.0})
    if not findings:
        return AuditResult(verdict=Verdict.CONSISTENT, message=_NOTHING, **labels)
    judged = audit(mechanism, guarantee, pair, draws=draws, seed=seed, id=id)
    if judged.verdict == Verdict.VIOLATION:
        if not private:
            return replace(judged, message=said, checks=checks, title=labels["title"])
        kept = {name: getattr(judged, name) for name in _SHOWN}
        return AuditResult(verdict=judged.verdict, message=said, checks=checks, **labels, **kept)
    why = f"{judged.draws:,} draws did not certify it ({judged.verdict!s}, lower bound {judged.lower_bound or 0:.4g})"
    return AuditResult(verdict=Verdict.DEVIATION, message=f"{said}; {why}", checks=checks, **labels)


#: What is shown of an audit on private data.
_SHOWN = ("draws", "lower_bound", "ceiling", "log10_e_value", "log10_max_e_value", "wealth")
_NOTHING = "two runs with the same variates differ by no more than the claim allows; that is no evidence that it holds"


def _labels(mechanism: Mechanism, guarantee: Guarantee, pair: Pair, private: bool, id_: str) -> dict[str, Any]:
    return {
        **fields_of_claim(id_, id_.partition("/")[0], guarantee, "L2"),
        "alpha": 0.01,
        "expected": Verdict.CONSISTENT,
        "mechanism": describe_target(mechanism),
        "source_hash": source_hash(mechanism),
        "title": "Replay of random draws",
        "pair": pair.name if private else " against ".join(show_pair(pair.x, pair.y)),
        "stop": "budget",
    }


# ----------------------------------------------------------------------------------- differences


def find_differences(mechanism: Mechanism, guarantee: Guarantee, pair: Pair, seed: int) -> list[ReplayFinding]:
    """Find what differs between two runs with the same variates.

    Parameters
    ----------
    mechanism : callable
        The target.
    guarantee : Guarantee
        The claim, which shifts are held against.
    pair : Pair
        The datasets.
    seed : int
        Seed of the variates.

    Raises
    ------
    Uncontrolled
        If the target cannot be replayed.
    TargetError
        If it raises on both datasets.
    """
    recorder = DrawRecorder()
    name = describe_target(mechanism)

    def run(data: Any, bumps: Mapping[int, Any] | None = None, other: int = seed) -> _Run:
        tape = Tape(other, bumps or {})
        with recorder.using(tape):
            return _Run(_call(mechanism, data, recorder), tape.draws)

    with recorder.replacing():
        x, again, y = run(pair.x), run(pair.x), run(pair.y)
        if isinstance(x.output, Raised) and isinstance(y.output, Raised):
            raise TargetError(f"the target raised {x.output.message or x.output.error} on both datasets")
        if not _are_equal(x.output, again.output):
            raise Uncontrolled(
                "with the same variates it returns another output: it draws from a source that is not replaced"
            )
        findings = [*_compare_draws(x.draws, y.draws), *_compare_kinds(x.output, y.output, name)]
        if _are_equal(x.output, y.output) or any(f.kind == "outputs of another kind" for f in findings):
            return findings
        numbers = _as_numbers(x.output), _as_numbers(y.output)
        if numbers[0] is None or numbers[1] is None:
            return findings
        on_x = _find_effects(lambda bumps: run(pair.x, bumps), x)
        on_y = _find_effects(lambda bumps: run(pair.y, bumps), y)
    if on_x is None or on_y is None:
        return findings
    return _drop_repeats([*findings, *_judge_shift(guarantee, numbers[0] - numbers[1], x, on_x, on_y, name)])


def _call(mechanism: Mechanism, data: Any, recorder: DrawRecorder) -> Any:
    try:
        return ask_once(mechanism, data, recorder.rng)[0]
    except Signal:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it raises is what it does
        return Raised(type(error).__name__, f"{type(error).__name__}: {error}")


def _are_equal(a: Any, b: Any) -> bool:
    return repr(make_visible(a)) == repr(make_visible(b))


def _as_numbers(output: Any) -> Array | None:
    """An output as a vector of numbers; None if it is something else, or truth values or integers only."""
    plain = make_visible(output)
    if isinstance(plain, dict):
        plain = list(plain.values())
    try:
        array = np.asarray(plain)
    except ValueError:
        return None
    return array.astype(np.float64).ravel() if array.dtype.kind in "if" and array.size else None


def _compare_draws(x: Sequence[RecordedDraw], y: Sequence[RecordedDraw]) -> Iterator[ReplayFinding]:
    """Draws that one run lacks, and those whose shape or scale differs."""
    keys = [[(d.primitive, d.place) for d in draws] for draws in (x, y)]
    matcher = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            for one, two in zip(x[a:b], y[c:d], strict=True):
                yield from _compare_draw(one, two)
        elif not (x and y):  # noise is drawn on one dataset only
            side, draw = ("x", x[a]) if x else ("x'", y[c])
            yield ReplayFinding(
                "draw on one dataset only", f"{draw.primitive} is drawn on {side}, nothing on the other", draw.place
            )


def _compare_draw(x: RecordedDraw, y: RecordedDraw) -> Iterator[ReplayFinding]:
    if x.shape != y.shape:
        yield ReplayFinding(
            "number of variates depends on the data",
            f"shapes of {x.primitive} differ",
            x.place,
            f"{x.shape} and {y.shape}",
        )
    for name in x.parameters.keys() & y.parameters.keys():
        if name in _SIZES or name in _LOCATIONS:
            continue
        a, b = x.parameters[name], y.parameters[name]
        if isinstance(a, int | float | np.number) and isinstance(b, int | float | np.number) and a != b:
            yield ReplayFinding("scale depends on the data", f"{name} of {x.primitive} differs", x.place)


def _compare_kinds(x: Any, y: Any, name: str) -> Iterator[ReplayFinding]:
    plain = [output if isinstance(output, Raised) else make_visible(output) for output in (x, y)]
    plain = [list(output) if isinstance(output, dict) else output for output in plain]
    kinds = [repr(output) if isinstance(output, Raised) else kind_of(output) for output in plain]
    shapes = [_shape_of(output) for output in plain]
    if kinds[0] != kinds[1] or shapes[0] != shapes[1]:
        text = f"{kinds[0]} against {kinds[1]}" if kinds[0] != kinds[1] else "shapes differ"
        yield ReplayFinding("outputs of another kind", text, name, f"of shapes {shapes[0]} and {shapes[1]}")


def _shape_of(output: Any) -> tuple[int, ...]:
    return (len(output),) if isinstance(output, list | tuple | np.ndarray) else ()


@dataclass(frozen=True)
class _Effects:
    """What each scalar variate does to the output: matrix of shape (outputs, variates), and its draw and scale."""

    matrix: Array
    draws: Sequence[int]
    scales: Sequence[float]


def _find_effects(run: Any, base: _Run) -> _Effects | None:
    """Effects of continuous noise on the output; None if they are not linear, or too many."""
    start = _as_numbers(base.output)
    assert start is not None  # the caller has looked
    columns: list[Array] = []
    numbers, scales = [], []
    for number, draw in enumerate(base.draws):
        parameter = _SCALES.get(draw.primitive.rpartition(".")[2])
        if parameter is None and draw.primitive.rpartition(".")[2] != "standard_normal":
            return None
        values = np.atleast_1d(np.asarray(draw.value, dtype=np.float64))
        scale = np.broadcast_to(np.asarray(draw.parameters.get(parameter or "", 1.0), dtype=np.float64), values.shape)
        for place in range(values.size):
            if len(columns) >= _MOST_VARIATES:
                return None
            size = float(scale.flat[place])
            once, twice = (_bump_variate(run, number, place, step * size, start) for step in (1.0, 2.0))
            if once is None or twice is None:
                return None
            if not np.allclose(2 * once, twice, rtol=_LINEAR, atol=_LINEAR * size):
                return None
            columns.append(once / size if size else once)
            numbers.append(number)
            scales.append(size)
    matrix = np.array(columns).T if columns else np.zeros((start.size, 0))
    return _Effects(matrix, numbers, scales)


def _bump_variate(run: Any, number: int, place: int, step: float, start: Array) -> Array | None:
    def bump(value: Any) -> Any:
        if np.ndim(value) == 0:
            return value + step
        moved = np.array(value, dtype=np.float64)
        moved.flat[place] += step
        return moved

    moved = _as_numbers(run({number: bump}).output)
    return None if moved is None or moved.shape != start.shape else moved - start


def _judge_shift(
    guarantee: Guarantee, shift: Array, x: _Run, on_x: _Effects, on_y: _Effects, name: str
) -> Iterator[ReplayFinding]:
    """Findings on the shift between two outputs of the same variates, where they are linear in the noise."""
    noisy = [
        np.any(np.abs(e.matrix) > 1e-12, axis=1) if e.matrix.size else np.zeros(shift.size, bool) for e in (on_x, on_y)
    ]
    moved = np.abs(shift) > 1e-9 * np.maximum(1.0, np.abs(shift).max())
    bare = np.flatnonzero(moved & ~(noisy[0] & noisy[1]))
    if bare.size:
        yield ReplayFinding(
            "data reach the output without noise", f"number {int(bare[0]) + 1} of {shift.size} of the output", name
        )
        return
    if on_x.matrix.shape != on_y.matrix.shape or not np.allclose(on_x.matrix, on_y.matrix, atol=1e-9):
        line = x.draws[on_x.draws[0]].place
        yield ReplayFinding(
            "effect of the noise depends on the data", "the noise is scaled or placed differently", line
        )
        return
    deltas = _least_shift(on_x, shift)
    if deltas is None:
        line = x.draws[on_x.draws[0]].place
        yield ReplayFinding(
            "the same variate is used twice", "a combination of numbers of the output has no noise", line
        )
        return
    if np.linalg.matrix_rank(on_x.matrix) < on_x.matrix.shape[1]:
        return  # several shifts of the noise give this one: the cheapest is an upper bound on the loss only
    ratios = np.abs(deltas) / np.maximum(np.array(on_x.scales), 1e-300)
    gaussian = ["laplace" not in x.draws[k].primitive for k in on_x.draws]
    largest = int(np.argmax(ratios))
    line = x.draws[on_x.draws[largest]].place
    level = None
    if all(gaussian):
        level = guarantee.exact_level(GaussianCurve(float(np.sqrt(np.sum(ratios**2)))))
    elif not any(gaussian):
        level = float(ratios.sum()) if isinstance(guarantee, PureDP) else None
    if level is not None and level > guarantee.level * (1 + 1e-9):
        size = f"{guarantee.symbol} = {level:.4g}" if math.isfinite(level) else f"no finite {guarantee.symbol}"
        yield ReplayFinding(
            "shift larger than the noise allows",
            f"{ratios[largest]:.4g} times the scale of its noise; in all {size}, claimed {guarantee.level:.4g}",
            line,
        )


def _least_shift(effects: _Effects, shift: Array) -> Array | None:
    """Shift of the variates of least cost that makes up for the shift of the output; None if there is none."""
    variates = effects.matrix.shape[1]
    weights = 1.0 / np.maximum(np.array(effects.scales), 1e-300)
    found = optimize.linprog(
        np.concatenate([weights, weights]),
        A_eq=np.hstack([effects.matrix, -effects.matrix]),
        b_eq=shift,
        method="highs",
    )
    if not found.success or found.x is None:
        return None
    return np.asarray(found.x[:variates] - found.x[variates:], dtype=np.float64)


def _drop_repeats(findings: Sequence[ReplayFinding]) -> list[ReplayFinding]:
    return list(dict.fromkeys(findings))
