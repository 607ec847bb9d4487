"""Audits of training: canaries of one run, many runs, and every step of one run.

See docs/training.md. Names are imported when they are asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.audits.training.many_runs import audit_runs
    from auditor.audits.training.one_run import PlantedCanaries, audit_one_run, plant_canaries
    from auditor.audits.training.opacus_steps import record_opacus
    from auditor.audits.training.scores import audit_scores
    from auditor.audits.training.steps import StepRecorder, StepTable, read_steps
    from auditor.audits.training.white_box import audit_steps

#: The module of each name.
_HOMES = {
    "PlantedCanaries": "auditor.audits.training.one_run",
    "StepRecorder": "auditor.audits.training.steps",
    "StepTable": "auditor.audits.training.steps",
    "audit_one_run": "auditor.audits.training.one_run",
    "audit_runs": "auditor.audits.training.many_runs",
    "audit_scores": "auditor.audits.training.scores",
    "audit_steps": "auditor.audits.training.white_box",
    "plant_canaries": "auditor.audits.training.one_run",
    "read_steps": "auditor.audits.training.steps",
    "record_opacus": "auditor.audits.training.opacus_steps",
}

__all__ = [
    "PlantedCanaries",
    "StepRecorder",
    "StepTable",
    "audit_one_run",
    "audit_runs",
    "audit_scores",
    "audit_steps",
    "plant_canaries",
    "read_steps",
    "record_opacus",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
