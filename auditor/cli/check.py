"""Check of a target before an audit: it answers, how fast, whether it is seeded and its draws independent."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.context import watch_datasets
from auditor.audits.independence import FALSE_ALARM, check_independence
from auditor.audits.privacy_loop import FIRST, Settings
from auditor.audits.summary import format_duration
from auditor.datasets.files import read_data
from auditor.errors import TargetError, TargetRaised
from auditor.privacy.guarantees import PureDP
from auditor.runs.dry_run import Speed, audit_seconds, probe_speed
from auditor.runs.engine_time import DRAWS, measure_engine
from auditor.targets.environments import environment_of, list_installed
from auditor.targets.http import HttpTarget
from auditor.targets.outputs import Batch, Raised, hash_outputs
from auditor.targets.process import ProcessTarget
from auditor.targets.process_settings import keep_apart
from auditor.targets.protocol import FIRST_REQUEST, request_line
from auditor.targets.raises import show_error
from auditor.targets.sampler import Sampler, check_limit
from auditor.targets.signatures import explain_guess, takes_randomness
from auditor.targets.subprocess_pipe import CANNOT_SERVE
from auditor.targets.target_names import closing_target, is_remote, requirements_of, target_named
from auditor.targets.values import find_unreadable
from auditor.targets.wire_format import data_text

#: Draws of each of two starts that are compared, in turn until one tells. 32 tell for outputs of which none is much
#: more likely than others, also for coins; 512 for any of which one in a hundred is another than the usual one. More
#: would take long where a draw takes 20 milliseconds.
RESTARTS = (32, 512)
#: Round trips that are timed; arbitrary.
_ROUNDS = 11
#: Draws and seconds that a pilot of the audit may take, both arbitrary, and draws below which it shows nothing.
_PILOT_DRAWS, _PILOT_SECONDS, _PILOT = DRAWS, 2.0, 1_000
#: Pairs of a usual attack: a domain of three values and 20 rows make 79 of them.
_PAIRS = 100
#: Further draws before it is said that each draw raises; arbitrary.
_MORE = 64
#: Draws that are compared to tell whether outputs vary; arbitrary.
_LOOKED_AT = 1_000
#: Characters that are shown of what a target says of itself; arbitrary.
_SHOWN = 200


def inspect_target(
    text: str,
    data: Path | None,
    draws: int,
    one_draw: bool = False,
    limit: float = 60.0,
    *,
    given: Mapping[str, Any] | None = None,
    show_data: bool = False,
) -> tuple[list[str], bool]:
    """Inspect a target, and report.

    Whether it answers, its speed, seededness, independence, and the time of a budget.

    Of a process or a service also what it says of itself, the time of its first answer and of a round trip; of a
    process, whether it repeats its outputs after a restart.

    Parameters
    ----------
    text : str
        Name of the target, see `target_named`.
    data : Path or None
        File with the dataset, whose values are private: what the target says when it fails is then not shown. Without
        it, the dataset is one row, 0.
    draws : int
        Budget for the time estimate.
    one_draw, limit, given
        As for `target_named`.
    show_data : bool
        What the target says when it fails is shown, though the data are from a file.

    Returns
    -------
    list of str, bool
        Lines for the user, and whether the draws may be independent.

    Raises
    ------
    SpecificationError
        If the target or the data cannot be read.
    TargetError
        If the target does not answer.
    """
    check_limit(limit)
    rows = read_data(data) if data is not None else np.zeros(1)
    with closing_target(target_named(text, limit=limit, one_draw=one_draw, given=given)) as target, keep_apart():
        # Processes and services have a limit for each request, which leaves them in a known state.
        sampler = Sampler(target, 0, "check", limit=None if is_remote(target) else limit)
        try:
            with watch_datasets([rows]):
                begun = time.perf_counter()
                sampler.draw(rows, 1, "start")
                start = time.perf_counter() - begun
                lines, sound = _lines(sampler, rows, draws, data is not None and not show_data)
        except TargetError as error:
            hint = "" if is_remote(target) else explain_guess(target)
            raise _explain_error(error, data, show_data, is_remote(target), hint) from error
        if is_remote(target):
            lines += _of_remote(target, sampler, rows, start)
        if isinstance(target, ProcessTarget):
            folder = environment_of(target)
            if folder is not None:
                lines.append(_of_environment(folder, requirements_of(text)))
            repeats = repeats_after_restart(target, rows)
            lines.append(f"restarts      {_RESTARTED[repeats]}{_explain_restart(target, repeats)}")
            sound = sound and not repeats
        return lines, sound


_RESTARTED = {
    True: "NO: a restarted target repeats its outputs",
    False: "its outputs differ after a restart",
    None: "cannot be told: its outputs hardly vary",
}


def _explain_seeded(target: object, equal: bool) -> str:
    """Whether the same seed gives the same draws, and why not."""
    if not takes_randomness(target):
        own = "no: it takes neither a generator nor a seed"
        return f"{own}, and its outputs do not vary" if equal else f"{own}, so results differ from run to run"
    return "yes" if equal else "no: it has its own randomness, so results differ from run to run"


def _explain_restart(target: ProcessTarget, repeats: bool | None) -> str:
    """Why a seeded target differs after a restart: it is sent another seed then."""
    seeded = target.hello is not None and target.hello.seeded
    return ", as they should: each start is sent other seeds" if seeded and repeats is False else ""


def _lines(sampler: Sampler, rows: Any, draws: int, private: bool) -> tuple[list[str], bool]:
    """What can be said of any target."""
    first = sampler.draw(rows, 16, "shape")
    if sampler.refused is not None:
        sampler.draw(rows, _MORE, "raises")
    if sampler.refused is not None:  # each draw raised: an output in an audit, where others do not, and here a mistake
        raise sampler.refused
    begun = time.perf_counter()
    again = sampler.draw(rows, 16, "shape")
    short = time.perf_counter() - begun
    # Double the batch until it takes a tenth of a second, which the clock resolves well.
    n, took, many = 16, 0.0, again
    while took < 0.1 and n < 1 << 20:
        n *= 2
        begun = time.perf_counter()
        many = sampler.draw(rows, n, "speed", n)
        took = time.perf_counter() - begun
    independence = check_independence(sampler, rows)
    each = took / n
    shape = f"an array of shape {first.shape}, {first.dtype}" if isinstance(first, np.ndarray) else "a list of values"
    raised = [value for value in first if isinstance(value, Raised)] if isinstance(first, list) else []
    failed = ""
    if raised:
        name = show_error(raised[0].error) if private else raised[0].error
        failed = f", of which {len(raised)} raised {name}{raised[0].place}"
    unread = find_unreadable(first) if isinstance(first, list) else []
    texts = "objects" if private else ", ".join(unread)  # names of classes may be made of data
    width = int(np.prod(first.shape[1:])) if isinstance(first, np.ndarray) else 1
    speed, settings, claim = Speed((16, n), (short, took), width), Settings(draws=max(draws, 4 * FIRST)), PureDP(1.0)
    factor, engine = probe_speed(claim), None
    if each * _PILOT < _PILOT_SECONDS:  # else the draws are what takes time
        pilot = min(_PILOT_DRAWS, int(_PILOT_SECONDS / each), settings.draws)
        engine = measure_engine(sampler.target, rows, claim, pilot, sampler.limit)
    one, hundred = (format_duration(audit_seconds(speed, settings, pairs, factor, engine)) for pairs in (1, _PAIRS))
    seeded = _explain_seeded(sampler.target, _are_equal_batches(first, again))
    lines = [
        f"answers       {shape} for 16 draws{failed}",
        *_explain_constant(first, many),
        *([f"unreadable    {texts}: an audit reads only their texts"] if unread else []),
        f"speed         {format_duration(each)} a draw in batches of {n:,}",
        f"seeded        {seeded}",
        f"independent   {'no sign against it' if independence.passed else 'NO: ' + independence.finding}",
        f"{draws:,} draws take about {format_duration(each * draws)}, an audit with that many about {one} on one pair "
        f"of datasets and {hundred} on {_PAIRS}",
    ]
    return lines, independence.passed


def _explain_constant(first: Batch, many: Batch) -> Iterator[str]:
    """Say that outputs never vary, and what that means; nothing where they do."""
    seen = min(len(many), _LOOKED_AT)
    keys = np.concatenate([hash_outputs(first), hash_outputs(many[:seen])])
    if len(set(keys.tolist())) == 1:
        yield (
            f"varies        NO: {len(keys):,} draws on this dataset are all the same output. Is noise added, and is no "
            "seed fixed inside? If another dataset gives another output, an audit finds a violation; if all give this "
            "one, it finds nothing, and has seen no noise"
        )


def _of_remote(target: ProcessTarget | HttpTarget, sampler: Sampler, rows: Any, start: float) -> Iterator[str]:
    """What can be said of a process or a service; ``start`` is how long its first answer took, in seconds."""
    hello = target.hello
    trips = []
    for k in range(_ROUNDS):
        begun = time.perf_counter()
        sampler.draw(rows, 1, "trip", k)
        trips.append(time.perf_counter() - begun)
    yield f"first answer  after {format_duration(start)}" + (
        " with its start" if isinstance(target, ProcessTarget) else ""
    )
    yield f"round trip    {format_duration(float(np.median(trips)))} for a request of one draw"
    if hello is None:
        yield "says          nothing about itself: protocol 1, not seeded"
        return
    yield f"says          protocol {hello.protocol}, {'seeded' if hello.seeded else 'not seeded'}" + (
        ", interactive" if hello.interactive else ""
    )
    if hello.states:
        states = json.dumps(hello.states, default=repr, skipkeys=True)
        yield f"states        {states if len(states) <= _SHOWN else states[:_SHOWN] + '...'}"


def _of_environment(folder: Path, requirements: tuple[str, ...]) -> str:
    """Versions of the required packages, and how many others there are."""
    versions = list_installed(folder)
    asked = {"".join(itertools.takewhile(lambda c: c.isalnum() or c in "-_.", text)).lower() for text in requirements}
    named = [f"{name} {version}" for name, version in versions.items() if name.lower() in asked]
    said = ", ".join(named) or "no required package"
    return f"environment   {said}, {len(versions) - len(named)} others; kept in {folder}"


def _explain_error(error: TargetError, data: Path | None, shown: bool, remote: bool, hint: str) -> TargetError:
    """The error of a target that does not answer, with what may help."""
    said = (str(error) if data is None or shown else error.public) + (hint if isinstance(error, TargetRaised) else "")
    if CANNOT_SERVE in said:
        return TargetError(said)
    if data is None:
        said += " (on the dataset [0]; name another with --data)"
    else:
        said += f", on the dataset in {str(data)!r}"
        if not shown and error.public != str(error):
            said += " (its output is not shown, because the data are private: try other data, or --show-data)"
    if remote and not isinstance(error, TargetRaised):
        request = request_line(1, data_text(np.zeros(1)), FIRST_REQUEST, 7).decode().strip()
        said += (
            f"\nexpected was an answer to a request such as\n  {request}\nin the form\n  "
            '{"id": 1, "outputs": [...]} with as many outputs as "n" says, or\n  '
            '{"id": 1, "error": {"type": "ValueError", "message": "..."}}'
        )
    return type(error)(error.error, said) if isinstance(error, TargetRaised) else TargetError(said)


def repeats_after_restart(target: ProcessTarget, data: Any) -> bool | None:
    """Whether two fresh starts of a process draw the same.

    So does one that is seeded with a constant.

    The two get different seeds, if they use any that they are sent.

    Parameters
    ----------
    target : ProcessTarget
        The target, of which further processes are started.
    data : dataset
        What is drawn on.

    Returns
    -------
    bool or None
        True if they repeat each other, False if they do not; None if they agree in outputs that vary too little to
        tell, such as one that never varies. A target that repeats itself only in part is not found.

    Raises
    ------
    TargetError
        If the target does not answer.

    Notes
    -----
    Valid because: let a and b be the outputs of two starts, n each. If draws are independent and identically
    distributed given the dataset, then given a and given which outputs occur in b how often (m_1, m_2, ... times), all
    n! / (m_1! m_2! ...) orders of b are equally likely, and at most one of them is that of a. So the probability that b
    equals a is at most (m_1! m_2! ...) / n! whatever the distribution of the outputs. "Repeats" is said if b equals a
    and this is at most `FALSE_ALARM` divided by the number of sizes that are tried; so it is wrongly said with
    probability at most `FALSE_ALARM` (1e-6).
    """
    for n in RESTARTS:
        first, second = (_of_fresh_start(target, data, n, k) for k in range(2))
        if not np.array_equal(first, second):
            return False
        if log_orders(first) >= -math.log(FALSE_ALARM / len(RESTARTS)):
            return True
    return None


def log_orders(outputs: NDArray[np.int64]) -> float:
    """Compute the log of the number of orders of outputs.

    Outputs are given by their keys, of shape (n,); natural logarithm.
    """
    counts = Counter(outputs.tolist()).values()
    return math.lgamma(len(outputs) + 1) - sum(math.lgamma(m + 1) for m in counts)


def _of_fresh_start(target: ProcessTarget, data: Any, n: int, k: int) -> NDArray[np.int64]:
    """Keys of n outputs of another process of the same command: a copy has none of the target's own."""
    with copy(target) as other:
        return hash_outputs(Sampler(other, 0, "restart").draw(data, n, k))


def _are_equal_batches(a: Batch, b: Batch) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return np.array_equal(hash_outputs(a), hash_outputs(b))
