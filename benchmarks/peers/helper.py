"""The bounds of jax-privacy behind lines of JSON; runs by its path in an environment that holds nothing of dpaudit.

Request: {"id": 1, "bound": "bonferroni" | "split" | "gdp", "in": ..., "out": ..., "alpha": 0.05, "delta": 0.0, "seed":
0}, the scores being float64, little-endian, in base64. Answer: {"id": 1, "epsilon": 0.9, "seconds": 0.01}, the seconds
being those of the library alone, or {"id": 1, "error": "ValueError: ..."}.
"""

from __future__ import annotations

import base64
import importlib
import json
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray


def scores(text: str) -> NDArray[np.float64]:
    """Scores from their base64."""
    return np.frombuffer(base64.b64decode(text), dtype="<f8")


def epsilon(auditing: Any, request: dict[str, Any]) -> float:
    """The asked lower bound on epsilon, from the library's public methods with their defaults."""
    auditor = auditing.CanaryScoreAuditor(scores(request["in"]), scores(request["out"]))
    alpha, delta = float(request["alpha"]), float(request["delta"])
    match request["bound"]:
        case "bonferroni":
            found = auditor.epsilon_clopper_pearson(alpha, delta)
        case "split":
            strategy = auditing.Split(seed=int(request["seed"]))
            found = auditor.epsilon_clopper_pearson(alpha, delta, threshold_strategy=strategy)
        case "gdp":
            found = auditor.epsilon_from_gdp(alpha, delta)
        case other:
            raise ValueError(f"no such bound: {other!r}")
    return float(found)


def answer(auditing: Any, line: str) -> dict[str, Any]:
    """What is answered to one line."""
    request = json.loads(line)
    begun = time.process_time()
    try:
        found = epsilon(auditing, request)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side shows it
        return {"id": request["id"], "error": f"{type(error).__name__}: {error}"}
    return {"id": request["id"], "epsilon": found, "seconds": time.process_time() - begun}


def main() -> None:
    """Answer line by line until the input ends."""
    auditing = importlib.import_module("jax_privacy.auditing")
    for line in sys.stdin:
        print(json.dumps(answer(auditing, line)), flush=True)


if __name__ == "__main__":
    main()
