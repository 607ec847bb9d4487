"""Many training runs as draws: each trains on a dataset or on its neighbour, as a fair coin says."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.audits.finish import fields_of_claim
from auditor.audits.given_numbers import read_numbers
from auditor.audits.summary import describe_target, format_duration
from auditor.audits.training.draw_bets import bet_on_draws, conclude_result, describe_bets
from auditor.audits.training.kept_runs import KeptRuns
from auditor.audits.training.score_pictures import count_scores, trace_tradeoff
from auditor.audits.training.training_call import write_training_call
from auditor.datasets.json_codec import data_to_json, same_data
from auditor.errors import (
    SpecificationError,
    check_alpha,
    check_id,
    check_positive,
    read_path,
    require_library,
)
from auditor.evidence.binomial import clopper_pearson
from auditor.privacy.guarantees import Guarantee
from auditor.results import FIXED_SIZE, AuditResult, Verdict, usual_level
from auditor.targets.content import spell_out, walk_parts
from auditor.targets.process_settings import keep_apart
from auditor.targets.sampler import check_seed, make_generator
from auditor.targets.sources import hash_bytes, hash_parts, source_text

Array = NDArray[np.float64]
Train = Callable[[Any, np.random.Generator], Any]
Score = Callable[[Any], Any]

#: How runs become a bound: bets, valid at any number of runs; or guesses, valid at a number that was fixed before.
BETS, GUESSES = "bets", "guesses"
EVIDENCE = (BETS, GUESSES)
#: What is watched in the place of objects whose content cannot be seen, such as open files: their class.
_UNSEEN = "class"
#: Seconds between two lines of progress; arbitrary.
_APART = 5.0
#: Runs of each side that its mean is taken to have had before: with few runs, directions of large vectors are noise.
_PRIOR = 1.0
#: Probability with which what is called detectable would have been flagged.
_POWER = 0.9
#: Times the error of a line that is learned, see `find_share`: chosen by simulation.
_LEARNING = 2.0
#: Halvings of an interval of shares.
_HALVINGS = 40


@keep_apart()
def audit_runs(
    train: Train,
    data: Any,
    neighbor: Any,
    score: Score | None,
    claim: Guarantee,
    *,
    runs: int,
    directory: str | Path | None = None,
    evidence: str = BETS,
    alpha: float = 0.01,
    detect: float | None = None,
    seed: int = 0,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: bool = True,
    id: str = "runs/L1/claim/given",  # noqa: A002 - it is the result's id
) -> AuditResult:
    """Train often, on a dataset or its neighbour, and audit outputs.

    Parameters
    ----------
    train : callable
        ``(data, rng) -> model``: the training that is audited. All of its randomness should come from ``rng``.
    data, neighbor : any
        Neighbouring datasets, such as one with a canary and one without. Which order they have does not matter. Each
        run has a copy.
    score : callable, optional
        ``(model) -> number or vector``: what is looked at, such as the loss of the canary. By default the model itself,
        such as its weights.
    claim : Guarantee
        What is claimed of the training.
    runs : int
        How many, at least 2. More may be asked for later, with the same directory.
    directory : path, optional
        Folder in which runs are kept, so that an interrupted audit goes on where it was. By default none are kept.
    evidence : {"bets", "guesses"}
        Bets on learned events hold at every number of runs. Guesses of each run's dataset, by a line that is fitted to
        the runs before, give a larger bound for one number of runs that was fixed beforehand.
    alpha : float
        Probability of a false alarm, in (0, 1).
    detect : float, optional
        Level that is to be found, default twice the claim.
    seed : int
        Seed of the coins and of each run's generator.
    jobs : int
        Processes, by joblib. Results do not depend on it. An executor has its own number.
    executor : concurrent.futures.Executor, optional
        Makes the runs instead, such as ``client.get_executor()`` of a client of a dask cluster. What it runs has to be
        importable there, or pickled by value.
    progress : bool
        Write lines on standard error, with an estimate of the time left.
    id : str
        The result's id.

    Returns
    -------
    AuditResult
        ``draws`` is the number of runs.

    Raises
    ------
    SpecificationError
        If an argument is not what it must be, or the directory holds other runs. What training raises is not caught;
        runs that are finished are kept.

    Notes
    -----
    Valid because: runs are independent, each has its fair coin, and they are judged in the order of their numbers,
    whenever they ended. Bets are those of `bet_on_draws`, guesses those of `bound_by_guesses`.
    """
    check_id(id)
    _check_arguments(train, data, neighbor, score, claim, runs, evidence, alpha, detect, jobs, seed)
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise SpecificationError(f"executor must be one of concurrent.futures, or None, got {executor!r}")
    if executor is not None and jobs != 1:
        raise SpecificationError(f"jobs must be 1 where an executor makes the runs, got {jobs!r}")
    kept = None
    if directory is not None:
        kept = KeptRuns(read_path("directory", directory), _describe_runs(train, data, neighbor, score, claim, seed))
    outputs = {} if kept is None else dict(kept.outputs)
    missing = [run for run in range(runs) if run not in outputs]
    tell = _Progress(runs, runs - len(missing)) if progress and missing else None
    for run, output in _make_runs(train, data, neighbor, score, seed, missing, jobs, executor):
        outputs[run] = output
        if kept is not None:
            kept.add(run, output)
        if tell is not None:
            tell.advance()
    shapes = {outputs[run].shape for run in range(runs)}
    if len(shapes) > 1:
        raise SpecificationError(f"outputs of all runs must have one shape, got {sorted(shapes)}")
    values = np.array([outputs[run] for run in range(runs)])
    if values.ndim > 2:
        values = values.reshape(runs, -1)
    coins = np.array([_coin(seed, run) for run in range(runs)])
    labels: dict[str, Any] = {
        **fields_of_claim(id, id.partition("/")[0], claim, "L1"),
        "alpha": alpha,
        "expected": Verdict.CONSISTENT,
        "mechanism": describe_target(train),
        "title": f"Runs of {describe_target(train)}",
        "draws": runs,
        "pair": f"{int(coins.sum()):,} runs on the dataset, {int((~coins).sum()):,} on its neighbour, by fair coins",
        "caveat": claim.caveat or "assumes that runs are independent",
        "stop": "budget",
        "replay": write_training_call(
            "audit_runs",
            {"train": train, "data": data, "neighbor": neighbor, "score": score},
            claim,
            {"runs": runs, "evidence": evidence, "alpha": alpha, "detect": detect, "seed": seed, "id": id},
        ),
    }
    record: dict[str, Any] = {"assumes": "independent-runs", "runs": runs, "evidence": evidence}
    if values.ndim == 1 and np.isfinite(values).all() and 0 < coins.sum() < runs:
        record["canary_scores"] = count_scores(values[coins], values[~coins])
        labels["tradeoff"] = trace_tradeoff(values[coins], values[~coins], claim)
    if evidence == GUESSES:
        return _from_guesses(values, coins, claim, alpha, detect, labels, record)
    refuted, bound, fields = describe_bets(bet_on_draws(values, coins, claim, alpha), claim, alpha, detect)
    return conclude_result(labels, refuted, bound, record=record, **fields)


def _check_arguments(
    train: Train,
    data: Any,
    neighbor: Any,
    score: Score | None,
    claim: Guarantee,
    runs: int,
    evidence: str,
    alpha: float,
    detect: float | None,
    jobs: int,
    seed: int,
) -> None:
    if not callable(train):
        raise SpecificationError(f"train must be callable, got {train!r}")
    if score is not None and not callable(score):
        raise SpecificationError(f"score must be callable, or None, got {score!r}")
    if not isinstance(claim, Guarantee):
        raise SpecificationError(f"claim must be a guarantee such as PureDP(1.0), got {claim!r}")
    for name, value, least in (("runs", runs, 2), ("jobs", jobs, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise SpecificationError(f"{name} must be an integer of at least {least}, got {value!r}")
    if evidence not in EVIDENCE:
        raise SpecificationError(f"evidence must be one of {', '.join(EVIDENCE)}, got {evidence!r}")
    check_alpha(alpha)
    check_seed(seed)
    if detect is not None:
        check_positive("detect", detect)
    if same_data(data, neighbor):
        raise SpecificationError("data and neighbor are the same dataset: nothing could tell their runs apart")


def _describe_runs(
    train: Train, data: Any, neighbor: Any, score: Score | None, claim: Guarantee, seed: int
) -> dict[str, Any]:
    """What the runs are of."""
    return {
        "seed": int(seed),
        "claim": f"{claim.notion}, {claim}",
        "train": _identify_function(train),
        "score": "" if score is None else _identify_function(score),
        "data": _identify_data(data),
        "neighbor": _identify_data(neighbor),
    }


def _identify_function(function: Any) -> str:
    """Name of a function, and hash of its content and of the sources of all that it is made of."""
    texts = [spell_out(function, key=_UNSEEN)]
    for part in walk_parts(function):
        with contextlib.suppress(OSError, TypeError):  # it has no source
            texts.append(source_text(part if isinstance(part, type | FunctionType) else type(part))[0])
    return f"{describe_target(function)} {hash_parts(*(text.encode() for text in texts))}"


def _identify_data(data: Any) -> str:
    try:
        found = data_to_json(data, sys.maxsize)
        text = "" if found is None else json.dumps(found)
    except (TypeError, ValueError):
        text = ""
    return hash_bytes((text or spell_out(data, key=_UNSEEN)).encode())


# ------------------------------------------------------------------------------------------------- runs


def _coin(seed: int, run: int) -> bool:
    return bool(make_generator(seed, "runs", "coin", run).random() < 0.5)


def _copy_data(data: Any) -> Any:
    """A dataset of one run's own: a training that changes it in place must not change the next run."""
    try:
        return copy.deepcopy(data)
    except Exception as error:  # whatever its class does when it is copied
        raise SpecificationError(
            f"data must be such that each run can have a copy, got {type(data).__name__} ({type(error).__name__}): "
            "give its path instead, and open it in the training"
        ) from error


