"""Mutants of the generic private learner.

Source: document 002, section 3.1; catalogue 002, exp_mech_generic_agnostic, exp_mech_realizable and
vc_finite_domain_learner.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    IntArray,
    Mutant,
    TimesEpsilon,
    Twin,
    require,
    require_draws,
    tabulate_mutants,
    unbounded,
)
from mechanisms.learning.agnostic_learner import AgnosticLearner, HypothesisChoice, gumbel_choice
from mechanisms.learning.hypotheses import BoolArray, ThresholdFunctions, counts_of
from mechanisms.selection.exponential import softmax
from mechanisms.selection.noisy_max import laplace_winner

#: Subsets of the data, up to equal records, that a distribution is summed over; arbitrary, a second's work.
_MOST_SUBSETS = 10_000


# ---------------------------------------------------------------------------------- other weights


@dataclass(frozen=True)
class ExponentHalfMissing(AgnosticLearner):
    """Weights ``exp(-eps mistakes)``: the move of the normaliser is forgotten."""

    def exponents(self, data: Dataset) -> FloatArray:
        """Twice the exponents."""
        return 2.0 * super().exponents(data)


@dataclass(frozen=True)
class LearnerEpsilonHalved(AgnosticLearner):
    """Weights ``exp(-eps mistakes / 4)``: half of the level is left unused."""

    def exponents(self, data: Dataset) -> FloatArray:
        """Half the exponents."""
        return 0.5 * super().exponents(data)


@dataclass(frozen=True)
class LearnerScoreOverN(AgnosticLearner):
    """Scores are error rates, of sensitivity 1/n, and are weighted as if it were 1."""

    def exponents(self, data: Dataset) -> FloatArray:
        """Exponents for mistakes divided by the number of records."""
        return super().exponents(data) / len(data)


@dataclass(frozen=True)
class LearnerSignFlipped(AgnosticLearner):
    """Mistakes are sought: as private as the reference, and useless."""

    def exponents(self, data: Dataset) -> FloatArray:
        """Negated exponents."""
        return -super().exponents(data)


@dataclass(frozen=True)
class ParametersWithMultiplicity(AgnosticLearner):
    """A value of the parameters is chosen instead of a labeling: labelings with many values are favoured."""

    def exponents(self, data: Dataset) -> FloatArray:
        """Exponents, and the logarithms of the numbers of values."""
        return super().exponents(data) + np.log(self.hypotheses.parameters())


@dataclass(frozen=True)
class NoisyMinimumOfErrors(HypothesisChoice):
    """The least number of mistakes with Laplace noise of scale ``1 / eps`` added, where ``2 / eps`` is right."""

    def probabilities(self, data: Dataset) -> FloatArray:
        """Probabilities that each hypothesis has the least."""
        return laplace_winner(2.0 * self.exponents(data))

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses; int64 of shape (n,)."""
        require_draws(n)
        scores = 2.0 * self.exponents(data)
        return np.asarray(np.argmax(scores + rng.laplace(size=(n, scores.size)), axis=1), dtype=np.int64)


