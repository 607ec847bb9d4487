"""What differs between two runs of a target with the same random variates."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.audits.noise_effects import Array, NoiseEffects, compose_level, find_effects, find_reached, solve_shift
from auditor.datasets import Pair
from auditor.errors import TargetError
from auditor.privacy.guarantees import Guarantee
from auditor.targets.outputs import Raised
from auditor.targets.randomness.signals import Uncontrolled
from auditor.targets.replays import DrawFacts, LocalRuns, RemoteRuns, ReplayRun
from auditor.targets.values import kind_of, make_visible, strip_type

#: Parameters that move noise and do not scale it, and those that only say how much of it there is.
_LOCATIONS = ("loc", "mu", "mean", "low", "a", "left")
_SIZES = ("size", "dtype", "out", "n", "k", "shape", "d0", "method")
#: Plain draws whose arguments are sizes.
_SHAPED = ("rand", "randn")
#: Relative slack of levels against the claim, for rounding.
_ROUNDING = 1e-9
#: Lines that a composition names at most; arbitrary.
_MOST_LINES = 4

COMPOSITION = "composition beyond the claim"
SHIFT = "shift larger than the noise allows"
OTHER_KIND = "outputs of another kind"


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
    lead : bool
        It is wrong only if all draws can be read off the output, which was not seen.
    """

    kind: str
    text: str
    place: str
    detail: str = ""
    lead: bool = False

    def describe(self, private: bool) -> str:
        """Place and what was seen.

        Parameters
        ----------
        private : bool
            Leave out what tells sizes of datasets.
        """
        return f"{self.place}: {self.text}" + (f", {self.detail}" if self.detail and not private else "")


def find_differences(
    runs: LocalRuns | RemoteRuns, guarantee: Guarantee, pair: Pair, seed: int, name: str
) -> list[ReplayFinding]:
    """Find what differs between two runs with the same variates.

    Parameters
    ----------
    runs : LocalRuns or RemoteRuns
        Runs the target.
    guarantee : Guarantee
        The claim, which shifts are held against.
    pair : Pair
        The datasets.
    seed : int
        Seed of the variates.
    name : str
        Name of the target, for findings that no line is to blame for.

    Raises
    ------
    Uncontrolled
        If the target cannot be replayed.
    TargetError
        If it raises on both datasets.
    """
    x, again, y = runs.run(pair.x, seed), runs.run(pair.x, seed), runs.run(pair.y, seed)
    if isinstance(x.output, Raised) and isinstance(y.output, Raised):
        said = f": {x.output.message}" if x.output.message else ""
        raise TargetError(f"the target raised {x.output.error} on both datasets{said}")
    if not _are_equal(x.output, again.output):
        raise Uncontrolled(
            "with the same variates it returns another output: it draws from a source that is not replaced"
        )
    leads = _compose_draws(guarantee, x, y)
    if any(draw.fresh for draw in y.draws):  # what differs may be by chance
        return leads
    findings = [*_compare_draws(x.draws, y.draws), *_compare_kinds(x.output, y.output, name)]
    if _are_equal(x.output, y.output) or any(f.kind == OTHER_KIND for f in findings):
        return [*findings, *leads]
    numbers = numbers_in(x.output), numbers_in(y.output)
    if numbers[0].shape != numbers[1].shape or not numbers[0].size:
        return [*findings, *leads]
    judged = _judge_output(runs, guarantee, pair, seed, (x, y), numbers, name)
    return drop_repeats([*findings, *(leads if judged is None else judged)])


def drop_repeats(findings: Sequence[ReplayFinding]) -> list[ReplayFinding]:
    """Each finding once, in order.

    Parameters
    ----------
    findings : sequence of ReplayFinding
        Findings, of several replays.
    """
    return list(dict.fromkeys(findings))


def numbers_in(output: Any) -> Array:
    """All numbers of an output in order, as a vector.

    Texts and truth values are left out.

    Parameters
    ----------
    output : object
        What a target returned for one draw.
    """
    found: list[Any] = []
    _collect_numbers(make_visible(output), found)
    return np.concatenate(found) if found else np.zeros(0)


def _collect_numbers(value: Any, found: list[Any]) -> None:
    value = strip_type(value)
    if isinstance(value, bool | str | bytes) or value is None:
        return
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple) and not all(type(element) in (int, float) for element in value):
        for element in value:
            _collect_numbers(element, found)
        return
    if not isinstance(value, list | tuple | int | float | np.number | np.ndarray):
        return
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        return
    if array.dtype.kind in "iuf":
        found.append(array.astype(np.float64).ravel())


def _are_equal(a: Any, b: Any) -> bool:
    return _text_of(a) == _text_of(b)


def _text_of(output: Any) -> str:
    with np.printoptions(threshold=10**9):
        return repr(make_visible(output))


