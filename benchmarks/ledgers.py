"""Count how often a ledger accuses a target that just keeps its claim, where nights do not end as they should.

Randomised response at exactly epsilon = 1 with entropy of its own, so that no draw comes again. A budget that stops at
the verdict makes the nights without an alarm the long ones: what takes long nights, such as the time limit of a job,
takes just these. A ledger that forgot them would be a new attempt every night.

Run ``python -m benchmarks.ledgers`` from the repository's root.
"""

from __future__ import annotations

import math
import sqlite3
import tempfile
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats

from auditor.audits.context import Question
from auditor.audits.privacy import run_audit
from auditor.audits.privacy_loop import Settings
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from auditor.results import Verdict
from auditor.runs.ledger import Ledger
from benchmarks.dependent import KEPT
from benchmarks.false_alarms import CONFIDENCE
from benchmarks.families import ALPHA
from benchmarks.options import parser_of

ID = "benchmark/ledger/L1/pure_dp/exact"
PAIR = [Pair(0, 1, "0 against 1")]
CLAIM = PureDP(1.0)
#: Nights of a ledger, and the budget of one.
NIGHTS, BUDGET = 15, 10_000
#: Nights where they are ended by a look at the draws: they are short, and each adds a chunk or two.
LOOKED = 60
#: Draws at which a job is killed that has not ended.
LIMIT = 8_000

#: Who looks at the wealth ends nights below it, to begin anew from 1 if that is possible.
POOR = -0.5
#: Draws of a chunk, of one side, from which on there is something to be seen.
SEEN = 40
ENDS = (
    "as they should",
    "at a random draw",
    f"at {LIMIT:,} draws",
    "by a look at the wealth",
    "by a look at the draws",
    "by a look at the draws, and forgotten",
)
#: Of a ledger that forgets what it had begun: alarms that this one must not have, which shows that they can be had.
CONTROL = ENDS[5]
#: Of these there is one for so many of the others: nearly all of them raise alarms.
FEWER = 4


class NightKilled(KeyboardInterrupt):
    """Ends a night: nothing is written any more."""


@dataclass
class EntropyResponse:
    """Randomised response at epsilon = 1, by entropy of its own.

    Parameters
    ----------
    rng : numpy.random.Generator
        Its entropy.
    watch : generator
        Who sees dataset and outputs of each call, and may end the night, see `watching`.
    """

    rng: np.random.Generator
    watch: Generator[None, tuple[int, NDArray[np.int64]], None]

    def __call__(self, data: int, n: int, _rng: np.random.Generator) -> NDArray[np.int64]:
        """``n`` bits."""
        outputs = np.where(self.rng.random(n) < KEPT, data, 1 - data)
        self.watch.send((data, outputs))
        return outputs


def watching(
    end: str, rng: np.random.Generator, path: Path, night: int
) -> Generator[None, tuple[int, NDArray[np.int64]], None]:
    """Raise `NightKilled` after a call, as one of `ENDS` says; what it knows is no attribute of the target's.

    Who looks at the draws lets the first night be, from which an event is known to bet on.
    """
    most = {ENDS[1]: int(rng.integers(1, BUDGET)), ENDS[2]: LIMIT}.get(end)
    made, seen = 0, {0: np.zeros(2), 1: np.zeros(2)}  # draws on each dataset, and zeros among them
    while True:
        data, outputs = yield
        made += len(outputs)
        if most is not None and made >= most:
            raise NightKilled
        if end not in ENDS[3:]:
            continue
        with closing(sqlite3.connect(path)) as database:
            drawing = database.execute(
                "SELECT series, n FROM plans JOIN series ON series.number = series WHERE closed IS NULL"
            ).fetchone()
            if drawing is None or drawing[1] < SEEN:
                continue
            wealth = database.execute(
                "SELECT log FROM chunks WHERE series = ? ORDER BY number DESC LIMIT 1", drawing[:1]
            ).fetchall()
        if end == ENDS[3] and wealth and wealth[0][0] < POOR:
            raise NightKilled
        seen[data] += [len(outputs), np.sum(outputs == 0)]
        if seen[1][0] == drawing[1]:  # the chunk is complete: is 0 as much likelier on 0 as the claim allows?
            zeros, ones = (count / n for n, count in seen.values())
            seen = {0: np.zeros(2), 1: np.zeros(2)}
            if end in ENDS[4:] and night > 1 and zeros < math.e * ones:
                raise NightKilled


class LedgerAudit(NamedTuple):
    """What became of one ledger."""

    alarm: bool
    killed: int
    nights: int
    attempts: int


