"""What differs between two runs of a target with the same random variates."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditor.audits.noise_effects import (
    Array,
    NoiseEffects,
    are_readable,
    compose_level,
    find_effects,
    find_reached,
    score_noise,
    solve_shift,
)
from auditor.datasets import Pair
from auditor.errors import TargetError
from auditor.events.noise_score import NoiseScore
from auditor.privacy.guarantees import Guarantee
from auditor.targets.outputs import Raised
from auditor.targets.raises import is_declared, show_error
from auditor.targets.randomness.signals import Uncontrolled
from auditor.targets.replays import Bumps, DrawFacts, LocalRuns, RemoteRuns, ReplayRun
from auditor.targets.values import Typed, kind_of, make_visible, numbers_in

#: Parameters that move noise and do not scale it, and those that only say how much of it there is.
_LOCATIONS = ("loc", "mu", "mean", "low", "a", "left")
_SIZES = ("size", "dtype", "out", "n", "k", "shape", "d0", "method")
#: Plain draws whose arguments are sizes.
_SHAPED = ("rand", "randn")
#: Relative slack of levels against the claim, for rounding: of shifts of the output, and of what primitives are given.
_ROUNDING, _SLACK = 1e-9, 1e-6
#: Further replays on both datasets by which a kind of output is told from one that noise has chosen; arbitrary.
_KINDS = 12
#: A sensitivity that is told by those who divide epsilon by theirs; no noisy maximum of them is to be accused.
_PLAIN = 1.0
#: Primitives with the same input on both datasets at most, whose noise is moved to see what it moves; arbitrary.
_MOST_SAME = 60
#: Lines that a composition names at most; arbitrary.
_MOST_LINES = 4

BEYOND = "shift beyond the declared sensitivity"
COMPOSITION = "composition beyond the claim"
NUMBER = "number of variates depends on the data"
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
    hidden : str
        What was seen, without names that may hold data; empty if the text has none.
    """

    kind: str
    text: str
    place: str
    detail: str = ""
    lead: bool = False
    hidden: str = ""

    def describe(self, private: bool) -> str:
        """Place and what was seen.

        Parameters
        ----------
        private : bool
            Leave out what tells sizes of datasets, and names that may hold data.
        """
        if private:
            return f"{self.place}: {self.hidden or self.text}"
        return f"{self.place}: {self.text}" + (f", {self.detail}" if self.detail else "")


@dataclass(frozen=True)
class Differences:
    """What two runs with the same variates differ in.

    Parameters
    ----------
    findings : sequence of ReplayFinding
        What is held against the claim.
    unjudged : str
        Why the outputs, which differ, could not be held against it; empty if they could, or are equal.
    """

    findings: Sequence[ReplayFinding]
    unjudged: str = ""