# ------------------------------------------------------------------------------ draws and kinds


def _pair_draws(x: Sequence[DrawFacts], y: Sequence[DrawFacts]) -> list[tuple[str, slice, slice]]:
    """Stretches of the two runs that are alike, and those that are not."""
    keys = [[(d.primitive, d.place) for d in draws] for draws in (x, y)]
    if keys[0] == keys[1]:
        return [("equal", slice(0, len(x)), slice(0, len(y)))]
    matcher = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    return [(tag, slice(a, b), slice(c, d)) for tag, a, b, c, d in matcher.get_opcodes()]


def _compare_draws(x: Sequence[DrawFacts], y: Sequence[DrawFacts]) -> Iterator[ReplayFinding]:
    """Draws that one run lacks, and those whose shape or scale differs."""
    for tag, in_x, in_y in _pair_draws(x, y):
        if tag == "equal":
            for one, two in zip(x[in_x], y[in_y], strict=True):
                yield from _compare_draw(one, two)
        elif not (x and y):  # noise is drawn on one dataset only
            side, draw = ("x", x[0]) if x else ("x'", y[0])
            yield ReplayFinding(
                "draw on one dataset only", f"{draw.primitive} is drawn on {side}, nothing on the other", draw.place
            )


def _compare_draw(x: DrawFacts, y: DrawFacts) -> Iterator[ReplayFinding]:
    if list(x.shape) != list(y.shape):
        yield ReplayFinding(
            "number of variates depends on the data",
            f"shapes of {x.primitive} differ",
            x.place,
            f"{tuple(x.shape)} and {tuple(y.shape)}",
        )
    for name in x.parameters.keys() & y.parameters.keys():
        if name in _SIZES or name in _LOCATIONS or x.primitive.endswith(_SHAPED):
            continue
        if x.parameters[name] != y.parameters[name]:
            yield ReplayFinding("scale depends on the data", f"{name} of {x.primitive} differs", x.place)


def _compare_kinds(x: Any, y: Any, name: str) -> Iterator[ReplayFinding]:
    plain = [output if isinstance(output, Raised) else make_visible(output) for output in (x, y)]
    plain = [list(output) if isinstance(output, dict) else output for output in plain]
    kinds = [repr(output) if isinstance(output, Raised) else kind_of(output) for output in plain]
    shapes = [_shape_of(output) for output in plain]
    if kinds[0] != kinds[1] or shapes[0] != shapes[1]:
        text = f"{kinds[0]} against {kinds[1]}" if kinds[0] != kinds[1] else "shapes differ"
        yield ReplayFinding(OTHER_KIND, text, name, f"of shapes {shapes[0]} and {shapes[1]}")


def _shape_of(output: Any) -> tuple[int, ...]:
    return (len(output),) if isinstance(output, list | tuple | np.ndarray) else ()


# ------------------------------------------------------------------------------------- shifts


def _judge_output(
    runs: LocalRuns | RemoteRuns,
    guarantee: Guarantee,
    pair: Pair,
    seed: int,
    both: tuple[ReplayRun, ReplayRun],
    numbers: tuple[Array, Array],
    name: str,
) -> list[ReplayFinding] | None:
    """Findings on two outputs of the same variates; None if they are not linear in the noise."""
    asked = [
        (lambda bumps, data=data: numbers_in(runs.run(data, seed, bumps).output), run.draws, start)
        for data, run, start in zip((pair.x, pair.y), both, numbers, strict=True)
    ]
    on_x = find_effects(*asked[0])
    on_y = None if on_x is None else find_effects(*asked[1])
    if on_x is None or on_y is None:
        return None
    shift = numbers[0] - numbers[1]
    moved = np.abs(shift) > 1e-9 * np.maximum(1.0, np.abs(shift).max())
    flat = [~np.any(np.abs(effects.matrix) > 1e-12, axis=1) for effects in (on_x, on_y)]
    bare = moved & flat[0] & flat[1]
    for side, other in ((0, 1), (1, 0)):
        if (moved & flat[side] & ~flat[other]).any():  # noise on one side only; or it is clamped there
            reached = find_reached(*asked[side])
            if (moved & flat[side] & ~flat[other] & reached).any():
                return None
            bare |= moved & flat[side]
    if bare.any():
        which = f"number {int(np.flatnonzero(bare)[0]) + 1} of {shift.size} of the output"
        return [ReplayFinding("data reach the output without noise", which, name)]
    return list(_judge_shift(guarantee, shift, both[0], on_x, on_y))