def _make_run(train: Train, data: Any, score: Score | None, seed: int, run: int) -> tuple[int, Array]:
    model = train(_copy_data(data), make_generator(seed, "runs", "training", run))
    what = "the model" if score is None else "the score"
    output = model if score is None else score(model)
    found = read_numbers(f"{what} must be a number or an array of numbers", output)
    if not found.size:
        raise SpecificationError(f"{what} must be a number or an array of numbers: got none, of shape {found.shape}")
    return run, found


def _make_runs(
    train: Train,
    data: Any,
    neighbor: Any,
    score: Score | None,
    seed: int,
    missing: Sequence[int],
    jobs: int,
    executor: Executor | None,
) -> Iterator[tuple[int, Array]]:
    """Runs as they end, in this process or in several."""
    asked = ((train, data if _coin(seed, run) else neighbor, score, seed, run) for run in missing)
    if executor is not None:
        futures = [executor.submit(_make_run, *one) for one in asked]
        try:
            yield from (future.result() for future in as_completed(futures))
        finally:
            for future in futures:
                future.cancel()
        return
    if jobs == 1 or len(missing) < 2:
        yield from (_make_run(*one) for one in asked)
        return
    require_library("joblib", "runs in several processes (jobs=1 needs none)")
    import joblib  # takes longer to import than most audits

    with joblib.parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
        parallel = joblib.Parallel(return_as="generator_unordered", pre_dispatch="2 * n_jobs", batch_size=1)
        with contextlib.closing(parallel(joblib.delayed(_make_run)(*one) for one in asked)) as results:
            yield from results


