"""dpaudit against its peers, on the same draws: bounds, draws to a verdict, own cost, false alarms.

Run ``python -m benchmarks.peers [--jobs 2] [--out reports/peers.md]`` from the repository's root. jax-privacy, the peer
on the package index, is installed into a separate environment, once, in dpaudit's cache folder. All figures but
those of time are the same for the same options.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import joblib
from joblib.externals.loky import get_reusable_executor
from scipy import stats

from auditor.errors import SpecificationError
from benchmarks.peers.cases import ALPHA, CLAIMED, PeerCase, cases, identical
from benchmarks.peers.contenders import (
    DPAUDIT,
    ORACLE,
    SPLIT,
    bound,
    contenders,
    own_seconds,
    smallest,
    verdict_draws,
)
from benchmarks.peers.process import PeerCommand, command

#: Draws a side that lower bounds are given at, and that own cost is measured at.
SIZES, TIMED = (10_000, 100_000, 200_000, 1_000_000), 100_000
#: Draws a side at which lower bounds are also compared with the oracle's.
COMPARED = 200_000
#: Most draws a side to a verdict, and draws a side of each audit of a null; the second for the time that it takes.
MOST, NULL_DRAWS = 500_000, 2_000
#: Confidence of the exact intervals of false-alarm rates. Some forty of them are shown: even if all rates were just
#: alpha, one would be called invalid in one run of 50 at most.
CONFIDENCE = 0.999
#: What a bound is called whose rate above the truth is shown to exceed alpha.
INVALID = "**invalid**"
#: First seeds of the three tables, so that none shares draws with another.
_BOUNDS, _VERDICTS, _NULLS = 0, 10_000, 20_000
#: Repetitions in one piece of work: arbitrary, a few seconds each.
_BATCH = 25

#: How many bounds were above the true level, by case and contender.
Alarms = dict[tuple[str, str], int]


def bounds_of(
    case: PeerCase, seed: int, sizes: Sequence[int], command: PeerCommand | None
) -> dict[tuple[str, int], float]:
    """Every contender's bound at each size, on the first draws of one sample."""
    draws = case.draws(_BOUNDS + seed, max(sizes))
    return {
        (contender, n): bound(contender, case, draws.first(n), seed, command)
        for n in sizes
        for contender in contenders(case, command is not None)
    }


