"""A recorder of the steps of one training run, for an audit that sees all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from auditor.audits.given_numbers import read_numbers
from auditor.errors import SpecificationError, check_positive, read_path
from auditor.targets.sampler import check_seed, make_generator

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Coordinates of the noise that are kept of every step: a draw that is used twice in 256 coordinates is told from two
#: draws at 16 standard deviations. All coordinates count in the sums of squares.
KEPT = 256
#: No answer, where a whole number stands for one.
UNKNOWN = -1
#: Largest coordinate of a vector, and smallest clip norm and noise multiplier: sums of squares are floats.
_MOST, _FINEST = 1e100, 1e-20
#: Members of a table that are not of each step.
_OF_RUN = ("drawn", "layers", "positions", "examples", "coin")
#: Version of the file of a record.
_FORMAT = 1


@dataclass(frozen=True)
class StepTable:
    """Columns of what is kept of each step of a run.

    Noise is in units of the claimed standard deviation.

    Parameters
    ----------
    clip, multiplier, rate : ndarray of shape (n_steps,)
        Claimed clip norm, noise over clip norm, and sampling rate.
    canary_norm : ndarray of shape (n_steps,)
        Norm of what the canary adds.
    included : ndarray of int of shape (n_steps,)
        1 where the canary was in, 0 where not, -1 where that is not known.
    score : ndarray of shape (n_steps,)
        Released sum, without what others added if that is known, along the canary's direction. NaN without one.
    squares : ndarray of shape (n_steps, n_layers)
        Sum of squares of the noise of each layer; NaN where the sum before noise is not known.
    cosines : ndarray of shape (n_steps, n_layers)
        Cosine between the noise of a step and of the one before.
    along_canary, along_sum : ndarray of shape (n_steps,)
        Noise along the canary's direction, and along the sum before noise.
    kept : ndarray of shape (n_steps, n_kept)
        Noise of some coordinates, the same ones at all steps.
    batch : ndarray of int of shape (n_steps,)
        Drawn examples beside the canary; -1 where not known.
    repeated : ndarray of int of shape (n_steps,)
        Those of them that were in the batch before too; -1 where not known.
    largest, summed, total : ndarray of shape (n_steps,)
        Largest norm of a clipped gradient, sum of these norms, and norm of the sum before noise, in clip norms; NaN
        where not known.
    surplus : ndarray of shape (n_steps,)
        Distance of the sum before noise from that of the others and the canary, in clip norms; NaN where not known.
    drawn : ndarray of int of shape (n_examples,)
        How often each example was drawn; empty where that is not known.
    layers : ndarray of int of shape (n_layers,)
        Coordinates of each layer.
    positions : ndarray of int of shape (n_kept,)
        Coordinates that are kept.
    examples, coin : float
        Number of examples beside the canary, and probability that the canary is in a step; NaN where not given. A coin
        that is not given is the sampling rate of each step.
    """

    clip: Array
    multiplier: Array
    rate: Array
    canary_norm: Array
    included: IntArray
    score: Array
    squares: Array
    cosines: Array
    along_canary: Array
    along_sum: Array
    kept: Array
    batch: IntArray
    repeated: IntArray
    largest: Array
    summed: Array
    total: Array
    surplus: Array
    drawn: IntArray
    layers: IntArray
    positions: IntArray
    examples: float
    coin: float

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.clip)

    @property
    def coins(self) -> Array:
        """Probability that the canary is in each step."""
        return self.rate if math.isnan(self.coin) else np.full(self.steps, self.coin)

    @property
    def has_noise(self) -> bool:
        """Whether the noise of every step is known."""
        return self.steps > 0 and bool(np.isfinite(self.squares).all())

    def layer_of_kept(self) -> IntArray:
        """Layer of each coordinate that is kept."""
        ends = np.cumsum(self.layers)
        found: IntArray = np.searchsorted(ends, self.positions, side="right").astype(np.int64)
        return found


@dataclass
class StepRecorder:
    """Record of a training run, made by its training loop.

    Little is kept of a step: sums of squares, projections, and the noise of 256 coordinates.

    Parameters
    ----------
    clip : float
        Claimed bound of the norm of what one example adds.
    noise_multiplier : float
        Claimed standard deviation of the noise over ``clip``.
    sampling_rate : float
        Claimed probability with which each example is in the batch of a step, independently; 1 for full batches.
    examples : int, optional
        Number of examples, the canary not counted. Needed for tests of the sampling.
    coin : float, optional
        Probability, given the past, that the canary is in a step. By default the sampling rate of the step; 0.5 where
        the auditor tosses a fair coin at each step, which shows most.
    seed : int
        Seed of the coordinates that are kept. Training must not use it.

    Examples
    --------
    >>> recorder = StepRecorder(clip=1.0, noise_multiplier=2.0)
    >>> recorder.add([1.5, 0.2], canary=[1.0, 0.0], included=True, others=[0.0, 0.0])
    >>> len(recorder)
    1
    """

    clip: float
    noise_multiplier: float
    sampling_rate: float = 1.0
    examples: int | None = None
    coin: float | None = None
    seed: int = 0
    _rows: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False)
    _layers: tuple[int, ...] = field(default=(), init=False, repr=False)
    _positions: IntArray = field(default_factory=lambda: np.zeros(0, np.int64), init=False, repr=False)
    _before: Array | None = field(default=None, init=False, repr=False)
    _batch_before: NDArray[np.bool_] | None = field(default=None, init=False, repr=False)
    _drawn: IntArray = field(default_factory=lambda: np.zeros(0, np.int64), init=False, repr=False)

    def __post_init__(self) -> None:
        _check_scale("clip", self.clip)
        _check_scale("noise_multiplier", self.noise_multiplier)
        check_seed(self.seed)
        _check_probability("sampling_rate", self.sampling_rate)
        if self.coin is not None:
            _check_probability("coin", self.coin)
        if self.examples is not None and not (_is_whole(self.examples) and self.examples >= 1):
            raise SpecificationError(f"examples must be a positive integer, got {self.examples!r}")

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self,
        released: ArrayLike | Sequence[ArrayLike],
        canary: ArrayLike | Sequence[ArrayLike],
        *,
        included: bool | None = None,
        others: ArrayLike | Sequence[ArrayLike] | None = None,
        signal: ArrayLike | Sequence[ArrayLike] | None = None,
        norms: ArrayLike | None = None,
        batch: ArrayLike | None = None,
        clip: float | None = None,
        noise_multiplier: float | None = None,
        sampling_rate: float | None = None,
    ) -> None:
        """Add one step.

        Vectors are the sums over a batch, as they are before they are divided by its size; each is a vector, or a list
        of arrays, one for each layer.

        Parameters
        ----------
        released : array_like of shape (d,)
            Sum of clipped gradients with noise. Where only a mean is at hand, that times its claimed divisor.
        canary : array_like of shape (d,)
            What the canary adds to the sum if it is in: its clipped gradient at the current weights.
        included : bool, optional
            Whether the canary was in.
        others : array_like of shape (d,), optional
            Sum over the batch without the canary, before noise.
        signal : array_like of shape (d,), optional
            Sum over the batch before noise. By default ``others``, and the canary where it was in.
        norms : array_like of shape (batch,), optional
            Norms of the gradients after clipping, as they are summed, without the canary.
        batch : int or array_like of int, optional
            Number of the drawn examples without the canary; or which they are, as integers from 0 to examples - 1.
        clip, noise_multiplier, sampling_rate : float, optional
            Claims of this step, if others than those of the run.

        Raises
        ------
        SpecificationError
            If a value is not what it must be; nothing is added then.
        """
        claimed = self._read_claims(clip, noise_multiplier, sampling_rate)
        vector, layers = _flatten_layers("released", released)
        if self._rows and layers != self._layers:
            if sum(layers) != sum(self._layers) or len(layers) > 1:
                raise SpecificationError(f"released must have layers of {self._layers} coordinates, got {layers}")
            layers = self._layers
        direction = _same_length("canary", canary, vector)
        beside = None if others is None else _same_length("others", others, vector)
        before = None if signal is None else _same_length("signal", signal, vector)
        if included is not None and not isinstance(included, bool | np.bool_):
            raise SpecificationError(f"included must be True, False or None, got {included!r}")
        surplus = math.nan
        if beside is not None and included is not None:
            made = beside + direction if included else beside
            before = made if before is None else before
            surplus = float(np.linalg.norm(before - made)) / claimed["clip"]
        largest, summed = (norm / claimed["clip"] for norm in _read_norms("norms", norms))
        size, drawn = self._read_batch(batch)
        if not self._rows:
            self._layers = layers
            self._positions = choose_positions(layers, self.seed)
        scale = claimed["clip"] * claimed["multiplier"]
        size_of_canary = float(np.linalg.norm(direction))
        unit = direction / size_of_canary if size_of_canary > 0 else None
        noise = None if before is None else (vector - before) / scale
        rest = vector if beside is None else vector - beside
        length = math.nan if before is None else float(np.linalg.norm(before))
        along_sum = (
            float(noise @ before) / length if noise is not None and before is not None and length > 0 else math.nan
        )
        self._rows.append(
            claimed
            | {
                "canary_norm": size_of_canary,
                "included": UNKNOWN if included is None else int(included),
                "score": math.nan if unit is None else float(rest @ unit) / scale,
                "along_canary": math.nan if unit is None or noise is None else float(noise @ unit),
                "along_sum": along_sum,
                "batch": size,
                "repeated": self._count_repeated(drawn),
                "largest": largest,
                "summed": summed,
                "total": length / claimed["clip"],
                "surplus": surplus,
                "squares": self._sum_squares(noise),
                "cosines": self._compare_with_last(noise),
                "kept": np.full(len(self._positions), np.nan) if noise is None else noise[self._positions],
            }
        )
        self._before = noise
        if drawn is not None:
            self._drawn = self._drawn + drawn if len(self._drawn) else drawn.astype(np.int64)
        self._batch_before = drawn

    def table(self) -> StepTable:
        """All steps so far, as arrays."""
        known = self._rows and all(row["repeated"] != UNKNOWN for row in self._rows[1:]) and len(self._drawn)
        columns: dict[str, Any] = {}
        for part in fields(StepTable):
            if part.name in _OF_RUN:
                continue
            kind = np.int64 if part.type == "IntArray" else np.float64
            columns[part.name] = np.array([row[part.name] for row in self._rows], dtype=kind)
        return StepTable(
            **columns,
            drawn=self._drawn if known else np.zeros(0, np.int64),
            layers=np.array(self._layers, dtype=np.int64),
            positions=self._positions,
            examples=math.nan if self.examples is None else float(self.examples),
            coin=math.nan if self.coin is None else float(self.coin),
        )

    def save(self, path: str | Path) -> None:
        """Write the record to a .npz file, for `read_steps`.

        It holds projections and noise, no example and no gradient. Folders that are missing are made; a file that is
        there is replaced once all is written.

        Raises
        ------
        SpecificationError
            If it cannot be written.
        """
        table, path = self.table(), read_path("path", path)
        partial = path.with_name(path.name + ".part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                np.savez_compressed(
                    file, format=_FORMAT, **{part.name: getattr(table, part.name) for part in fields(StepTable)}
                )
            partial.replace(path)
        except OSError as error:
            raise SpecificationError(f"cannot write to {str(path)!r}: {error}") from error

    def _read_claims(self, clip: float | None, multiplier: float | None, rate: float | None) -> dict[str, Any]:
        found = {
            "clip": _check_scale("clip", self.clip if clip is None else clip),
            "multiplier": _check_scale("noise_multiplier", self.noise_multiplier if multiplier is None else multiplier),
            "rate": self.sampling_rate if rate is None else rate,
        }
        _check_probability("sampling_rate", found["rate"])
        return found

    def _read_batch(self, batch: ArrayLike | None) -> tuple[int, NDArray[np.bool_] | None]:
        """Number of drawn examples, and which they are, if that is known."""
        if batch is None:
            return UNKNOWN, None
        if _is_whole(batch):
            size = int(np.asarray(batch))
            if size < 0 or (self.examples is not None and size > self.examples):
                raise SpecificationError(f"batch must be a number of examples, at most {self.examples}, got {batch!r}")
            return size, None
        if self.examples is None:
            raise SpecificationError("batch lists examples: say how many there are by StepRecorder(..., examples=...)")
        try:
            which = np.asarray(batch)
        except ValueError as error:
            raise SpecificationError(f"batch must hold integers, got {batch!r}: {error}") from None
        whole = which.size == 0 or np.issubdtype(which.dtype, np.integer)
        if which.ndim != 1 or not whole or (which.size and not 0 <= which.min() <= which.max() < self.examples):
            raise SpecificationError(f"batch must hold integers from 0 to {self.examples - 1}, got {batch!r}")
        drawn = np.zeros(self.examples, dtype=bool)
        drawn[which.astype(np.int64)] = True
        if int(drawn.sum()) < which.size:
            raise SpecificationError("batch must hold every example at most once")
        return which.size, drawn

    def _count_repeated(self, drawn: NDArray[np.bool_] | None) -> int:
        if drawn is None or self._batch_before is None:
            return UNKNOWN
        return int((drawn & self._batch_before).sum())

    def _sum_squares(self, noise: Array | None) -> Array:
        if noise is None:
            return np.full(len(self._layers), np.nan)
        found: Array = np.add.reduceat(noise * noise, _starts(self._layers))
        return found

    def _compare_with_last(self, noise: Array | None) -> Array:
        """Cosine of each layer's noise with that of the step before."""
        if noise is None or self._before is None:
            return np.full(len(self._layers), np.nan)
        starts = _starts(self._layers)
        product = np.add.reduceat(noise * self._before, starts)
        one, two = (np.add.reduceat(v * v, starts) for v in (noise, self._before))
        with np.errstate(divide="ignore", invalid="ignore"):
            cosine: Array = product / np.sqrt(one * two)
        return np.clip(cosine, -1.0, 1.0)


