"""The manifest of a run: what its results depend on."""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

from auditor.audits.summary import describe
from auditor.claims import Claim
from auditor.runs.run import Run, settings_of, split_alpha
from auditor.targets import source_hash

#: Libraries whose versions bear on the numbers.
LIBRARIES = ("numpy", "scipy", "pandas", "scikit-learn", "statsmodels")


def without_addresses(text: str) -> str:
    """Text that shows objects, without their addresses in memory.

    They differ from process to process.
    """
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def manifest(run: Run, selected: Sequence[Claim]) -> dict[str, Any]:
    """Manifest of a run: all that its results depend on.

    Versions, seed, options, and hashes of the specification and of the targets.
    """
    alpha = split_alpha(selected, run.alpha)
    specification = "\n".join(
        f"{c.id}|{c.draft.guarantee!r}|{c.draft.expected}|{describe(c.draft.mechanism)}|"
        f"{[p.name for p in c.draft.pairs] or [name for name, _ in c.draft.datasets]}|"
        f"{replace(settings_of(c, run, alpha[c.id]), seconds=None, chunks=None)}"
        for c in selected
    )
    sources = sorted(
        {source_hash(c.draft.subject if c.draft.mechanism is None else c.draft.mechanism) for c in selected}
    )
    return {
        "dpaudit": metadata.version("dpaudit"),
        "python": platform.python_version(),
        "libraries": {name: metadata.version(name) for name in LIBRARIES},
        "paths": list(run.paths),
        "selection": run.expression,
        "level": run.level,
        "seed": run.seed,
        "alpha": run.alpha,
        "alpha_split": "equal shares over the claims expected to be consistent; other claims use the same share",
        "draws": run.draws,
        "seconds": run.seconds,
        "detect": run.detect,
        "method": run.method,
        **({"ledger": str(run.ledger)} if run.ledger is not None else {}),
        **({"ledger_key": run.ledger_key} if run.ledger_key else {}),
        "specification_hash": hashlib.sha256(without_addresses(specification).encode()).hexdigest()[:16],
        "source_hash": hashlib.sha256("".join(sources).encode()).hexdigest()[:16],
        "claims_selected": len(selected),
    }