def _judge_shift(
    guarantee: Guarantee, shift: Array, x: ReplayRun, on_x: NoiseEffects, on_y: NoiseEffects
) -> Iterator[ReplayFinding]:
    """Findings on the shift between two outputs of the same variates, where they are linear in the noise."""
    places = [x.draws[number].place for number in on_x.draws]
    slack = max(on_x.slack, on_y.slack)
    if on_x.matrix.shape != on_y.matrix.shape or not np.allclose(on_x.matrix, on_y.matrix, atol=slack):
        yield ReplayFinding(
            "effect of the noise depends on the data", "the noise is scaled or placed differently", places[0]
        )
        return
    shifts = solve_shift(on_x, shift)
    if shifts is None:
        yield ReplayFinding(
            "the same variate is used twice", "a combination of numbers of the output has no noise", places[0]
        )
        return
    if np.linalg.matrix_rank(on_x.matrix) < on_x.matrix.shape[1]:
        return  # several shifts of the noise give this one: the cheapest is an upper bound on the loss only
    scales = np.maximum(np.array(on_x.scales), 1e-300)
    ratios = np.abs(shifts) / scales
    level = compose_level(guarantee, list(zip(on_x.families, ratios, strict=True)))
    if level is not None and level > guarantee.level * (1 + _ROUNDING + 10 * (slack if slack > 1e-6 else 0.0)):
        largest = int(np.argmax(ratios))
        yield ReplayFinding(
            SHIFT, f"{ratios[largest]:.4g} times the scale of its noise; {_in_all(guarantee, level)}", places[largest]
        )


def _in_all(guarantee: Guarantee, level: float) -> str:
    size = f"{guarantee.symbol} = {level:.4g}" if np.isfinite(level) else f"no finite {guarantee.symbol}"
    return f"in all {size}, claimed {guarantee.level:.4g}"


# ------------------------------------------------------------------------------- composition


@dataclass(frozen=True)
class _DrawLoss:
    """Loss of one draw: families of its noise with shifts in scales, or a declared epsilon, and its line."""

    parts: Sequence[tuple[str, float]]
    place: str
    released: bool

    @property
    def size(self) -> float:
        return sum(ratio for _, ratio in self.parts)


def _compose_draws(guarantee: Guarantee, x: ReplayRun, y: ReplayRun) -> list[ReplayFinding]:
    """What the draws lose together, by what noise is added to on the two datasets, if that is beyond the claim.

    Draws whose values stand in the output are shown by it. What they lose is then lost; that of all is an upper bound.
    """
    shown = [set(numbers_in(run.output).tolist()) for run in (x, y)]
    losses = []
    for tag, in_x, in_y in _pair_draws(x.draws, y.draws):
        if tag == "equal":
            pairs = zip(x.draws[in_x], y.draws[in_y], strict=True)
            losses += [loss for one, two in pairs if (loss := _loss_of(one, two, shown)) is not None]
    released = [loss for loss in losses if loss.released]
    for chosen, lead in ((released, False), (losses, True)):
        level = compose_level(guarantee, [part for loss in chosen for part in loss.parts])
        if level is not None and level > guarantee.level * (1 + 1e-6):
            chosen = sorted(chosen, key=lambda loss: -loss.size)
            lines = list(dict.fromkeys(loss.place for loss in chosen))
            others = f" and {len(lines) - _MOST_LINES} lines more" if len(lines) > _MOST_LINES else ""
            text = f"{len(chosen)} draws of {', '.join(lines[:_MOST_LINES])}{others}: {_in_all(guarantee, level)}"
            text += ", if all of them can be read off the output" if lead else ""
            return [ReplayFinding(COMPOSITION, text, lines[0], lead=lead)]
    return []


def _loss_of(x: DrawFacts, y: DrawFacts, shown: Sequence[set[float]]) -> _DrawLoss | None:
    """Loss of a draw, of which both runs have one; None if it has none, or none that is known."""
    if not x.digest or x.digest == y.digest:
        return None
    numbers = x.given is not None and y.given is not None and len(x.given) == len(y.given)
    moved = np.abs(np.subtract(x.given or [], y.given or [])) if numbers else np.zeros(0)
    released = not (x.fresh or y.fresh) and all(
        draw.values is not None and shown[side].issuperset(draw.values) for side, draw in enumerate((x, y))
    )
    if numbers and x.family and x.family == y.family and list(x.scales) == list(y.scales):
        size = len(x.scales)
        ratios = np.broadcast_to(moved, size) / np.asarray(x.scales) if moved.size in (1, size) else np.zeros(0)
        family = f"whole {x.family}" if x.whole else x.family
        parts = [(family, float(ratio)) for ratio in ratios if ratio > 0]
        return _DrawLoss(parts, x.place, released) if parts else None
    epsilon = x.parameters.get("epsilon") or 0.0
    if epsilon <= 0:
        return None
    sensitivity = x.parameters.get("sensitivity") or 0.0
    times = max(1.0, float(moved.max()) / sensitivity) if moved.size and sensitivity > 0 else 1.0
    return _DrawLoss([("", epsilon * times)], x.place, released=False)