def find_differences(
    runs: LocalRuns | RemoteRuns, guarantee: Guarantee, pair: Pair, seed: int, name: str
) -> Differences:
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
        If it raises on both datasets, with other variates too.
    """
    x, again, y = runs.run(pair.x, seed), runs.run(pair.x, seed), runs.run(pair.y, seed)
    if isinstance(x.output, Raised) and isinstance(y.output, Raised) and _raises_always(runs, pair, seed):
        said = f": {x.output.message}" if x.output.message else ""
        name, where = x.output.error, "on both datasets"
        public = f"the target raised {show_error(name)} {where}"
        raise TargetError(f"the target raised {name} {where}{said}", public=public)
    if not _are_equal(x.output, again.output):
        raise Uncontrolled(
            "with the same variates it returns another output: it draws from a source that is not replaced"
        )
    # The same values of primitives on the neighbour: what then differs does not follow from what they have released.
    forced = _values_of_primitives(x)
    z = runs.run(pair.y, seed, forced=forced) if forced else y
    leads = _compose_draws(guarantee, x, z, lambda bumps: numbers_in(runs.run(pair.x, seed, bumps).output))
    findings = list(_compare_draws(x.draws, z.draws))
    all_forced = 0 < len(forced) == len(x.draws) and _keys_of(x.draws) == _keys_of(z.draws)
    if all_forced and _tells_more(lambda bumps: runs.run(pair.y, seed, bumps, forced), x, z):
        text = "the output differs although all noisy values are the same"
        bare = ReplayFinding("data reach the output without noise", text, name)
        return Differences(drop_repeats([*findings, bare, *leads]))
    found = [*findings, *leads]
    if any(draw.fresh for draw in y.draws):  # what differs else may be by chance
        return Differences(drop_repeats(found), "not all noise can be repeated")
    kinds = _compare_kinds(runs, pair, seed, (x.output, y.output), name)
    if any(not f.lead for f in kinds):  # else a number of variates may be that of rows, as in sampling
        findings = [replace(f, lead=f.lead and f.kind != NUMBER) for f in findings]
    findings += kinds
    found = [*findings, *leads]
    if _are_equal(x.output, y.output) or any(f.kind == OTHER_KIND for f in findings):
        return Differences(drop_repeats(found))
    numbers = numbers_in(x.output), numbers_in(y.output)
    if numbers[0].shape != numbers[1].shape or not numbers[0].size:
        return Differences(drop_repeats(found), "they are no numbers, or not as many")
    explained = all_forced and _are_equal(x.output, z.output)
    blank = _blank_numbers(make_visible(x.output)), _blank_numbers(make_visible(y.output))
    if blank[0] != blank[1] and not explained:
        return _judge_blanks(runs, pair, seed, blank, found, name)
    judged = _judge_output(runs, guarantee, pair, seed, (x, y), numbers, name)
    if isinstance(judged, str):
        # Where the values of all primitives are the same on both, and so is the output, nothing else differs.
        return Differences(drop_repeats(found), "" if explained else judged)
    return Differences(drop_repeats([*findings, *(judged or (replace(f, lead=True) for f in leads))]))


def _raises_always(runs: LocalRuns | RemoteRuns, pair: Pair, seed: int) -> bool:
    """Whether a target raises with other variates too."""
    seeds = range(seed + 1000, seed + 1000 + _KINDS)
    return all(isinstance(runs.run(data, other).output, Raised) for other in seeds for data in (pair.x, pair.y))


def _judge_blanks(
    runs: LocalRuns | RemoteRuns, pair: Pair, seed: int, blank: tuple[Any, Any], found: list[ReplayFinding], name: str
) -> Differences:
    """Findings for outputs that differ in more than numbers, a leak only if they do so with other variates too."""
    for other in range(seed + 1000, seed + 1000 + _KINDS):
        again = (_blank_numbers(make_visible(runs.run(data, other).output)) for data in (pair.x, pair.y))
        if tuple(again) != blank:
            return Differences(drop_repeats(found), "they differ in more than numbers")
    bare = ReplayFinding("data reach the output without noise", "what is no number differs", name)
    return Differences(drop_repeats([*found, bare]))


def _blank_numbers(value: Any) -> str:
    """Text of an output with its numbers left out."""
    if isinstance(value, Typed):
        return f"{value.kind}({_blank_numbers(value.value)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_blank_numbers(part)}' for key, part in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_blank_numbers, value))}]"
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return "number" if number else repr(value)


def find_score(runs: LocalRuns | RemoteRuns, pair: Pair, seed: int) -> NoiseScore | None:
    """Score of outputs, for events, that two replays give.

    Parameters
    ----------
    runs, pair, seed
        See `find_differences`.

    Returns
    -------
    NoiseScore or None
        None where the noise does not tell it, see `score_noise`.
    """
    try:
        x = runs.run(pair.x, seed)
        z = runs.run(pair.y, seed, forced=_values_of_primitives(x))
        start, other = numbers_in(x.output), numbers_in(z.output)
        if start.shape != other.shape or not start.size or not np.isfinite(start).all():
            return None
        return score_noise(
            lambda bumps: numbers_in(runs.run(pair.x, seed, bumps).output), x.draws, z.draws, start - other, start
        )
    except (Uncontrolled, TargetError, np.linalg.LinAlgError):
        return None


def _values_of_primitives(run: ReplayRun) -> dict[int, Sequence[float]]:
    """Values of draws that noise is added to something in, by their numbers."""
    return {k: draw.values for k, draw in enumerate(run.draws) if draw.digest and draw.values is not None}


def drop_repeats(findings: Sequence[ReplayFinding]) -> list[ReplayFinding]:
    """Each finding once, in order.

    Replays differ in levels that follow from their variates: the first finding of a kind at a line stands for all.

    Parameters
    ----------
    findings : sequence of ReplayFinding
        Findings, of several replays.
    """
    kept: dict[Any, ReplayFinding] = {}
    for finding in sorted(findings, key=lambda finding: finding.lead):
        levelled = finding.kind in (BEYOND, COMPOSITION, SHIFT)
        kept.setdefault((finding.kind, finding.place) if levelled else finding, finding)
    return list(kept.values())


def _are_equal(a: Any, b: Any) -> bool:
    return _text_of(a) == _text_of(b)


def _text_of(output: Any) -> str:
    with np.printoptions(threshold=10**9):
        return repr(make_visible(output))


def _tells_more(run: Callable[[Bumps], ReplayRun], x: ReplayRun, z: ReplayRun) -> bool:
    """Whether an output tells more than the values of primitives, which are the same on both datasets.

    Noise that is added to the same value on both, such as 0, may be that of a number which is added to it later: what
    it moves tells no more.
    """
    if not all(draw.unit for draw in x.draws) or _are_equal(x.output, z.output):
        return False
    same = [k for k, (one, two) in enumerate(zip(x.draws, z.draws, strict=True)) if one.digest == two.digest]
    numbers, others = numbers_in(x.output), numbers_in(z.output)
    if not same:
        return True
    if numbers.shape != others.shape or len(same) > _MOST_SAME:
        return False
    told = numbers != others
    for number in same:
        draw = z.draws[number]
        moves = {k: draw.scales[k] if draw.scales and not draw.whole else 1.0 for k in range(len(draw.values or ()))}
        moved = numbers_in(run({number: moves}).output)
        told &= moved == others if moved.shape == others.shape else False
    return bool(told.any())


# ------------------------------------------------------------------------------ draws and kinds


def _keys_of(draws: Sequence[DrawFacts]) -> list[tuple[str, str]]:
    return [(draw.primitive, draw.place) for draw in draws]


def _pair_draws(x: Sequence[DrawFacts], y: Sequence[DrawFacts]) -> list[tuple[str, slice, slice]]:
    """Stretches of the two runs that are alike, and those that are not."""
    keys = _keys_of(x), _keys_of(y)
    if keys[0] == keys[1]:
        return [("equal", slice(0, len(x)), slice(0, len(y)))]
    matcher = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    return [(tag, slice(a, b), slice(c, d)) for tag, a, b, c, d in matcher.get_opcodes()]


def _compare_draws(x: Sequence[DrawFacts], y: Sequence[DrawFacts]) -> Iterator[ReplayFinding]:
    """Draws that one run lacks, and those whose shape or scale differs."""
    for tag, in_x, in_y in _pair_draws(x, y):
        if tag == "equal":
            for k, (one, two) in enumerate(zip(x[in_x], y[in_y], strict=True)):
                # After draws whose use is not seen, a scale may follow from what they have released.
                yield from _compare_draw(one, two, any(not draw.unit for draw in x[: in_x.start + k]))
        elif not (x and y):  # noise is drawn on one dataset only
            side, draw = ("x", x[0]) if x else ("x'", y[0])
            yield ReplayFinding(
                "draw on one dataset only", f"{draw.primitive} is drawn on {side}, nothing on the other", draw.place
            )


def _compare_draw(x: DrawFacts, y: DrawFacts, lead: bool) -> Iterator[ReplayFinding]:
    if list(x.shape) != list(y.shape):
        shapes = f"{tuple(x.shape)} and {tuple(y.shape)}"
        yield ReplayFinding(NUMBER, f"shapes of {x.primitive} differ", x.place, shapes, lead=True)
    for name in x.parameters.keys() & y.parameters.keys():
        if name in _SIZES or name in _LOCATIONS or x.primitive.endswith(_SHAPED):
            continue
        if x.parameters[name] != y.parameters[name]:
            yield ReplayFinding("scale depends on the data", f"{name} of {x.primitive} differs", x.place, "", lead)


def _compare_kinds(
    runs: LocalRuns | RemoteRuns, pair: Pair, seed: int, outputs: tuple[Any, Any], name: str
) -> list[ReplayFinding]:
    """A finding if the outputs are of another kind, and stay so with other variates."""
    x, y = (_kind_of(output) for output in outputs)
    if x == y:
        return []
    lead = False
    for other in range(seed + 1000, seed + 1000 + _KINDS):
        again = _kind_of(runs.run(pair.x, other).output), _kind_of(runs.run(pair.y, other).output)
        lead = lead or again != (x, y)
    text = f"{x[0]} against {y[0]}" if x[0] != y[0] else "shapes differ"
    shown = [_show_kind(kind) for kind, _ in (x, y)]
    hidden = " against ".join(shown) if x[0] != y[0] else ""
    return [ReplayFinding(OTHER_KIND, text, name, f"of shapes {x[1]} and {y[1]}", lead, hidden)]


def _show_kind(kind: str) -> str:
    """Name of a kind of output without what may hold data."""
    raised = repr(Raised(""))
    if kind.startswith(raised):
        return raised + show_error(kind.removeprefix(raised))
    usual = kind in ("None", "sequence") or kind in np.sctypeDict
    return kind if usual or is_declared(kind) else "an object"


def _kind_of(output: Any) -> tuple[str, tuple[int, ...]]:
    """Kind and shape of an output."""
    if isinstance(output, Raised):
        return repr(output), ()
    plain = make_visible(output)
    plain = list(plain) if isinstance(plain, dict) else plain
    return kind_of(plain), _shape_of(plain)


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
) -> list[ReplayFinding] | str:
    """Findings on two outputs of the same variates, or why there can be none."""
    asked = [
        (lambda bumps, data=data: numbers_in(runs.run(data, seed, bumps).output), run.draws, start)
        for data, run, start in zip((pair.x, pair.y), both, numbers, strict=True)
    ]
    on_x = find_effects(*asked[0])
    on_y = None if on_x is None else find_effects(*asked[1])
    if on_x is None or on_y is None:
        return "they are not linear in Laplace, Gaussian or geometric noise, or it has too many variates"
    shift = numbers[0] - numbers[1]
    moved = np.abs(shift) > 1e-9 * np.maximum(1.0, np.abs(shift).max())
    flat = [~np.any(np.abs(effects.matrix) > 1e-12, axis=1) for effects in (on_x, on_y)]
    bare = moved & flat[0] & flat[1]
    for side, other in ((0, 1), (1, 0)):
        if (moved & flat[side] & ~flat[other]).any():  # noise on one side only; or it is clamped there
            reached = find_reached(*asked[side])
            if (moved & flat[side] & ~flat[other] & reached).any():
                return "noise reaches a number on one dataset only, or beyond a clamp"
            bare |= moved & flat[side]
    if bare.any():
        which = f"number {int(np.flatnonzero(bare)[0]) + 1} of {shift.size} of the output"
        return [ReplayFinding("data reach the output without noise", which, name)]
    return _judge_shift(guarantee, shift, both[0], on_x, on_y)


def _judge_shift(
    guarantee: Guarantee, shift: Array, x: ReplayRun, on_x: NoiseEffects, on_y: NoiseEffects
) -> list[ReplayFinding] | str:
    """Findings on the shift between two outputs that are linear in the noise, or why there can be none."""
    places = [x.draws[number].place for number in on_x.draws]
    slack = max(on_x.slack, on_y.slack)
    if on_x.matrix.shape != on_y.matrix.shape or not np.allclose(on_x.matrix, on_y.matrix, atol=slack):
        text = "the noise is scaled or placed differently"
        return [ReplayFinding("effect of the noise depends on the data", text, places[0])]
    shifts = solve_shift(on_x, shift)
    if shifts is None:
        text = "a combination of numbers of the output has no noise"
        return [ReplayFinding("the same variate is used twice", text, places[0])]
    if np.linalg.matrix_rank(on_x.matrix) < on_x.matrix.shape[1]:
        # The cheapest shift is an upper bound on the loss only.
        return "several shifts of the noise give what they differ in"
    scales = np.maximum(np.array(on_x.scales), 1e-300)
    ratios = np.abs(shifts) / scales
    level = compose_level(guarantee, list(zip(on_x.families, ratios, strict=True)))
    if level is None:
        return "what the shifts of its noise lose together is not computed" if ratios.any() else []
    if level > guarantee.level * (1 + _ROUNDING + 10 * (slack if slack > 1e-6 else 0.0)):
        largest = int(np.argmax(ratios))
        text = f"{ratios[largest]:.4g} times the scale of its noise; {_in_all(guarantee, level)}"
        return [ReplayFinding(SHIFT, text, places[largest])]
    return []


def _in_all(guarantee: Guarantee, level: float) -> str:
    size = f"{guarantee.symbol} = {level:.4g}" if np.isfinite(level) else f"no finite {guarantee.symbol}"
    return f"in all {size}, claimed {guarantee.level:.4g}"


# ------------------------------------------------------------------------------- composition


@dataclass(frozen=True)
class _DrawLoss:
    """Loss of one draw: families of its noise with shifts in scales, or a declared epsilon.

    ``beyond`` is the shift over the declared sensitivity.
    """

    number: int
    draw: DrawFacts
    parts: Sequence[tuple[str, float]]
    beyond: float = 0.0

    @property
    def size(self) -> float:
        return sum(ratio for _, ratio in self.parts)


def _compose_draws(
    guarantee: Guarantee, x: ReplayRun, z: ReplayRun, run: Callable[[Bumps], Array]
) -> list[ReplayFinding]:
    """What the draws lose together by what noise is added to, if that is beyond the claim.

    They lose it if they can be read off the output: they stand in it, or the output changes with each in a way of its
    own. Otherwise it is an upper bound.
    """
    losses = []
    for tag, in_x, in_z in _pair_draws(x.draws, z.draws):
        if tag == "equal":
            places = range(in_x.start, in_x.stop)
            triples = zip(places, x.draws[in_x], z.draws[in_z], strict=True)
            losses += [loss for k, one, two in triples if (loss := _loss_of(k, one, two)) is not None]
    level = _level_of(guarantee, losses)
    if level is None or level <= guarantee.level * (1 + _SLACK):
        return []
    losses.sort(key=lambda loss: -loss.size)
    beyond = [loss for loss in losses if loss.beyond > 1 + _SLACK and loss.draw.parameters["sensitivity"] != _PLAIN]
    if beyond:
        worst = max(beyond, key=lambda loss: loss.beyond)
        what = f"{worst.beyond:.4g} times the sensitivity that {worst.draw.primitive} is told"
        if not np.isfinite(worst.beyond):
            what = f"noise for a sensitivity of 0 is asked of {worst.draw.primitive}"
        text = f"{what}; {_in_all(guarantee, level)}"
        return [ReplayFinding(BEYOND, text, worst.draw.place)]
    shown = set(numbers_in(x.output).tolist())
    released = [loss for loss in losses if loss.draw.values and shown.issuperset(loss.draw.values)]
    part = _level_of(guarantee, released)
    if part is not None and part > guarantee.level * (1 + _SLACK):
        return [_composition_finding(guarantee, released, part, lead=False)]
    readable = are_readable(run, x.draws, numbers_in(x.output), [loss.number for loss in losses])
    return [_composition_finding(guarantee, losses, level, lead=not readable)]


def _composition_finding(guarantee: Guarantee, losses: Sequence[_DrawLoss], level: float, lead: bool) -> ReplayFinding:
    lines = list(dict.fromkeys(loss.draw.place for loss in losses))
    others = f" and {len(lines) - _MOST_LINES} lines more" if len(lines) > _MOST_LINES else ""
    text = f"{len(losses)} draws of {', '.join(lines[:_MOST_LINES])}{others}: {_in_all(guarantee, level)}"
    text += ", if all of them can be read off the output" if lead else ""
    return ReplayFinding(COMPOSITION, text, lines[0], lead=lead)


def _level_of(guarantee: Guarantee, losses: Sequence[_DrawLoss]) -> float | None:
    return compose_level(guarantee, [part for loss in losses for part in loss.parts])


def _loss_of(number: int, x: DrawFacts, z: DrawFacts) -> _DrawLoss | None:
    """Loss of a draw, of which both runs have one; None if it has none, or none that is known."""
    if not x.digest or x.digest == z.digest or z.fresh:
        return None
    numbers = x.given is not None and z.given is not None and len(x.given) == len(z.given)
    moved = np.abs(np.subtract(x.given or [], z.given or [])) if numbers else np.zeros(0)
    epsilon, sensitivity = x.parameters.get("epsilon", 0.0), x.parameters.get("sensitivity")
    beyond = 0.0
    if moved.size == 1 and sensitivity is not None and z.parameters.get("sensitivity") == sensitivity:
        beyond = float(moved[0]) / sensitivity if sensitivity else np.inf if moved[0] else 0.0
    if numbers and x.family and x.family == z.family and list(x.scales) == list(z.scales):
        size = len(x.scales)
        ratios = np.broadcast_to(moved, size) / np.asarray(x.scales) if moved.size in (1, size) else np.zeros(0)
        parts = [(x.noise, float(ratio)) for ratio in ratios if ratio > 0]
        return _DrawLoss(number, x, parts, beyond) if parts else None
    if epsilon <= 0:
        return None
    times = beyond if moved.size == 1 and beyond else 1.0
    return _DrawLoss(number, x, [("", epsilon * times)], beyond)