def ledger_of(end: str, seed: int, most: int | None = None) -> LedgerAudit:
    """Nights of one ledger, up to an alarm, or so many."""
    most = (LOOKED if end in ENDS[4:] else NIGHTS) if most is None else most
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger"
        Ledger(path).prepare()
        with closing(sqlite3.connect(path)) as database, database:  # the same ledger for the same seed
            database.execute("UPDATE meta SET value = ? WHERE name = 'identity'", (f"{seed:032x}",))
        rng = np.random.default_rng([seed, ENDS.index(end)])
        # Tests of independence could only take alarms away.
        settings = Settings(alpha=ALPHA, draws=BUDGET, independence=False, seed=seed)
        killed, alarm = 0, False
        nights = 0
        while nights < most and not alarm:
            nights += 1
            watch = watching(end, rng, path, nights)
            next(watch)
            if end == CONTROL:
                with closing(sqlite3.connect(path)) as database, database:
                    database.execute("DELETE FROM plans")
            # A generator is another one every night, and the ledger asks for a key in its place.
            question = Question(ID, ledger=Ledger(path, key="entropy of its own"))
            try:
                result = run_audit(EntropyResponse(rng, watch), CLAIM, PAIR, settings, question)
                alarm = result.verdict == Verdict.VIOLATION
            except NightKilled:
                killed += 1
        with closing(sqlite3.connect(path)) as database:
            ((attempts,),) = database.execute("SELECT coalesce(max(attempt), 0) FROM series")
    return LedgerAudit(alarm, killed, nights, attempts)


def interval(count: int, of: int) -> tuple[float, float]:
    """Two-sided Clopper-Pearson interval of a rate, at `CONFIDENCE`."""
    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if count == 0 else float(stats.beta.ppf(tail, count, of - count + 1))
    return low, 1.0 if count == of else float(stats.beta.isf(tail, count + 1, of - count))


def table(found: Sequence[tuple[str, Sequence[LedgerAudit]]]) -> tuple[list[str], bool]:
    """Markdown rows, and whether no rate is shown to be above alpha."""
    rows = [
        "| nights end | ledgers | nights | killed | series | false alarms | rate | 99 % interval |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    good = True
    for end, outcomes in found:
        alarms, n = sum(outcome.alarm for outcome in outcomes), len(outcomes)
        low, high = interval(alarms, n)
        good &= low <= ALPHA or end == CONTROL
        nights, killed = sum(outcome.nights for outcome in outcomes), sum(outcome.killed for outcome in outcomes)
        series = sum(outcome.attempts for outcome in outcomes)
        rows.append(
            f"| {end} | {n} | {nights:,} | {killed:,} | {series:,} | {alarms} | {alarms / n:.4f} "
            f"| [{low:.4f}, {high:.4f}] |"
        )
    return rows, good


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a rate is shown to be above alpha."""
    parser = parser_of("ledgers", __doc__, "ledgers", 400, first_seed=100)
    options = parser.parse_args(arguments)
    chosen = [end for end in ENDS if options.only in end]
    if not chosen or options.ledgers < 1:
        parser.error(f"nothing to audit: --ledgers {options.ledgers} --only {options.only!r}")
    parallel = Parallel(n_jobs=options.jobs)
    found: list[tuple[str, list[LedgerAudit]]] = []
    for end in chosen:
        ledgers = options.ledgers if end != CONTROL else math.ceil(options.ledgers / FEWER)
        seeds = range(options.first_seed, options.first_seed + ledgers)
        found.append((end, list(parallel(delayed(ledger_of)(end, seed) for seed in seeds))))
        print(table(found[-1:])[0][-1], flush=True)
    rows, good = table(found)
    text = [
        "# False alarms of ledgers whose nights are killed",
        "",
        f"Randomised response at exactly ε = 1 with entropy of its own, audited at alpha = {ALPHA:g} on up to {NIGHTS} "
        f"nights of {BUDGET:,} draws that stop at the verdict, {LOOKED} where somebody looks at the draws. A false "
        "alarm is a violation on any night of a ledger. Jobs are killed in the middle of a call: at a draw that is "
        f"chosen at random; when they have made {LIMIT:,} draws; as soon as the wealth is below e^{POOR:g}; or where "
        "the draws of a chunk, which are not counted yet, speak for the claim. Each of these closes the series, and "
        "the next one has a smaller share of alpha. The last row is a ledger that forgets what it had begun, which "
        "this experiment can tell apart. Clopper-Pearson intervals at 99 %.",
        "",
        *rows,
        "",
        "Made by `python -m benchmarks.ledgers`.",
        "",
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(text), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
