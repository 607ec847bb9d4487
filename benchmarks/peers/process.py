"""jax-privacy as a contender: an environment of its own, and one process that is asked over lines of JSON."""

from __future__ import annotations

import base64
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.errors import TargetError
from auditor.targets.environments import find_environment, list_installed, make_variables
from auditor.targets.subprocess_pipe import GRACE, Running

#: The peer, and what it computes bounds with; pinned, so that figures can be made again.
REQUIREMENTS = ("jax-privacy==2.0.0", "dp-accounting==0.6.0", "jax==0.10.2", "numpy==2.4.6", "scipy==1.17.1")
#: Seconds that one request may take, the first of which imports jax; arbitrary, a hundred times what was seen.
LIMIT = 120.0
_HELPER = Path(__file__).with_name("helper.py")


class PeerAnswer(NamedTuple):
    """A lower bound on epsilon, and the seconds that the library alone took."""

    epsilon: float
    seconds: float


class PeerCommand(NamedTuple):
    """How the peer's process is started.

    Parameters
    ----------
    words : tuple of str
        Program and arguments.
    variables : tuple of (str, str)
        Its whole environment.
    """

    words: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]


def command() -> tuple[PeerCommand, dict[str, str]]:
    """Build the peer's environment where there is none; how it is started, and the versions in it.

    Raises
    ------
    SpecificationError
        If the environment cannot be built; pip's last lines are quoted.
    """
    folder = find_environment(REQUIREMENTS)
    # One thread, as dpaudit has; -I as for every helper: nothing of this interpreter's packages is seen.
    variables = {**make_variables(folder), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    words = (str(folder / "bin" / "python"), "-I", str(_HELPER))
    return PeerCommand(words, tuple(sorted(variables.items()))), list_installed(folder)


class PeerProcess:
    """One process of the peer's.

    Parameters
    ----------
    words : sequence of str
        Program and arguments.
    variables : mapping, optional
        Its whole environment; default the present one.
    limit : float
        Seconds that a request may take.
    """

    def __init__(self, words: Sequence[str], variables: Mapping[str, str] | None = None, limit: float = LIMIT) -> None:
        self._running = Running(tuple(words), None, None if variables is None else dict(variables))
        self._numbers, self._limit = itertools.count(1), limit

    def ask(
        self,
        bound: str,
        inside: NDArray[np.float64],
        outside: NDArray[np.float64],
        *,
        alpha: float,
        delta: float,
        seed: int,
    ) -> PeerAnswer:
        """Ask for a lower bound on epsilon.

        Parameters
        ----------
        bound : {"bonferroni", "split", "gdp"}
            See `benchmarks.peers.helper`.
        inside, outside : ndarray of shape (n_draws,)
            Scores; the larger ones speak for ``inside``.
        alpha : float
            Level of the bound.
        delta : float
            The delta that epsilon is for.
        seed : int
            Of the split.

        Raises
        ------
        TargetError
            If the process dies, is past its limit, or answers what is no such bound; what it said is shown.
        """
        number = next(self._numbers)
        request = {"id": number, "bound": bound, "in": _text(inside), "out": _text(outside)}
        request |= {"alpha": alpha, "delta": delta, "seed": seed}
        line = self._running.exchange(json.dumps(request).encode() + b"\n", self._limit)
        return _read(line, number)

    def close(self) -> None:
        """End the process."""
        self._running.end(GRACE)


def _text(scores: NDArray[np.float64]) -> str:
    return base64.b64encode(np.ascontiguousarray(scores, dtype="<f8").tobytes()).decode()


def _read(line: bytes, number: int) -> PeerAnswer:
    said = line[:300].decode(errors="replace")  # 300: arbitrary, an answer has about 60
    try:
        found: Any = json.loads(line)
    except ValueError:
        raise TargetError(f"the peer answered what is not JSON: {said!r}") from None
    if not isinstance(found, dict) or found.get("id") != number:
        raise TargetError(f"the peer did not answer request {number}: {said!r}")
    if "error" in found:
        raise TargetError(f"the peer failed: {found['error']}")
    return PeerAnswer(_number(found, "epsilon", said), _number(found, "seconds", said))


def _number(found: dict[str, Any], name: str, said: str) -> float:
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise TargetError(f"the peer's {name} must be a finite number of at least 0: {said!r}")
    return float(value)
