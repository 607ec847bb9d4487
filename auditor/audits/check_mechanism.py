"""Conventions of a mechanism: what an audit relies on before it draws for a verdict."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from auditor.audits.conformity import check_conformity
from auditor.errors import DpauditError, SpecificationError, require_library
from auditor.results import Verdict
from auditor.targets import Mechanism
from auditor.targets.outputs import as_batch, hash_outputs, show_output

#: Draws of the calls that are compared, and generators that must not all give what the first one gave. A pattern of
#: this many draws that are not all equal comes again with probability at most 0.6 %, of four generators at most 2e-9.
_DRAWS, _OTHERS = 64, 4


def check_mechanism(mechanism: Mechanism, *datasets: Any, seeded: bool = True, draws: int = 20_000) -> None:
    """Check that a mechanism keeps the conventions of a target.

    Privacy is not looked at.

    On each dataset: it gives as many outputs as it is asked for, arrays of one type and shape whatever the number; it
    leaves the dataset and the global generators as they were; if it is seeded, equal generators give equal outputs,
    whatever was drawn in between and by a copy of it too (a worker process gets a copy), and other generators give
    other outputs unless they are constant; its stated distribution, if it has a method ``law``, is the distribution of
    its draws.

    Parameters
    ----------
    mechanism : callable
        ``(data, n, rng) -> outputs``, trial axis first.
    *datasets : any
        One or several datasets, best a pair of neighbours.
    seeded : bool
        Whether all randomness comes from ``rng``.
    draws : int
        Draws for comparing with the stated distribution, of all datasets together; 0 leaves that out.

    Raises
    ------
    SpecificationError
        With one line for each convention that is broken, and where there is no dataset. A mechanism that keeps them
        fails with probability at most 1e-6 for its stated distribution, and 2e-9 a dataset otherwise.
    """
    for library in ("cloudpickle", "joblib"):
        require_library(library, "check_mechanism")
    if not callable(mechanism):
        raise SpecificationError(f"mechanism must be callable as (data, n, rng), got {mechanism!r}")
    if not datasets:
        raise SpecificationError("expected at least one dataset, got none")
    broken = [f"on {show_output(data)}: {line}" for data in datasets for line in _broken_on(mechanism, data, seeded)]
    if not broken and draws and hasattr(mechanism, "law"):
        result = check_conformity(mechanism, *datasets, alpha=1e-6, draws=draws)
        if result.verdict in (Verdict.DEVIATION, Verdict.ERROR):
            broken.append(f"its draws against its stated distribution: {result.message}")
    if broken:
        raise SpecificationError("\n".join([f"{type(mechanism).__name__} breaks conventions:", *broken]))


def _broken_on(mechanism: Mechanism, data: Any, seeded: bool) -> Iterator[str]:
    """Conventions that are broken on one dataset, a line each."""
    import cloudpickle
    import joblib

    def draw(target: Mechanism, n: int = _DRAWS, seed: int = 1) -> Any:
        return target(data, n, np.random.default_rng(seed))

    before, state = joblib.hash(data), _global_state()
    try:
        outputs, single = draw(mechanism), draw(mechanism, 1)
        first, _ = as_batch(outputs, _DRAWS), as_batch(single, 1)
    except Exception as error:  # noqa: BLE001 - targets raise what they like
        yield f"it raises {type(error).__name__}: {error}" if not isinstance(error, DpauditError) else str(error)
        return
    if joblib.hash(data) != before:
        yield "it changes the dataset"
    if seeded and _global_state() != state:
        yield "it uses or sets a global generator of numpy or random, not only the rng that it is given"
    if _form(outputs) != _form(single):
        yield f"outputs are {_form(outputs)} in a call of {_DRAWS} draws and {_form(single)} in a call of one"
    if not seeded:
        return

    def repeats(target: Mechanism, seed: int = 1) -> bool:
        return np.array_equal(hash_outputs(as_batch(draw(target, seed=seed), _DRAWS)), hash_outputs(first))

    np.random.rand()  # noqa: NPY002 - moves the global generators, which a seeded target does not use
    random.random()
    if not repeats(mechanism):
        yield "equal generators give other outputs in a later call; a target with randomness of its own is seeded=False"
        return
    try:
        copy = cloudpickle.loads(cloudpickle.dumps(mechanism))
    except Exception as error:  # noqa: BLE001 - objects raise what they like when they are pickled
        yield f"it cannot be sent to a worker process: {type(error).__name__}: {error}"
    else:
        if not repeats(copy):
            yield "a copy, as a worker process gets it, gives other outputs from an equal generator"
    varies = len(np.unique(hash_outputs(first))) > 1
    if varies and all(repeats(mechanism, seed) for seed in range(2, 2 + _OTHERS)):
        yield "other generators give the same outputs: the randomness is not that of rng"


def _form(outputs: Any) -> str:
    """Type and shape of one output; of lists the type only, as their outputs may be of several lengths."""
    if isinstance(outputs, np.ndarray):
        return f"{outputs.dtype} of shape {outputs.shape[1:]}"
    return type(outputs).__name__


def _global_state() -> str:
    """Hash of the global generators of numpy and of Python."""
    import joblib

    return str(joblib.hash((np.random.get_state(legacy=False), random.getstate())))  # noqa: NPY002 - only read