def read_steps(path: str | Path) -> StepTable:
    """Read the record of a run that `StepRecorder.save` wrote.

    Raises
    ------
    SpecificationError
        If the file is no such record.
    """
    try:
        with read_path("path", path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            if int(stored["format"]) != _FORMAT:
                raise SpecificationError(f"{str(path)!r} is a record of format {stored['format']}, expected {_FORMAT}")
            values = {part.name: _check_column(part, stored[part.name]) for part in fields(StepTable)}
        steps, layers, kept = (len(values[name]) for name in ("clip", "layers", "positions"))
        widths = {"squares": (layers,), "cosines": (layers,), "kept": (kept,)}
        for name in (part.name for part in fields(StepTable) if part.name not in _OF_RUN):
            if values[name].shape != (shape := (steps, *widths.get(name, ()))):
                raise ValueError(f"{name} has the shape {values[name].shape}, expected {shape}")
    except SpecificationError:
        raise
    except Exception as error:  # whatever the readers of a torn file raise
        raise SpecificationError(f"{str(path)!r} is no record of steps: {error}") from error
    return StepTable(**values)


def _check_column(part: Field[Any], value: Any) -> Any:
    """What a record holds, of the type that it must have."""
    if part.type == "float":
        return float(value)
    if value.ndim == 0 or value.dtype.kind != ("i" if part.type == "IntArray" else "f"):
        raise TypeError(f"{part.name} has the type {value.dtype} and the shape {value.shape}")
    return value


def choose_positions(layers: Sequence[int], seed: int) -> IntArray:
    """Choose the coordinates whose noise is kept.

    Half of them are the first ones of each layer: generators that are seeded anew for each layer give these the same
    noise. The others are random.

    Parameters
    ----------
    layers : sequence of int
        Coordinates of each layer.
    seed : int
        Seed of the random ones.

    Returns
    -------
    ndarray of int of shape (n_kept,)
        Sorted.
    """
    d = sum(layers)
    if d <= KEPT:
        return np.arange(d, dtype=np.int64)
    first = max(1, KEPT // 2 // len(layers))
    heads = np.concatenate(
        [np.arange(start, start + min(first, n)) for start, n in zip(_starts(layers), layers, strict=True)]
    )[: KEPT // 2]
    left = np.setdiff1d(np.arange(d), heads, assume_unique=True)
    drawn = make_generator(seed, "steps", "coordinates").choice(left, KEPT - len(heads), replace=False)
    return np.sort(np.concatenate([heads, drawn])).astype(np.int64)


def _starts(layers: Sequence[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(layers)[:-1]]).astype(np.int64)


def _flatten_layers(name: str, given: Any) -> tuple[Array, tuple[int, ...]]:
    """A vector, and the coordinates of each layer."""
    layered = isinstance(given, list | tuple) and any(isinstance(part, list) or np.ndim(part) > 0 for part in given)
    parts = given if layered else [given]
    what = f"{name} must be a vector of numbers, or a list of arrays"
    arrays = [read_numbers(what, part).ravel() for part in parts]
    if not all(len(part) for part in arrays):
        raise SpecificationError(f"{name} must have coordinates in every layer, got {[len(part) for part in arrays]}")
    vector = np.concatenate(arrays)
    wrong = np.flatnonzero(~(np.abs(vector) <= _MOST))
    if len(wrong):
        value = float(vector[wrong[0]])
        what = f"beyond {_MOST:g}" if math.isfinite(value) else "not finite"
        raise SpecificationError(f"{name}: coordinate {wrong[0]} is {value}, {what}")
    return vector, tuple(map(len, arrays))


def _same_length(name: str, given: Any, vector: Array) -> Array:
    found, _ = _flatten_layers(name, given)
    if len(found) != len(vector):
        raise SpecificationError(f"{name} must have {len(vector)} coordinates as released has, got {len(found)}")
    return found


def _read_norms(name: str, norms: ArrayLike | None) -> tuple[float, float]:
    """Largest norm, and sum of the norms."""
    if norms is None:
        return math.nan, math.nan
    found = read_numbers(f"{name} must be numbers", norms)
    if found.size and not (np.isfinite(found).all() and found.min() >= 0):
        raise SpecificationError(f"{name} must be finite numbers of at least 0, got {norms!r}")
    return (float(found.max()), float(found.sum())) if found.size else (0.0, 0.0)


def _check_scale(name: str, value: Any) -> float:
    """Raise unless squares of numbers in these units are floats."""
    found = check_positive(name, value)
    if not _FINEST <= found <= 1 / _FINEST:
        raise SpecificationError(f"{name} must be from {_FINEST:g} to {1 / _FINEST:g}, got {value!r}")
    return found


def _check_probability(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value <= 1:
        raise SpecificationError(f"{name} must be a number in (0, 1], got {value!r}")


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