class _Progress:
    """Lines on standard error: runs so far, and about how long the others take."""

    def __init__(self, runs: int, before: int) -> None:
        self.runs, self.before, self.done = runs, before, before
        self.begun = self.told = time.monotonic()
        if before:
            print(f"{before} of {runs} runs are kept from before", file=sys.stderr)

    def advance(self) -> None:
        """Count a run."""
        self.done += 1
        now = time.monotonic()
        if now - self.told < _APART and self.done < self.runs:
            return
        self.told = now
        left = (now - self.begun) / (self.done - self.before) * (self.runs - self.done)
        print(f"run {self.done} of {self.runs}, about {format_duration(left)} left", file=sys.stderr)


# ---------------------------------------------------------------------------------------------- guesses


def guess_from_past(values: Array, coins: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Guess each run's coin from its output and earlier runs.

    By the line between the means of both sides, each coordinate in units of its spread. Of the first runs of one side
    only, heads are guessed.

    Parameters
    ----------
    values : ndarray of shape (n, ...)
        Outputs.
    coins : ndarray of bool of shape (n,)
        Coins; that of a run has no part in its guess.

    Returns
    -------
    ndarray of bool of shape (n,)
        Guesses.
    """
    rows = np.nan_to_num(values.reshape(len(values), -1), nan=0.0).clip(-1e150, 1e150)
    guesses = np.ones(len(rows), dtype=bool)
    for k in range(len(rows)):
        x, y = rows[:k][coins[:k]], rows[:k][~coins[:k]]
        if not (len(x) and len(y)):
            continue
        apart, middle = x.mean(axis=0) - y.mean(axis=0), 0.5 * (x.mean(axis=0) + y.mean(axis=0))
        spread = ((x - x.mean(axis=0)) ** 2).sum(axis=0) + ((y - y.mean(axis=0)) ** 2).sum(axis=0)
        variance = (spread + _PRIOR * max(float(spread.mean()) / k, 1e-300)) / k
        with np.errstate(over="ignore", invalid="ignore"):  # any guess is valid
            guesses[k] = float((rows[k] - middle) @ (apart / variance)) > 0
    return guesses


def bound_by_guesses(right: int, runs: int, claim: Guarantee, alpha: float) -> float:
    """Level that a number of right guesses certifies.

    Parameters
    ----------
    right, runs : int
        Right guesses, and all of them.
    claim : Guarantee
        The notion.
    alpha : float
        Probability that the level is too large.

    Notes
    -----
    Valid because: a guess is an event of the run's output that the runs before fix. If it has the probability p with
    heads and q with tails, it is right with probability (p + 1 - q) / 2 for a fair coin, given the past. Under a level
    t that is at most the largest (cap(q) + 1 - q) / 2, which is reached where cap(q) = 1 - q, as the cap is concave and
    symmetric. So the number of right guesses is stochastically smaller than a binomial one with that probability r, the
    limit of Clopper and Pearson exceeds r with probability at most alpha, and the smallest level whose cap allows
    (r, 1 - r) exceeds t with no more.
    """
    share = float(clopper_pearson(right, runs, alpha, "lower"))
    return float(claim.level_of(np.array(share), np.array(1.0 - share))) if share > 0.5 else 0.0


def find_share(needed: int, runs: int, width: int) -> float:
    """Share of right guesses at which enough are right.

    It is that of the best line. Enough are right with probability 0.9, about, by lines that are learned as in
    `guess_from_past`.

    Parameters
    ----------
    needed, runs : int
        Right guesses that are enough, and all of them.
    width : int
        Numbers of an output.

    Returns
    -------
    float
        From 0.5; 1 if no share is enough.

    Notes
    -----
    By a normal approximation, for Gaussian outputs whose means are m standard deviations apart. A line that is learned
    from k runs has the cosine m / sqrt(m^2 + 4 width / k) to the best one. `_LEARNING` times that error, and one guess
    more than needed, make up for errors that last from guess to guess: of audits of 30 to 200 runs of 1 to 200 numbers
    at least 0.9 were flagged.
    """
    before = np.arange(runs)
    one_sided = np.minimum(1.0, 2.0 ** (1 - before))  # the chance that earlier runs were all of one side

    def suffices(share: float) -> bool:
        apart = 2 * special.ndtri(share)
        cosine = apart / np.sqrt(apart**2 + 4 * _LEARNING * width / np.maximum(before, 1))
        right = 0.5 * one_sided + (1 - one_sided) * special.ndtr(0.5 * apart * cosine)
        deviation = math.sqrt(float((right * (1 - right)).sum()))
        return float(right.sum()) + float(special.ndtri(1 - _POWER)) * deviation >= needed + 0.5

    low, high = 0.5, 1.0 - 1e-12
    if not suffices(high):
        return 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _from_guesses(
    values: Array,
    coins: NDArray[np.bool_],
    claim: Guarantee,
    alpha: float,
    detect: float | None,
    labels: dict[str, Any],
    record: dict[str, Any],
) -> AuditResult:
    n = len(coins)
    right = int((guess_from_past(values, coins) == coins).sum())
    bound = bound_by_guesses(right, n, claim, alpha)
    counts = np.arange(n // 2, n + 1)
    refuting = [int(c) for c in counts if bound_by_guesses(int(c), n, claim, alpha) > claim.level]
    share = find_share(refuting[0], n, values[0].size) if refuting else 1.0
    resolves = float(claim.level_of(np.array(share), np.array(1.0 - share))) if share < 1 else math.inf
    return conclude_result(
        labels,
        bound > claim.level,
        bound,
        missed="a level below {} of outputs whose means differ",
        resolves=resolves,
        detect=usual_level(claim.level) if detect is None else detect,
        ceiling=bound_by_guesses(n, n, claim, alpha),
        event=f"{right:,} of {n:,} guesses are right",
        record=record | {"guesses": [n, right]},
        method=FIXED_SIZE,
    )