def verdicts_of(case: PeerCase, runs: int, most: int, command: PeerCommand | None) -> dict[str, str]:
    """Draws a side to a verdict against the claim that is too small, for the table, by contender."""
    samples = [case.draws(_VERDICTS + seed, most) for seed in range(runs)]
    found = sorted(verdict_draws(case, draws, seed) for seed, draws in enumerate(samples))
    middle, late = found[len(found) // 2], found[math.ceil(0.9 * len(found)) - 1]
    said = _number(middle, most)
    if math.isfinite(middle):
        said += f" (90 %: {_number(late, most)})"
    others = [contender for contender in contenders(case, command is not None) if contender != DPAUDIT]
    return {DPAUDIT: said} | {other: _number(smallest(other, case, samples, command), most) for other in others}


def alarms_of(case: PeerCase, seeds: Sequence[int], n: int, command: PeerCommand | None) -> dict[str, int]:
    """How many of each contender's bounds are above the true level."""
    found = dict.fromkeys(contenders(case, command is not None), 0)
    for seed in seeds:
        draws = case.draws(_NULLS + seed, n)
        for contender in found:
            found[contender] += bound(contender, case, draws, seed, command) > case.truth
    return found


def rate_interval(count: int, trials: int) -> tuple[float, float]:
    """Clopper and Pearson's two-sided interval of a rate at `CONFIDENCE`."""
    interval = stats.binomtest(count, trials).proportion_ci(CONFIDENCE, "exact")
    return float(interval.low), float(interval.high)


def judged(count: int, trials: int) -> str:
    """What a count of bounds above the truth says of a bound that states `ALPHA`."""
    low, high = rate_interval(count, trials)
    if low > ALPHA:
        return INVALID
    return "valid here" if high <= ALPHA else "not settled"


def bounds_table(
    rows: Sequence[PeerCase], options: argparse.Namespace, peer: PeerCommand | None, alarms: Alarms
) -> list[str]:
    """Lower bounds, draws to a verdict and own cost, case by case."""
    parallel = joblib.Parallel(n_jobs=options.jobs)
    sizes = tuple(n for n in SIZES if n <= options.most_draws) or (options.most_draws,)
    most, timed = min(MOST, options.most_draws), min(TIMED, options.most_draws)
    compared = COMPARED if COMPARED in sizes else max(sizes)
    found = parallel(joblib.delayed(bounds_of)(case, k, sizes, peer) for case in rows for k in range(options.bounds))
    verdicts = parallel(joblib.delayed(verdicts_of)(case, options.runs, most, peer) for case in rows)
    if options.jobs > 1:
        get_reusable_executor().shutdown()  # what is timed below has the machine to itself
    lines = []
    for number, case in enumerate(rows):
        own = found[number * options.bounds : (number + 1) * options.bounds]
        sampling, spent = costs(case, options.timings, timed, peer)
        lines += [
            f"### {case.name}",
            "",
            f"True level {case.truth:.4g}; to be refuted: {case.too_small}. An anytime audit by the best half line, "
            f"known beforehand, needs about {case.oracle_draws():,.0f} draws a side. Sampling {timed:,} draws a side "
            f"takes {1000 * sampling:,.1f} ms.",
            "",
            f"| | {' | '.join(f'bound at {n:,}' for n in sizes)} | at {compared:,}, over the oracle's "
            f"| draws a side to a verdict | own ms at {timed:,} | own time over sampling |",
            "|---|" + "---:|" * (len(sizes) + 4),
        ]
        for contender in contenders(case, peer is not None):
            medians = [statistics.median(sample[contender, n] for sample in own) for n in sizes]
            shares = [sample[contender, compared] / (sample[ORACLE, compared] or math.nan) for sample in own]
            seconds = spent[contender]
            cost = ("", "") if seconds is None else (f"{1000 * seconds:,.1f}", f"{seconds / sampling:,.1f}")
            bounds = [*(f"{value:.4g}" for value in medians), f"{statistics.median(shares):.3f}"]
            cells = [*bounds, verdicts[number][contender], *cost]
            lines.append(f"| {marked(contender, alarms[case.name, contender], options.nulls)} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def marked(contender: str, count: int, trials: int) -> str:
    """A contender's name, with what was measured where its bound is invalid."""
    if judged(count, trials) != INVALID:
        return contender
    return f"{contender}, {INVALID}: above the truth in {count / trials:.0%}"


def costs(case: PeerCase, timings: int, n: int, peer: PeerCommand | None) -> tuple[float, dict[str, float | None]]:
    """Median CPU seconds of drawing n outputs a side, and what each contender takes beside; one warm-up each."""
    draws = case.draws(_BOUNDS, n)
    sampling = []
    for _ in range(timings):
        begun = time.process_time()
        case.draws(_BOUNDS, n)
        sampling.append(time.process_time() - begun)
    spent: dict[str, float | None] = {}
    for contender in contenders(case, peer is not None):
        taken = [own_seconds(contender, case, draws, peer, time.process_time) for _ in range(timings + 1)]
        known = [seconds for seconds in taken[1:] if seconds is not None]
        spent[contender] = statistics.median(known) if known else None
    return statistics.median(sampling), spent


def alarms_found(rows: Sequence[PeerCase], options: argparse.Namespace, peer: PeerCommand | None) -> Alarms:
    """How often each contender's bound is above the truth, by case and contender."""
    batches = [range(k, min(k + _BATCH, options.nulls)) for k in range(0, options.nulls, _BATCH)]
    work = [(case, batch) for case in rows for batch in batches]
    n = min(NULL_DRAWS, options.most_draws)
    parallel = joblib.Parallel(n_jobs=options.jobs)
    parts = parallel(joblib.delayed(alarms_of)(case, batch, n, peer) for case, batch in work)
    found: Alarms = {}
    for (case, _), part in zip(work, parts, strict=True):
        for contender, count in part.items():
            found[case.name, contender] = found.get((case.name, contender), 0) + count
    return found


def alarms_table(rows: Sequence[PeerCase], nulls: int, alarms: Alarms) -> list[str]:
    """The counts with their intervals."""
    lines = [
        f"| true level | contender | bounds above it, of {nulls} | {CONFIDENCE:.1%} interval of the rate | |",
        "|---|---|---:|---|---|",
    ]
    for case in rows:
        for (name, contender), count in alarms.items():
            if name == case.name:
                low, high = rate_interval(count, nulls)
                lines.append(
                    f"| {case.name}: {case.truth:.4g} | {contender} | {count} | {low:.4f} to {high:.4f} "
                    f"| {judged(count, nulls)} |"
                )
    return lines


def document(options: argparse.Namespace, peer: PeerCommand | None, versions: dict[str, str]) -> str:
    """The report."""
    listed, same = ([case for case in some if options.only in case.name] for some in (cases(), identical()))
    alarms = alarms_found([*listed, *same], options, peer)
    said = "left out" if peer is None else f"version {versions.get('jax_privacy', versions.get('jax-privacy'))}"
    lines = [
        "# dpaudit and its peers",
        "",
        f"Each contender gets the same draws. alpha = {ALPHA:g}; a verdict is asked for against a claim of {CLAIMED:g} "
        f"times the true level. Medians of {options.bounds} samples (bounds) and {options.runs} samples (draws to a "
        f"verdict, at most {min(MOST, options.most_draws):,} a side). jax-privacy: {said}.",
        "",
        f"*{DPAUDIT}* may be looked at after every draw; what it says is right at all times together. The others are "
        "right at one number of draws, fixed beforehand: their draws to a verdict are the smallest number (within 19 "
        "%) at which half of the samples say so, which a user does not know, and who looks more than once pays for it. "
        f"*{ORACLE}* is told the event. *{SPLIT}* learns it from half of the draws as dpaudit does. jax-privacy takes "
        "one score a draw, here the output, and its events are scores above a threshold, so it is told the kind of "
        "event and the direction. Clopper-Pearson with Bonferroni is the default of its method; alpha is divided by "
        "the number of corners of the hull of the same draws' curve. Its estimates without a stated confidence "
        "(`epsilon_raw_counts`), and its bounds for one training run, which are about other experiments, are left out. "
        "`epsilon_from_gdp` takes Gaussian DP for granted. Own time is CPU time beside sampling: for dpaudit and the "
        "split sample a whole audit with its tests of independence, for jax-privacy its library alone, without "
        "transport.",
        "",
        "## Bounds, draws and cost",
        "",
        *bounds_table(listed, options, peer, alarms),
        "## Bounds above the truth",
        "",
        f"At {min(NULL_DRAWS, options.most_draws):,} draws a side, no margin: the true level is the number shown. A "
        f"bound at alpha = {ALPHA:g} may be above it in {ALPHA:.0%} of the samples. It is called invalid where the "
        "whole interval is above alpha, and valid here where the interval is within alpha. dpaudit's own rates, with "
        "more repetitions and for more notions, are in [false_alarms.md](false_alarms.md).",
        "",
        *alarms_table([*listed, *same], options.nulls, alarms),
        "",
    ]
    return "\n".join([*lines, "Made by `python -m benchmarks.peers`, see `benchmarks/README.md`.", ""])


def _number(draws: float, most: int) -> str:
    return f"{draws:,.0f}" if math.isfinite(draws) else f"more than {most:,}"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=(__doc__ or "").split("\n\n")[0])
    made.add_argument("--bounds", type=int, default=7, help="samples of each lower bound")
    made.add_argument("--runs", type=int, default=21, help="samples of draws to a verdict")
    made.add_argument("--nulls", type=int, default=500, help="samples of each rate of false alarms")
    made.add_argument("--timings", type=int, default=5, help="timed repetitions")
    made.add_argument("--most-draws", type=int, default=max(SIZES), help="no sample is larger than this a side")
    made.add_argument("--only", default="", help="cases whose name contains this")
    made.add_argument("--jobs", type=int, default=2, help="worker processes; figures but times do not depend on it")
    made.add_argument("--no-peer", dest="peer", action="store_false", help="leave jax-privacy out")
    made.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    made = parser()
    options = made.parse_args(arguments)
    for name in ("bounds", "runs", "nulls", "timings", "jobs"):
        if getattr(options, name) < 1:
            made.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    if options.most_draws < 1_000:
        made.error(f"--most-draws must be at least 1000, got {options.most_draws}")
    names = [case.name for case in [*cases(), *identical()]]
    if not any(options.only in name for name in names):
        made.error(f"--only {options.only!r}: no such case among {', '.join(map(repr, names))}")
    if options.out is not None and not options.out.parent.is_dir():
        made.error(f"--out: no such folder: {str(options.out.parent)!r}")
    try:
        peer, versions = command() if options.peer else (None, {})
        text = document(options, peer, versions)
    except SpecificationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
