"""Measure at which rung each pitfall of private training is caught, and with how many steps or runs.

Run ``python -m benchmarks.training_rungs`` from the repository's root. The page is the same for the same options.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.audits.training.step_level import Steps, compose_level
from auditor.claims import Claim, registry
from auditor.privacy.guarantees import ApproxDP, GaussianDP
from auditor.results import Verdict
from auditor.runs.audit_claim import audit_claim
from auditor.runs.run import Run
from auditor.training import audit_one_run, audit_steps
from benchmarks.recorded_training import FULL, SAMPLED, train
from benchmarks.training import DELTA, OF_SAMPLING, USUAL
from mechanisms.training.dp_sgd import DPSGD, FeatureReader
from mechanisms.training.dp_sgd_mutants import MUTANTS
from mechanisms.training.models import LogisticRegression

Rows = NDArray[np.float64]

#: Steps of white-box records, tried one after the other until all records are found.
STEPS = (5, 10, 20, 50, 100, 200)
#: Canaries of one run, which could certify at most 1.63-GDP; and the level of full batches that is claimed.
CANARIES, LEVEL = 1_000, 0.5
#: Steps that are made where an epoch too few is counted, of the 200 that the claim is for.
LONGER = 250
#: Share of alpha of an audit of many runs: as in the whole catalogue, about.
SHARE = 1e-5


class Pitfall(NamedTuple):
    """A pitfall, and what it is called at each rung.

    Parameters
    ----------
    name : str
        In words.
    mutant : str
        Of `dp_sgd_mutants`, and of the claims of many runs.
    recorded : str or None
        Of `benchmarks.recorded_training`; None where the steps do not show it, by their definition.
    """

    name: str
    mutant: str
    recorded: str | None


PITFALLS = (
    Pitfall("noise before clipping", "noise_before_clipping", "noise before clipping"),
    Pitfall("clip of the mean", "clip_of_the_mean", "clip of the mean"),
    Pitfall("clip by layer with the whole norm", "clip_by_layer", "clip by layer"),
    Pitfall("bias not clipped", "bias_not_clipped", "bias not clipped"),
    Pitfall("accumulation without its factor", "accumulation_without_factor", "accumulation without its factor"),
    Pitfall("noise of one micro-batch of four", "noise_of_one_micro_batch", "noise of one micro-batch of four"),
    Pitfall("layer without noise", "layer_without_noise", "layer without noise"),
    Pitfall("seed reused at every step", "seed_reused", "seed reused"),
    Pitfall("noise scaled by the drawn batch", "noise_scaled_by_the_batch", "noise scaled by the batch"),
    Pitfall("floor of the batch size", "floor_of_the_batch", "floor of the batch size"),
    Pitfall("shuffled, accounted as Poisson", "shuffled", "shuffled"),
    Pitfall("an epoch too few in the accountant", "one_epoch_more", "longer"),
    Pitfall("delta of 1/n for a private n", "delta_of_private_size", None),
    Pitfall("early stopping on private data", "early_stopping", None),
)


def find_in_steps(recorded: str, steps: int, seed: int) -> str:
    """Verdict on a record of so many steps with a pitfall; "" for none.

    Parameters
    ----------
    recorded : str
        See `Pitfall`; "longer" for more steps than the claim is for.
    steps : int
        Steps of the record; the claim is that of an accountant for so many.
    seed : int
        Of the record.
    """
    sampled = recorded in OF_SAMPLING
    noise, rate = (SAMPLED, 0.1) if sampled else (FULL, 1.0)
    claim = ApproxDP(compose_level([Steps(steps, noise, rate)], ApproxDP(1.0, DELTA)) * (1 + 1e-6), DELTA)
    longer = recorded == "longer"
    record = train(
        500_000 + seed,
        rate=rate,
        noise=noise,
        steps=steps * LONGER // 200 if longer else steps,
        pitfall="" if longer else recorded,
    )
    return str(audit_steps(record, claim, alpha=USUAL, seed=seed).verdict)


def steps_needed(recorded: str, runs: int) -> str:
    """Fewest of `STEPS` with which all records with a pitfall are found, and as what."""
    for steps in STEPS:
        verdicts = [find_in_steps(recorded, steps, seed) for seed in range(runs)]
        found = sum(verdict in ("violation", "deviation") for verdict in verdicts)
        if found == runs:
            return f"{steps} ({' or '.join(sorted(set(verdicts)))})"
    return f"{found} of {runs} by {STEPS[-1]}"


def one_training(mutant: str) -> DPSGD:
    """Full batches, or samples for pitfalls of sampling, on images of one pixel each: the canaries."""
    sampled = mutant in ("noise_scaled_by_the_batch", "shuffled")
    steps = 4 if sampled else 2
    return DPSGD(
        LogisticRegression(CANARIES),
        FeatureReader(0),
        0.1,
        math.sqrt(steps) / LEVEL,
        steps,
        rate=1 / steps if sampled else 1.0,
        batch=CANARIES / 2 / steps if sampled else CANARIES / 2,
        release="weights",
    )


def find_in_one_run(mutant: str, seed: int) -> str:
    """Verdict on the scores of canaries of one run with a pitfall; "" for none.

    Parameters
    ----------
    mutant : str
        Of `dp_sgd_mutants`.
    seed : int
        Of coins and training.
    """
    base = one_training(mutant)
    training: Any = MUTANTS[mutant].build(base) if mutant else base
    canaries = np.column_stack([20.0 * np.eye(CANARIES), np.ones(CANARIES)])

    def make(data: Rows, rng: np.random.Generator) -> Rows:
        return np.asarray(training(data, 1, rng)[0])

    def score(weights: Rows, listed: Rows) -> Rows:
        return np.asarray(listed[:, :-1] @ weights[:-1])

    # The level of full batches; that of samples is less, so that this claim holds for them too.
    claim = GaussianDP(LEVEL)
    return str(audit_one_run(make, np.zeros((0, CANARIES + 1)), canaries, score, claim, seed=seed).verdict)


def claims_of(mutant: str) -> dict[str, Claim]:
    """Claims of a pitfall, by level."""
    listed = registry.load_claims(["experiments/training"])
    return {c.draft.level: c for c in listed if c.entry == "further/dp_sgd" and c.draft.case == mutant}


def runs_needed(claim: Claim, seeds: int) -> str:
    """Median number of runs until a pitfall is refuted, both datasets together."""
    found = [audit_claim(claim, Run(level="smoke", seed=seed), SHARE) for seed in range(seeds)]
    refuted = [result.draws for result in found if result.verdict == Verdict.VIOLATION]
    return f"{statistics.median(refuted):,.0f}" if len(refuted) == seeds else f"{len(refuted)} of {seeds}"


def rows(runs: int) -> Iterator[str]:
    """Table of pitfalls by rung."""
    yield "| pitfall | every step of a run: steps | one run: found | many runs: runs | stated distribution |"
    yield "|---|---|---:|---:|---|"
    held = sum(find_in_steps("", 200, seed) == "consistent" for seed in range(runs))
    single = sum(find_in_one_run("", seed) == "consistent" for seed in range(runs))
    yield f"| none | nothing in {held} of {runs} by 200 | {runs - single} of {runs} | | |"
    for one in PITFALLS:
        steps = "no step shows it" if one.recorded is None else steps_needed(one.recorded, runs)
        found = sum(find_in_one_run(one.mutant, seed) == "violation" for seed in range(runs)) if _in_one(one) else None
        levels = claims_of(one.mutant)
        stated = "certain" if "L0" in levels else "has none"
        yield (
            f"| {one.name} | {steps} | {'not tried' if found is None else f'{found} of {runs}'} "
            f"| {runs_needed(levels['L1'], runs)} | {stated} |"
        )


def _in_one(one: Pitfall) -> bool:
    """Whether so many canaries can be in a run with the pitfall.

    Early stopping is seen by one canary that decides the loss, and a batch's floor or a private number of rows where
    there are few.
    """
    return one.mutant not in ("early_stopping", "floor_of_the_batch", "delta_of_private_size")


TEXT = """# Pitfalls of training, by rung

See [training](../docs/training.md). {} runs each. Every step of a run: `benchmarks/recorded_training.py`, the fewest of
{} steps with which all records are found at alpha = 1 %, against the claim of an accountant for as many steps. One
run: {:,} canaries in `mechanisms/training`, each of a feature of its own, at 0.5-GDP, nothing assumed. Many runs: the
claims of `experiments/training`, the median number of models until a refutation at alpha = 1e-5. Stated distribution:
whether the pitfall's readings have one, whose level is above the claim.
"""


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="runs of each pitfall at each rung")
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    asked = parser.parse_args()
    said = TEXT.format(asked.runs, ", ".join(map(str, STEPS)), CANARIES)
    page = "\n".join([*said.splitlines(), "", *rows(asked.runs), "", "Made by `python -m benchmarks.training_rungs`."])
    print(page)
    if asked.out is not None:
        asked.out.write_text(page + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
