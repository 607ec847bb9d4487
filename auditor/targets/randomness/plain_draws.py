"""Runs with recorded draws, and what is told of each draw: numbers and texts only, as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from .recorder import DrawRecorder, Kept, RecordedDraw, Tape, digest_of
from .signals import Uncontrolled as Uncontrolled

#: Numbers of a value, or of what noise was added to, that are told; arbitrary, beyond what a comparison looks at.
MOST_NUMBERS = 1000
#: Noise of plain draws: family and parameter that holds its scale, by the last part of the primitive's name.
_NOISES = {
    "laplace": ("laplace", "scale"),
    "normal": ("gaussian", "scale"),
    "gauss": ("gaussian", "sigma"),
    "normalvariate": ("gaussian", "sigma"),
    "standard_normal": ("gaussian", ""),
    "randn": ("gaussian", ""),
    "randn_like": ("gaussian", ""),
}
_TORCH_NOISES = {"normal": ("gaussian", "std"), "normal_": ("gaussian", "std")}
#: Parameters of plain draws that noise is added to.
_LOCATIONS = ("loc", "mu", "mean")


class Replays:
    """Runs of functions of this process with recorded draws.

    `close` puts the sources of randomness back.

    They stay replaced between runs.
    """

    def __init__(self) -> None:
        self.recorder = DrawRecorder()
        self._stack = ExitStack()
        self._open = False
        self._seed: int | None = None
        self._kept: Kept = {}

    def run(
        self,
        call: Callable[[np.random.Generator], Any],
        seed: int,
        bumps: Mapping[int, Mapping[int, float]] | None = None,
        forced: Mapping[int, Sequence[float]] | None = None,
    ) -> tuple[Any, list[RecordedDraw]]:
        """Call a function.

        Parameters
        ----------
        call : callable
            Takes the stand-in for a generator of numpy.
        seed : int
            Seed of the variates.
        bumps, forced : mapping, optional
            See `Tape`.

        Returns
        -------
        tuple
            What it returned, and the draws.

        Raises
        ------
        Uncontrolled
            If it cannot be replayed.
        """
        if not self._open:
            self._stack.enter_context(self.recorder.replacing())
            self._open = True
        if seed != self._seed:
            self._seed, self._kept = seed, {}
        tape = Tape(seed, bumps or {}, forced or {}, self._kept)
        before = self.recorder.switch(tape)
        try:
            return call(self.recorder.rng), tape.draws
        finally:
            self.recorder.switch(before)

    def close(self) -> None:
        """Put the sources of randomness back."""
        self._stack.close()
        self._open = False


def plain_draw(draw: RecordedDraw) -> dict[str, Any]:
    """Tell of a draw what a comparison looks at.

    Parameters
    ----------
    draw : RecordedDraw
        The draw.

    Returns
    -------
    dict
        Members as `auditor.targets.replays.DrawFacts` has them.
    """
    values = numbers_of(draw.value)
    family, scale, given, whole = _noise_of(draw)
    size = 0 if values is None else len(values)
    return {
        "primitive": draw.primitive,
        "place": draw.place,
        "parameters": {
            name: float(value)
            for name, value in draw.parameters.items()
            if isinstance(value, int | float | np.number) and not isinstance(value, bool)
        },
        "shape": [int(k) for k in _shape_of(draw.value)],
        "values": values,
        "single": str(getattr(draw.value, "dtype", "")).rpartition(".")[2] in ("float32", "float16", "bfloat16"),
        "family": family if values is not None else "",
        "scales": [] if scale is None else np.broadcast_to(scale, size).tolist() if np.ndim(scale) == 0 else scale,
        "given": numbers_of(given),
        "digest": "" if given is None else digest_of(given),
        "whole": whole,
        "unit": draw.noise is not None,
        "fresh": draw.fresh,
    }


def _noise_of(draw: RecordedDraw) -> tuple[str, Any, Any, bool]:
    """Family and scale of a draw's noise, what it was added to, and whether it is of integers."""
    if draw.noise is not None:
        noise = draw.noise
        return noise.family, noise.scale if noise.family else None, noise.given, noise.whole
    library, _, name = draw.primitive.rpartition(".")
    family, parameter = (_TORCH_NOISES if library.startswith("torch") else {}).get(name) or _NOISES.get(name, ("", ""))
    if not family:
        return "", None, None, False
    scale: Any = numbers_of(draw.parameters.get(parameter)) if parameter else [1.0]
    values = numbers_of(draw.value)
    if scale is None or values is None:
        return "", None, None, False
    if len(scale) != len(values):
        shape = np.shape(_as_array(draw.value))
        scale = np.broadcast_to(np.reshape(scale, _as_array(draw.parameters.get(parameter, 1.0)).shape), shape)
        scale = np.ravel(scale).tolist()
    located = next((draw.parameters[key] for key in _LOCATIONS if draw.parameters.get(key) is not None), None)
    return family, scale, located, False


def _shape_of(value: Any) -> tuple[int, ...]:
    return (len(value),) if type(value) is list else tuple(getattr(value, "shape", ()))


def _as_array(value: Any) -> Any:
    """A number, a list, an array or a tensor as an array of numpy."""
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        value = value.detach().cpu()
        value = value.numpy() if str(value.dtype) != "torch.bfloat16" else value.float().numpy()
    return np.asarray(value)


def numbers_of(value: Any) -> list[float] | None:
    """Numbers of a value in C order.

    None if it is something else, or has too many.

    Parameters
    ----------
    value : object
        Number, list of numbers, array or tensor.
    """
    if type(value) is float or type(value) is int:
        return [float(value)] if abs(value) < 1e300 or not math.isfinite(value) else None
    if value is None or isinstance(value, str | bytes | bool | dict | set):
        return None
    try:
        array = _as_array(value)
    except (ValueError, TypeError, RuntimeError):
        return None
    if array.dtype.kind not in "iuf" or array.size > MOST_NUMBERS:
        return None
    return [float(number) for number in array.ravel()]
