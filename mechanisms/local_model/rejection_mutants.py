"""Wrong ways to simulate a local randomizer by statistical queries.

None of them is a matter of privacy: what they lose is fidelity to the randomizer, or the algorithm's own terms. Source:
document 002, section 5.1.2, algorithm B_{R,epsilon}; catalogue 002, sq_sim_noninteractive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mechanisms.base.mechanism import Dataset, FloatArray, IntArray, Mutant, require_draws, tabulate_mutants
from mechanisms.base.noise import draw_index
from mechanisms.local_model.rejection_simulation import RejectionSimulation
from mechanisms.local_model.rejection_variants import TruncatedSimulation


@dataclass(frozen=True)
class CoarseTolerance(RejectionSimulation):
    """Queries of tolerance ``beta / (3 t)``: the factor ``e^(-2 epsilon)`` is forgotten."""

    @property
    def tolerance(self) -> float:
        """``beta / (3 t)``."""
        return self.phi


@dataclass(frozen=True)
class AcceptanceWithoutSlack(RejectionSimulation):
    """Acceptance without ``1 + phi``: estimates that are too large have odds above 1, which are cut off."""

    @property
    def ceiling(self) -> float:
        """``e^epsilon``."""
        return self.growth


@dataclass(frozen=True)
class AcceptanceWithoutGrowth(RejectionSimulation):
    """Acceptance without ``e^epsilon``: all outputs that are likelier than on the reference are accepted."""

    @property
    def ceiling(self) -> float:
        """``1 + phi``."""
        return 1.0 + self.phi


@dataclass(frozen=True)
class ReferenceMismatch(RejectionSimulation):
    """Candidates are drawn on the input after the reference, and weighed by the probabilities of the reference."""

    @property
    def drawn_from(self) -> FloatArray:
        """Distribution of the output on the next input (on the first after the last), shape (outputs,)."""
        return np.asarray(self.randomizer.rows[(self.reference + 1) % self.inputs])


@dataclass(frozen=True)
class TwoToTheEpsilon(RejectionSimulation):
    """``2^epsilon`` for ``e^epsilon``: queries leave [-1, 1] and odds exceed 1."""

    @property
    def growth(self) -> float:
        """``2^epsilon``."""
        return float(2.0**self.epsilon)


@dataclass(frozen=True)
class LastRejectedAtTheCap(TruncatedSimulation):
    """At the cap, the last candidate is output although it was rejected."""

    def output_law(self, data: Dataset) -> FloatArray:
        """Exact distribution of the output, shape (outputs,), for an oracle that draws nothing."""
        accepted, none = self._accepted_masses(data)
        hits = self.hits(data)
        last = hits[(self.candidates - 1) % len(hits)]
        return np.asarray(accepted + none * (self.drawn_from - last) / (1.0 - last.sum()))

    def rejected(self, outputs: IntArray, candidates: IntArray, undecided: Any) -> None:
        """They are kept, until the next one is."""
        outputs[undecided] = candidates[undecided]


@dataclass(frozen=True)
class CachedCandidate(RejectionSimulation):
    """The candidate is drawn once and kept between rounds, until it is accepted: the output is a draw of R(0)."""

    def output_law(self, data: Dataset) -> FloatArray:
        """Exact distribution of the output, shape (outputs,)."""
        del data
        return self.drawn_from

    def run(self, data: Dataset, n: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw `n` simulated calls, for an oracle that always gives the same answers."""
        require_draws(n)
        outputs = draw_index(self.drawn_from, n, rng)
        (odds,) = np.clip(self.acceptance(data), 0.0, 1.0)
        return outputs, rng.geometric(odds[outputs]).astype(np.int64)


def _twin(cls: type[RejectionSimulation], **changed: Any) -> Any:
    """Build a mutant with the parameters of the reference."""

    def build(base: RejectionSimulation) -> RejectionSimulation:
        return cls(base.randomizer, base.beta, base.calls, base.oracle, base.reference, **changed)

    return build


MUTANTS: dict[str, Mutant[RejectionSimulation]] = tabulate_mutants(
    Mutant("tau_without_e2eps", _twin(CoarseTolerance), None, "benign", "tolerance beta/(3t): TV 0.64 at eps = 2"),
    Mutant("acceptance_without_slack", _twin(AcceptanceWithoutSlack), None, "benign", "odds of acceptance above 1"),
    Mutant(
        "acceptance_without_e_eps",
        _twin(AcceptanceWithoutGrowth),
        None,
        "benign",
        "odds of acceptance up to e^eps, cut off",
    ),
    Mutant("reference_mismatch", _twin(ReferenceMismatch), None, "benign", "candidates from another input than q"),
    Mutant("two_to_the_eps", _twin(TwoToTheEpsilon), None, "benign", "2^eps for e^eps"),
    Mutant(
        "fresh_draw_at_the_cap",
        _twin(TruncatedSimulation, candidates=2),
        None,
        "benign",
        "after two candidates a fresh draw on the reference input: TV (1 - e^-eps)^N TV(R(0), R(D))",
    ),
    Mutant(
        "last_rejected_at_the_cap",
        _twin(LastRejectedAtTheCap, candidates=2),
        None,
        "benign",
        "after two candidates the rejected one: TV (1 - e^-eps)^(N - 1) TV(R(0), R(D))",
    ),
    Mutant("candidate_cached", _twin(CachedCandidate), None, "benign", "the candidate is kept between rounds"),
)
