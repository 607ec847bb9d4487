"""Count how often the auditor accuses a mechanism that just keeps its claim.

Run ``python -m benchmarks.false_alarms`` from the repository's root. The table is the same for the same options,
whatever the number of jobs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from scipy import stats

from auditor.audits.adversaries.game import Game, run_game
from auditor.audits.adversaries.packing import Packing
from auditor.audits.context import Question
from auditor.audits.privacy_loop import Settings
from auditor.audits.self_reported.checks import check_statements
from auditor.datasets import Pair
from auditor.privacy.exact import GaussianCurve
from auditor.privacy.guarantees import ApproxDP, Guarantee, PureDP
from auditor.results import Verdict
from benchmarks.families import ALPHA, EXTREMES, FAMILIES, STOPS, NullAudit, RowTellingTable, trial
from benchmarks.options import parser_of

#: Confidence of the upper bounds on the rates.
CONFIDENCE = 0.99
#: What is audited.
ROWS = (*FAMILIES, *EXTREMES)
#: Audits in one piece of work: small enough to keep all workers busy to the end, arbitrary otherwise.
_BATCH = 20


#: Columns of the tables of a packing: their number, 2^2000, is beyond what a double holds.
_COLUMNS = 2_000


def packing(guarantee: Guarantee, rows: int, probability: float) -> Callable[[int], NullAudit]:
    """Play games of packing with `_COLUMNS` columns, against a target that wins with the given probability."""

    def once(seed: int) -> NullAudit:
        settings = Settings(alpha=ALPHA, draws=400, stop="budget", seed=seed)
        found = run_game(Game(RowTellingTable(probability), Packing(rows, _COLUMNS)), guarantee, settings, Question())
        above = found.lower_bound is None or found.lower_bound > guarantee.level
        return NullAudit(found.verdict in (Verdict.VIOLATION, Verdict.DEVIATION, Verdict.ERROR), above)

    return once


def accountant(seed: int) -> NullAudit:
    """Check the figure of a correct accountant: Gaussian steps, of which all rows but one in 10^13 take part.

    The exact level is that of the unsampled steps, to more digits than a double holds.
    """
    rng = np.random.default_rng(seed)
    noise, steps = math.exp(rng.uniform(math.log(0.8), math.log(30.0))), int(math.exp(rng.uniform(0, math.log(400))))
    delta = 10.0 ** rng.uniform(-15, -9)
    event = {"noise_multiplier": noise, "count": steps, **({"sampling_probability": 1 - 1e-13} if seed % 4 else {})}
    exact = GaussianCurve(math.sqrt(steps) / noise).epsilon(delta)
    stated = {"accountant": {"events": [{"gaussian": event}], "epsilon": exact, "delta": delta}}
    checks = check_statements(stated, ApproxDP(exact, delta), [Pair(0, 1)])
    return NullAudit(any(check.passed is False for check in checks), False)


@dataclass(frozen=True)
class ExtremeAudit:
    """Something other than events that is judged, at an unusual size: name, claim and one audit by its seed."""

    name: str
    claim: str
    once: Callable[[int], NullAudit]


#: By this level 2 % of the games may be won; a target that wins less often by a part of 2 % attains it.
_WON = 0.02
_MANY = PureDP((math.log(_WON) + _COLUMNS * math.log(2)) / 100)
SIZES = (
    ExtremeAudit("accountant at a delta of 1e-9 to 1e-15", "ε and δ, exact", accountant),
    ExtremeAudit(f"packing with {_COLUMNS:,} columns, 100 rows", str(_MANY), packing(_MANY, 100, _WON / (1 + _WON))),
    ExtremeAudit(
        f"packing with {_COLUMNS:,} columns, 1 row",
        str(ApproxDP(1.0, 0.1)),
        packing(ApproxDP(1.0, 0.1), 1, 0.1),
    ),
)


#: Audits of a row by each of `STOPS`, in parts of the option ``--audits``; 1 where nothing is said. Rates that leave
#: much room need fewer audits to show that they are at most alpha, and those near it more, as by the stop "verdict".
SHARES = {
    "randomised response": (4.0, 1.5),
    "coin at the kink of a zCDP cap": (8.0, 1.5),
    "discrete Laplace": (4.0, 2 / 3),
    "Gaussian, claimed mu": (2 / 3, 2 / 3),
    "Gaussian, claimed epsilon and delta": (2 / 3, 2 / 3),
    "search over 20 pairs": (7.0, 1.0),
    "coin, claimed rho": (4.0, 1.0),
    "coin, claimed Renyi bounds": (2.0, 1.0),
    "coin, claimed delta at an epsilon": (2.0, 2 / 3),
    "coin, claimed trade-off curve": (2.0, 1.0),
    "integers beyond 2^53, texts and None": (4.0, 1.0),
}
if unknown := SHARES.keys() - {row.name for row in ROWS}:
    raise ValueError(f"SHARES names what is not a row: {sorted(unknown)}")


def upper_bound(count: int, audits: int) -> float:
    """One-sided Clopper-Pearson upper bound on a rate, at `CONFIDENCE`."""
    return 1.0 if count == audits else float(stats.beta.ppf(CONFIDENCE, count + 1, audits - count))


def batch(family: int, stop: str, seeds: Sequence[int], draws_a_side: int) -> list[NullAudit]:
    """Audits of one family with the given seeds."""
    return [trial(ROWS[family], stop, seed, draws_a_side) for seed in seeds]


def seeds_of(family: int, rule: int, audits: int) -> list[int]:
    """Seeds of one family by one stopping rule, which the other has not; those beyond ``audits`` are interleaved."""
    n = math.ceil(SHARES.get(ROWS[family].name, (1.0, 1.0))[rule] * audits)
    return [rule * audits + k if k < audits else len(STOPS) * k + rule for k in range(n)]


def rows_of(only: str, audits: int, draws_a_side: int, parallel: Parallel) -> Iterator[tuple[str, bool]]:
    """Audit each row whose name holds ``only``: its Markdown, and whether its rates are at most alpha."""
    for (family, audited), (rule, stop) in itertools.product(enumerate(ROWS), enumerate(STOPS)):
        if only in audited.name:
            seeds = seeds_of(family, rule, audits)
            work = [seeds[start : start + _BATCH] for start in range(0, len(seeds), _BATCH)]
            parts = parallel(delayed(batch)(family, stop, some, draws_a_side) for some in work)
            yield row(audited.name, str(audited.guarantee), stop, [outcome for part in parts for outcome in part])
    for one in SIZES:
        if only in one.name:
            yield row(one.name, one.claim, "", parallel(delayed(one.once)(seed) for seed in range(audits)))


def row(name: str, claim: str, stop: str, results: Sequence[NullAudit]) -> tuple[str, bool]:
    """One Markdown row, and whether its rates are at most alpha with confidence."""
    n, alarms, above = len(results), sum(r.alarm for r in results), sum(r.bound_above for r in results)
    bounds = upper_bound(alarms, n), upper_bound(above, n)
    good = max(bounds) <= ALPHA
    return (
        f"| {name} | {claim} | {stop} | {n} | {alarms} | {alarms / n:.4f} | {bounds[0]:.4f} "
        f"| {above} | {bounds[1]:.4f} | {'yes' if good else 'not shown'} |"
    ), good


def document(rows: Sequence[str], draws_a_side: int) -> str:
    """The report."""
    text = [
        "# False alarms at zero margin",
        "",
        "Every mechanism here keeps its claim and has no margin: its exact level is the claimed one. Audited at "
        f"alpha = {ALPHA:g} with up to {draws_a_side:,} draws a side, so at most {100 * ALPHA:g} % of the audits may "
        "say `violation`, and at most as many may give a lower bound above the exact level. Upper bounds on the rates "
        "are one-sided Clopper-Pearson bounds at 99 %; `yes` means that both are at most 5 %. In the last rows no "
        "events are learned: an alarm about an accountant is a failed check of a correct figure (sampled steps below a "
        "delta of 1e-10 are not checked), and a packing is a game.",
        "",
        "| family | claim | stop | audits | false alarms | rate | 99 % upper bound | bounds above exact "
        "| 99 % upper bound | at most 5 % |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---|",
        *rows,
        "",
        "Made by `python -m benchmarks.false_alarms`; the families are in `benchmarks/families.py`.",
        "",
    ]
    return "\n".join(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a rate is not shown to be at most alpha."""
    parser = parser_of("false_alarms", __doc__, "audits", 600)
    parser.add_argument("--draws-a-side", type=int, default=100_000, help="budget of one audit")
    options = parser.parse_args(arguments)
    for name in ("audits", "draws_a_side", "jobs"):
        if getattr(options, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1, got {getattr(options, name)}")
    rows, good = [], True
    for text, kept in rows_of(options.only, options.audits, options.draws_a_side, Parallel(n_jobs=options.jobs)):
        print(text, flush=True)
        rows.append(text)
        good &= kept
    if not rows:
        parser.error(f"nothing to audit: --only {options.only!r}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(document(rows, options.draws_a_side), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
