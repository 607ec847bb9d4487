"""A line of Python that makes an audit of training again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from auditor.audits.counterexamples.replay_call import ReplayCall
from auditor.privacy.guarantees import Guarantee

#: Arguments that are functions, which have names; all others are data.
_FUNCTIONS = ("train", "score")


def write_training_call(
    function: str, arguments: Mapping[str, Any], claim: Guarantee, options: Mapping[str, Any]
) -> str:
    """Write the call of a function of `auditor.training`.

    Data, scores and records are named and not shown: results hold nothing of them, and they may be private.

    Parameters
    ----------
    function : str
        Its name.
    arguments : mapping of str to object
        Arguments before the claim: functions are written by their own names, data by that of the argument.
    claim : Guarantee
        The claim.
    options : mapping of str to object
        Keywords; None stands for their default, and is left out.
    """
    call, named, written = ReplayCall(["import auditor.training"]), [], []
    for name, value in arguments.items():
        if value is None:
            written.append("None")
        elif name in _FUNCTIONS:
            written.append(call.name_object(value, name))
        else:
            written.append(name)
            named.append(name)
    if type(claim).__module__.startswith("auditor."):
        written.append(f"auditor.{claim!r}")
    else:
        written.append(call.name_object(claim, "claim"))
    if named:
        call.notes.append(f"{', '.join(named)}: as audited")
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in options.items()}
    given = {name: value for name, value in plain.items() if value is not None}
    return call.write_line(f"training.{function}", written, given)
