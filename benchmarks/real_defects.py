"""What dpaudit and other auditors find in the corpus of real defects, see ``corpus/`` and `auditor.cli.corpus`.

Run ``python -m benchmarks.real_defects [-k TEXT] [--jobs 2] [--out reports/corpus.md]`` from the repository's root.
Each library is installed once, into an environment of its own. What is done already is kept in ``out/corpus``, so that
an interrupted run goes on. Beside the audits of `dpaudit corpus run`, the crafted pair of each case is drawn from once,
and dpaudit, the fixed-size method on half of the draws, and jax-privacy get the same draws.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.cli.corpus.audits import (
    NAME,
    CaseAudit,
    audit_cases,
    hash_case,
    methods_within,
    read_audits,
    run_pieces,
)
from auditor.cli.corpus.cases import LibraryCase, find_cases
from auditor.cli.corpus.command import write_matrix
from auditor.errors import SpecificationError, TargetError
from auditor.privacy.guarantees import ApproxDP, GaussianDP, Guarantee, PureDP
from auditor.targets.outputs import Batch, concatenate_batches
from auditor.targets.sampler import Sampler
from auditor.targets.sources import hash_files
from auditor.targets.target_names import closing_target, target_named
from benchmarks.peers.cases import DELTA, PairOfDraws
from benchmarks.peers.contenders import bet_on_recorded, bound_bets, bound_split, level_of_epsilon, peer_process
from benchmarks.peers.process import PeerCommand, PeerProcess, command

#: Level of `dpaudit attack`.
ALPHA = 0.01
#: Draws a side that all auditors get, and seconds after which no more are made.
DRAWS, SECONDS = 20_000, 30.0
#: Coordinates of an output that jax-privacy is asked about; arbitrary, it takes one score a draw.
COORDINATES = 16
#: Libraries that fill a gigabyte with what they need, or nearly so.
LARGE = ("torch==", "jax==")
#: Names of the columns.
OWN, SPLIT, PEER = "same draws: dpaudit", "same draws: split sample", "same draws: jax-privacy"
ABOUT = (
    f"Made by `python -m benchmarks.real_defects`. *Same draws*: at most {DRAWS:,} draws a side of the crafted pair, "
    f"or those of {SECONDS:g} s, given to each auditor, at alpha = {ALPHA:g}. jax-privacy takes one score a draw: it "
    "is asked about each coordinate, either sign and either order, at alpha over their number, and has no score for "
    "texts, records and the like. A case without a link has no public report that is known here: it asks "
    "whether what happens is meant. [For reviewers](../docs/for-reviewers.md) says how to disclose what "
    "is found."
)
#: Draws of one call; arbitrary.
_CALL = 500


def draw_pair(case: LibraryCase, draws: int, seconds: float) -> PairOfDraws:
    """Draw from a case on both datasets of its crafted pair, equally often.

    Parameters
    ----------
    case : LibraryCase
        No control.
    draws : int
        Draws a side.
    seconds : float
        No further call is made after these.
    """
    sides: list[list[Batch]] = [[], []]
    with closing_target(target_named(case.target())) as target:
        sampler, begun = Sampler(target, 0, case.name, catching=True), time.monotonic()
        for k in range(0, draws, _CALL):
            if sides[0] and time.monotonic() - begun > seconds:
                break
            for side, data in zip(sides, (case.crafted.x, case.crafted.y), strict=True):
                side.append(sampler.draw_either_way(data, min(_CALL, draws - k), "same draws", k)[0])
    return PairOfDraws(*(_make_array(concatenate_batches(side)) for side in sides))


def _make_array(outputs: Batch) -> NDArray[Any]:
    """Outputs as an array, of objects where they are not numbers."""
    if isinstance(outputs, np.ndarray):
        return outputs
    array = np.empty(len(outputs), dtype=object)
    for k, output in enumerate(outputs):
        array[k] = output
    return array


def bound_by_dpaudit(case: LibraryCase, draws: PairOfDraws) -> tuple[float, bool, int]:
    """Lower bound by the bets of `dpaudit attack`, whether they refute, and after how many draws of both sides."""
    evidence = bet_on_recorded(case.guarantee, draws, 0, case.name, alpha=ALPHA)
    return bound_bets(evidence, case.guarantee, ALPHA), evidence.refuted(ALPHA), 2 * evidence.n


def bound_by_split(case: LibraryCase, draws: PairOfDraws) -> tuple[float, bool, int]:
    """Lower bound by the fixed-size method on half of the draws, whether it refutes, and all draws."""
    found = bound_split(case.guarantee, draws, 0, case.name, alpha=ALPHA)
    return found, found > case.guarantee.level, 2 * len(draws.x)


def bound_by_peer(guarantee: Guarantee, draws: PairOfDraws, peer: PeerProcess) -> tuple[float, bool, int] | None:
    """Largest bound of jax-privacy with its defaults over coordinates, signs and orders.

    None where it has none: for outputs that are not numbers, and other notions than (epsilon, delta) and Gaussian DP.
    A Gaussian level is the one of its epsilon at `benchmarks.peers.cases.DELTA`.

    Notes
    -----
    Valid because: each bound is asked for at alpha over the number of bounds, if jax-privacy's own is valid.
    """
    if not isinstance(guarantee, PureDP | ApproxDP | GaussianDP):
        return None
    delta = DELTA if isinstance(guarantee, GaussianDP) else getattr(guarantee, "delta", 0.0)
    x, y = score_coordinates(draws.x), score_coordinates(draws.y)
    if x is None or y is None or x.shape[1] != y.shape[1]:
        return None
    width = min(x.shape[1], COORDINATES)
    ask = partial(peer.ask, "bonferroni", alpha=ALPHA / (4 * width), delta=delta, seed=0)
    epsilons = [
        ask(sign * inside[:, j], sign * outside[:, j]).epsilon
        for j, sign, (inside, outside) in product(range(width), (1.0, -1.0), ((x, y), (y, x)))
    ]
    level = level_of_epsilon(guarantee, max(0.0, *epsilons), delta)
    return level, level > guarantee.level, 2 * len(draws.x)


def score_coordinates(outputs: NDArray[Any]) -> NDArray[np.float64] | None:
    """Outputs as rows of numbers, what is no number as the largest; None if they are no such rows."""
    if outputs.dtype.kind not in "biuf" or not outputs.size:
        return None
    rows = outputs.reshape(len(outputs), -1).astype(np.float64)
    return np.nan_to_num(rows, nan=1e300, posinf=1e300, neginf=-1e300)


def audit_same_draws(case: LibraryCase, peer: PeerCommand | None, seconds: float = SECONDS) -> list[CaseAudit]:
    """Audit one case by all auditors that take draws."""
    source = hash_audit(case)
    try:
        draws = draw_pair(case, DRAWS, seconds)
    except (SpecificationError, TargetError) as error:
        text = " ".join(str(error).split())[-300:]
        return [CaseAudit(case.name, name, source, "not drawn", 0.0, said=text) for name in (OWN, SPLIT, PEER)]
    auditors: Mapping[str, Callable[[], tuple[float, bool, int] | None]] = {
        OWN: lambda: bound_by_dpaudit(case, draws),
        SPLIT: lambda: bound_by_split(case, draws),
        PEER: lambda: None if peer is None else bound_by_peer(case.guarantee, draws, peer_process(peer)),
    }
    made = []
    for name, auditor in auditors.items():
        begun = time.monotonic()
        found = auditor()
        verdict = "no score" if found is None else "violation" if found[1] else "missed"
        bound = None if found is None or math.isinf(found[0]) else found[0]
        spent = round(time.monotonic() - begun, 2)
        made.append(CaseAudit(case.name, name, source, verdict, spent, found[2] if found else 0, bound))
    return made


def hash_audit(case: LibraryCase) -> str:
    """Hash of a case, of dpaudit, and of this file."""
    return f"{hash_case(case)}-{hash_files([Path(__file__)])[:8]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real_defects", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("-k", dest="text", default="", help="cases whose name contains this")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), help="folder of the cases")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--max-seconds", type=float, default=60.0, help="largest budget on a crafted pair")
    parser.add_argument("--no-large", dest="large", action="store_false", help="leave out what needs torch or jax")
    parser.add_argument("--no-peer", dest="peer", action="store_false", help="leave jax-privacy out")
    parser.add_argument("--results", type=Path, default=Path("out/corpus"), help="folder of finished audits")
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {options.jobs}")
    try:
        cases = find_cases(options.corpus, options.text)
        if not options.large:
            cases = [case for case in cases if not any(name in case.requires for name in LARGE)]
        peer = command()[0] if options.peer else None
    except SpecificationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    methods = methods_within(options.max_seconds)
    done = {(item.case, item.source) for item in read_audits(options.results / NAME)}
    work = [
        partial(audit_same_draws, case, peer)
        for case in cases
        if not case.is_control and (case.name, hash_audit(case)) not in done
    ]
    audits = audit_cases(cases, methods, options.results, options.jobs)
    for audit in chain(audits, run_pieces(work, options.results, options.jobs)):
        print(f"{audit.case}, {audit.method}: {audit.verdict}, {audit.seconds:.1f} s", file=sys.stderr)
    page = options.out or options.results / "corpus.md"
    write_matrix(cases, options.results, page, ABOUT)
    print(page)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