@dataclass(frozen=True)
class ScoreOnRandomSubset(HypothesisChoice):
    """Mistakes are counted in a random half of the records, and the level is not adjusted."""

    def probabilities(self, data: Dataset) -> FloatArray:
        """Mean of the reference's probabilities over all halves; those of equal records are counted together."""
        counts = counts_of(data, self.hypotheses.domain)
        present = np.argwhere(counts)
        numbers, half = counts[tuple(present.T)], int(counts.sum()) // 2
        require(half >= 1, "two records", counts.sum())
        require(math.prod((numbers + 1).tolist()) <= _MOST_SUBSETS, f"{_MOST_SUBSETS} subsets at most", numbers)
        mean = np.zeros(self.hypotheses.size)
        for taken in itertools.product(*(range(number + 1) for number in numbers)):
            if sum(taken) == half:
                part = np.zeros_like(counts)
                part[tuple(present.T)] = taken
                weight = float(stats.multivariate_hypergeom.pmf(taken, numbers, half))
                wrong = self.hypotheses.mistakes(part).astype(np.float64)
                mean += weight * softmax(-0.5 * self.epsilon * wrong)
        return np.asarray(mean / mean.sum(), dtype=np.float64)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` hypotheses, each from a half of its own; int64 of shape (n,)."""
        require_draws(n)
        counts = counts_of(data, self.hypotheses.domain)
        present = np.argwhere(counts)
        taken = rng.multivariate_hypergeometric(counts[tuple(present.T)], int(counts.sum()) // 2, size=n)
        wrong = self.hypotheses.labels(present[:, 0]) != (present[:, 1] == 1)[:, None]
        return gumbel_choice(-0.5 * self.epsilon * (taken.astype(np.float64) @ wrong), n, rng)


# ----------------------------------------------------------------------- arithmetic and randomness


@dataclass(frozen=True)
class NaiveExponential(HypothesisChoice):
    """Weights are computed as they are printed, and are 0 from ``eps mistakes / 2 > 745`` on."""

    def weights(self, data: Dataset) -> FloatArray:
        """Weights ``exp(-eps mistakes / 2)`` in float64, shape (size,)."""
        return np.asarray(np.exp(self.exponents(data)), dtype=np.float64)

    def probabilities(self, data: Dataset) -> FloatArray:
        """Weights over their sum; ValueError if all of them are 0."""
        weights = self.weights(data)
        require(weights.max() > 0, "a weight above 0", weights)
        return np.asarray(weights / weights.sum(), dtype=np.float64)


@dataclass(frozen=True)
class ArgmaxOnTies(NaiveExponential):
    """Where the largest weights tie, the first of them is chosen; so it is where all of them underflow."""

    def probabilities(self, data: Dataset) -> FloatArray:
        """Weights over their sum, or all mass on the first of several largest ones."""
        weights = self.weights(data)
        if np.count_nonzero(weights == weights.max()) > 1:
            return np.asarray(np.arange(weights.size) == np.argmax(weights), dtype=np.float64)
        return np.asarray(weights / weights.sum(), dtype=np.float64)


@dataclass(frozen=True)
class CumulativeSumInFloat32(HypothesisChoice):
    """Sampled through cumulative sums of weights in float32: a weight below 2^-24 of what came before it is lost."""

    def probabilities(self, data: Dataset) -> FloatArray:
        """Steps of the cumulative sums, over the last one."""
        exponents = self.exponents(data)
        sums = np.cumsum(np.exp(exponents - exponents.max()), dtype=np.float32).astype(np.float64)
        return np.asarray(np.diff(sums, prepend=0.0) / sums[-1], dtype=np.float64)


@dataclass(frozen=True)
class ReusedGumbelNoise(HypothesisChoice):
    """Gumbel noise is drawn once, from a generator of fixed seed, and used in every run."""

    def probabilities(self, data: Dataset) -> FloatArray:
        """All mass on the hypothesis that wins with this noise."""
        noisy = self.exponents(data) + np.random.default_rng(0).gumbel(size=self.hypotheses.size)
        return np.asarray(np.arange(noisy.size) == np.argmax(noisy), dtype=np.float64)


@dataclass(frozen=True)
class LearnerThatNeverFails(HypothesisChoice):
    """The first hypothesis with the fewest mistakes: no noise, and no failure where one is consistent."""

    def probabilities(self, data: Dataset) -> FloatArray:
        """All mass on the best one."""
        wrong = self.mistakes(data)
        return np.asarray(np.arange(wrong.size) == np.argmin(wrong), dtype=np.float64)


# ---------------------------------------------------------------------- classes that depend on data


@dataclass(frozen=True)
class _RestrictedBase(HypothesisChoice):
    """Only some hypotheses are offered, and which ones depends on the data."""

    def offered(self, data: Dataset) -> BoolArray:
        """Hypotheses that are offered, shape (size,)."""
        raise NotImplementedError

    def probabilities(self, data: Dataset) -> FloatArray:
        """Renormalise over what is offered; over all if nothing is."""
        offered = self.offered(data)
        if not offered.any():
            return super().probabilities(data)
        mass = np.zeros(offered.size)
        mass[offered] = softmax(self.exponents(data)[offered])
        return mass


@dataclass(frozen=True)
class OccurringHypothesesOnly(_RestrictedBase):
    """Hypotheses that give label 1 to some point of the sample."""

    def offered(self, data: Dataset) -> BoolArray:
        """Hypotheses that occur, shape (size,)."""
        return np.asarray(self.hypotheses.labels(_points_of(data)).any(axis=0), dtype=np.bool_)


@dataclass(frozen=True)
class ConsistentHypothesesOnly(_RestrictedBase):
    """Hypotheses that make no mistake; all of them if none is consistent."""

    def offered(self, data: Dataset) -> BoolArray:
        """Hypotheses without mistakes, shape (size,)."""
        return np.asarray(self.mistakes(data) == 0, dtype=np.bool_)


@dataclass(frozen=True)
class LabelingsOfSample(_RestrictedBase):
    """One hypothesis, the first one, for each labeling of the points of the sample."""

    def offered(self, data: Dataset) -> BoolArray:
        """The first of those that agree on the sample, shape (size,)."""
        first = np.unique(self.hypotheses.labels(_points_of(data)), axis=1, return_index=True)[1]
        return np.isin(np.arange(self.hypotheses.size), first)


@dataclass(frozen=True)
class GridFromRange(_RestrictedBase):
    """Thresholds on a grid that begins at the least and ends beyond the largest point of the sample."""

    def offered(self, data: Dataset) -> BoolArray:
        """Thresholds that are on the grid, shape (size,)."""
        require(isinstance(self.hypotheses, ThresholdFunctions), "ThresholdFunctions", self.hypotheses)
        x, t = _points_of(data), np.arange(self.hypotheses.size)
        return np.asarray((x.min() <= t) & (t <= x.max() + 1), dtype=np.bool_)


@dataclass(frozen=True)
class DeduplicatedOnSample(HypothesisChoice):
    """One weight for all hypotheses that agree on the points of the sample, shared equally by them."""

    def probabilities(self, data: Dataset) -> FloatArray:
        """Each labeling's probability over the number of hypotheses that have it."""
        labelings = np.unique(
            self.hypotheses.labels(_points_of(data)), axis=1, return_index=True, return_inverse=True, return_counts=True
        )
        first, of_hypothesis, counts = labelings[1], labelings[2].ravel(), labelings[3]
        return np.asarray((softmax(self.exponents(data)[first]) / counts)[of_hypothesis], dtype=np.float64)


def _points_of(data: Dataset) -> IntArray:
    return np.unique(np.asarray(data)[:, 0]).astype(np.int64)


MUTANTS: dict[str, Mutant[AgnosticLearner]] = tabulate_mutants(
    Mutant(
        "half_missing",
        Twin(ExponentHalfMissing),
        TimesEpsilon(2.0),
        "violation",
        "exp(eps q) for exp(eps q / 2): 2 eps - ln(1 + p (e^(2 eps) - 1)) on a flip, 2 eps as p falls to 0",
    ),
    Mutant(
        "eps_halved",
        Twin(LearnerEpsilonHalved),
        TimesEpsilon(0.5),
        "benign",
        "eps / 2 for eps: needs about twice the sample",
    ),
    Mutant(
        "score_over_n",
        Twin(LearnerScoreOverN),
        None,
        "benign",
        "error rates for mistakes: eps over the number of records, and no better than guessing",
    ),
    Mutant(
        "sign_flipped", Twin(LearnerSignFlipped), TimesEpsilon(1.0), "benign", "utility reversed, privacy unchanged"
    ),
    Mutant(
        "parameters_with_multiplicity",
        Twin(ParametersWithMultiplicity),
        TimesEpsilon(1.0),
        "benign",
        "weights times numbers of parameter values, which do not depend on the data",
    ),
    Mutant(
        "noisy_min_lap_1_over_eps",
        Twin(NoisyMinimumOfErrors),
        TimesEpsilon(2.0),
        "violation",
        "report noisy min with noise of scale 1/eps, while mistakes rise and fall: up to 2 eps",
    ),
    Mutant(
        "score_on_random_subset",
        Twin(ScoreOnRandomSubset),
        TimesEpsilon(1.0),
        "benign",
        "mistakes in a random half of the records: more private than claimed",
    ),
    Mutant(
        "exp_underflow",
        Twin(NaiveExponential),
        unbounded,
        "violation",
        "weights that are 0 once eps mistakes / 2 exceeds 745: a hypothesis with one mistake more is impossible",
    ),
    Mutant(
        "argmax_on_ties",
        Twin(ArgmaxOnTies),
        unbounded,
        "violation",
        "the first of those that tie: no other one is possible, as it is when they do not",
    ),
    Mutant(
        "float32_cumulative_sum",
        Twin(CumulativeSumInFloat32),
        unbounded,
        "violation",
        "weights below 2^-24 of the sum before them are lost, those above come out as 2^-23 of it",
    ),
    Mutant(
        "never_fails",
        Twin(LearnerThatNeverFails),
        unbounded,
        "violation",
        "no noise: any pair with different best hypotheses",
    ),
    Mutant("gumbel_noise_reused", Twin(ReusedGumbelNoise), unbounded, "violation", "the output never varies"),
    Mutant(
        "sample_dependent_class",
        Twin(OccurringHypothesesOnly),
        unbounded,
        "violation",
        "hypotheses that occur on the sample: one that occurs in a single record",
    ),
    Mutant(
        "sample_dependent_class__consistent",
        Twin(ConsistentHypothesesOnly),
        unbounded,
        "violation",
        "hypotheses that are consistent with the sample: the first record that contradicts one",
    ),
    Mutant(
        "deduplicated_on_sample",
        Twin(DeduplicatedOnSample),
        None,
        "violation",
        "one weight for hypotheses that agree on the sample: a new point tells one of them from K - 2 others, whose "
        "share it had, so up to about ln(K)",
    ),
    Mutant(
        "labelings_of_the_sample",
        Twin(LabelingsOfSample),
        unbounded,
        "violation",
        "one hypothesis for each labeling of the sample: a new point makes others possible",
    ),
    Mutant(
        "grid_from_data_range",
        Twin(GridFromRange),
        unbounded,
        "violation",
        "a grid from the least to the largest point: the record that has the largest one",
    ),
    Mutant(
        "weighted_by_parameters",
        Twin(ParametersWithMultiplicity),
        TimesEpsilon(1.0),
        "benign",
        "weights times numbers of parameter values, which do not depend on the data",
    ),
)
