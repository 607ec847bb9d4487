"""The sparse vector technique: six published variants, two of them private.

An interactive mechanism: the pool is the answers of a vector query, any of which may be asked at any time and as often
as one likes. Called directly it is asked all of them, once each, in their order. Exact distributions are in
`mechanisms.selection.sparse_vector_distribution`.

Textbook orientation: "above" is the costly outcome, and a run stops after `cutoff` of them. (The
document 004 prints the mirror image; negate answers and threshold to go from one to the other.)

Source: Lyu, Su and Li (2017), Figure 1; catalogue 004, sections 0.2 to 0.4 and svt_mutants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from auditor.privacy.exact import FiniteLaw
from auditor.targets.analysts import FixedList
from auditor.targets.interactive import SKIP, Queries, pool_indices
from auditor.targets.transcripts import transcript_law, transcripts
from mechanisms.base.mechanism import (
    Dataset,
    FloatArray,
    Mutant,
    require,
    require_draws,
    require_positive,
    tabulate_mutants,
)
from mechanisms.base.noise import without_low_bits
from mechanisms.base.queries import Query
from mechanisms.selection.sparse_vector_distribution import (
    NoiseKind,
    SparseVectorBranches,
    noiseless_law,
    shared_draw_law,
)

VariantName: TypeAlias = Literal["V1", "V2", "V3", "V4", "V5", "V6"]
Outcome: TypeAlias = Literal["above", "below"]
Redraws: TypeAlias = Literal["never", "after_above", "always"]
Draws: TypeAlias = Literal["every_query", "once"]

#: Most noisy answers that are drawn together; more are drawn query by query.
_AT_ONCE = 1 << 12


@dataclass(frozen=True)
class SparseVectorVariant:
    """One row of the table, noise scales in units of sensitivity / epsilon.

    Parameters
    ----------
    threshold, query : float
        Scales of threshold and query noise; 0 is no noise.
    threshold_by_cutoff, query_by_cutoff : bool
        Whether the scale is multiplied by the cutoff.
    redraws : {"never", "after_above", "always"}
        When the threshold noise is drawn anew.
    stops : bool
        Whether the run ends after `cutoff` outcomes of the kind that is counted.
    counts : {"above", "below"}
        That kind.
    releases : {"above", "below"} or None
        Outcome in the place of which the noisy answer itself is released.
    threshold_noise, query_noise : {"laplace", "gaussian", "exponential", "negative_exponential"}
        Kind of noise; its scale is the standard deviation of a Gaussian, the mean of an exponential (one-sided), or
        of its negative.
    query_draws : {"every_query", "once"}
        When query noise is drawn: for every query, or once in a run, for all of them.
    """

    threshold: float
    query: float
    threshold_by_cutoff: bool = False
    query_by_cutoff: bool = False
    redraws: Redraws = "never"
    stops: bool = True
    counts: Outcome = "above"
    releases: Outcome | None = None
    threshold_noise: NoiseKind = "laplace"
    query_noise: NoiseKind = "laplace"
    query_draws: Draws = "every_query"

    def __post_init__(self) -> None:
        for scale in (self.threshold, self.query):
            require(0 <= scale < math.inf, "a finite scale >= 0", scale)
        require(self.redraws in get_args(Redraws), f"redraws among {get_args(Redraws)}", self.redraws)
        require(self.counts in get_args(Outcome), f"counts among {get_args(Outcome)}", self.counts)
        require(self.releases in (None, *get_args(Outcome)), f"releases among {get_args(Outcome)}", self.releases)
        for kind in (self.threshold_noise, self.query_noise):
            require(kind in get_args(NoiseKind), f"noise among {get_args(NoiseKind)}", kind)
        require(self.query_draws in get_args(Draws), f"query_draws among {get_args(Draws)}", self.query_draws)


# With the budget eps split into eps1 for the threshold and eps2 for the queries.
VARIANTS: dict[str, SparseVectorVariant] = {
    # Lyu et al.: eps1 = eps2 = eps/2, scales 1/eps1 and 2c/eps2.
    "V1": SparseVectorVariant(2.0, 4.0, query_by_cutoff=True),
    # Dwork and Roth: eps1 = eps2 = eps/2, scales c/eps1 (redrawn: c/eps2) and 2c/eps1.
    "V2": SparseVectorVariant(2.0, 4.0, threshold_by_cutoff=True, query_by_cutoff=True, redraws="after_above"),
    # Roth 2011: eps1 = eps2 = eps/2, scales 1/eps1 and c/eps2, releases the compared answer.
    "V3": SparseVectorVariant(2.0, 2.0, query_by_cutoff=True, releases="above"),
    # Lee and Clifton 2014: eps1 = eps/4, eps2 = 3 eps/4, scales 1/eps1 and 1/eps2.
    "V4": SparseVectorVariant(4.0, 4.0 / 3.0),
    # Stoddard et al. 2014: eps1 = eps/2, no query noise, no cutoff.
    "V5": SparseVectorVariant(2.0, 0.0, stops=False),
    # Chen et al. 2015: eps1 = eps2 = eps/2, scales 1/eps1 and 1/eps2, no cutoff.
    "V6": SparseVectorVariant(2.0, 2.0, stops=False),
}


@dataclass(frozen=True)
class SparseVector:
    """Answer "is this query above the threshold?" for a stream of queries.

    Parameters
    ----------
    query : Query
        The pool's answers, shape (m,); each moves by at most its linf sensitivity.
    epsilon : float
        Claimed pure level.
    threshold : float, default 0.0
        Public.
    cutoff : int, default 1
        Most "above" answers; V5 and V6 ignore it.
    variant : str or SparseVectorVariant, default "V1"
        Row of `VARIANTS`, or a row of one's own. V1 and V2 satisfy the claim, for adaptive analysts too; see
        `true_epsilon` for the others.

    Notes
    -----
    Outputs have shape (n, m). All variants but V3: int8, 1 above, 0 below, -1 not asked because
    the run has stopped. V3: float64, the released noisy answer where above (without its low-order
    bits), NaN elsewhere. In a dialogue, where an analyst must tell "below" from "stopped", the answers of V3 are -inf
    where below, and NaN only where stopped or not asked.
    """

    query: Query
    epsilon: float
    threshold: float = 0.0
    cutoff: int = 1
    variant: VariantName | SparseVectorVariant = "V1"

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)
        require(math.isfinite(self.threshold), "a finite threshold", self.threshold)
        require(isinstance(self.cutoff, (int, np.integer)) and self.cutoff >= 1, "a cutoff >= 1", self.cutoff)
        known = isinstance(self.variant, SparseVectorVariant) or self.variant in VARIANTS
        require(known, f"a SparseVectorVariant, or one among {list(VARIANTS)}", self.variant)

    @property
    def spec(self) -> SparseVectorVariant:
        """The variant's row."""
        return self.variant if isinstance(self.variant, SparseVectorVariant) else VARIANTS[self.variant]

    @property
    def threshold_scale(self) -> float:
        """Scale of the threshold noise; 0 for none."""
        factor = self.cutoff if self.spec.threshold_by_cutoff else 1
        return self.spec.threshold * factor * self.query.linf_sensitivity / self.epsilon

    @property
    def query_scale(self) -> float:
        """Scale of the query noise; 0 for none."""
        factor = self.cutoff if self.spec.query_by_cutoff else 1
        return self.spec.query * factor * self.query.linf_sensitivity / self.epsilon

    @property
    def true_epsilon(self) -> float:
        """Supremum of the privacy loss over all pairs, all analysts and all lengths of the stream.

        With sensitivity D and scales b_w, b_q: ``D/b_w + c 2D/b_q``, and ``c (D/b_w + 2D/b_q)`` if the threshold is
        redrawn after "above". Infinite if nothing bounds the number of "above", if a noise is missing or is not
        Laplace, if answers are released (V3: every cheap "below" before a released answer costs up to D/b_q), if the
        threshold is redrawn always (then every answer costs), and if queries share a draw.
        """
        spec = self.spec
        bounded = spec.stops and spec.counts == "above" and spec.releases is None and spec.redraws != "always"
        laplace = spec.threshold_noise == spec.query_noise == "laplace" and spec.query_draws == "every_query"
        if not (bounded and laplace and self.threshold_scale and self.query_scale):
            return math.inf
        sensitivity = self.query.linf_sensitivity
        thresholds = self.cutoff if spec.redraws == "after_above" else 1
        return sensitivity * (thresholds / self.threshold_scale + 2.0 * self.cutoff / self.query_scale)

    def answers(self, data: Dataset) -> FloatArray:
        """Return the pool's answers, shape (m,); ValueError for a single number."""
        answers = self.query(data)
        require(answers.ndim == 1 and answers.size > 0, "a vector of answers", answers)
        return answers

    def start(self, data: Dataset, n: int, rng: np.random.Generator) -> SparseVectorSession:
        """Begin `n` runs on `data`; see `auditor.targets.interactive.Interactive`."""
        require_draws(n)
        return SparseVectorSession(self, self.answers(data), n, rng)

    def __call__(self, data: Dataset, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `n` transcripts of the whole pool in its order; shape (n, m), see the class for their coding."""
        if self.spec.releases is None:
            require_draws(n)
            return self._draw_signs(self.answers(data), n, rng)
        session = self.start(data, n, rng)
        outputs = transcripts(session, FixedList(range(session.pool)), n, rng)
        return np.where(np.isfinite(outputs), outputs, np.nan)

    def _draw_signs(self, answers: FloatArray, n: int, rng: np.random.Generator) -> NDArray[np.int8]:
        """Draw transcripts of 1, 0 and -1: those of a session, without what only dialogues need."""
        spec, rounds = self.spec, answers.size
        bar = self.draw_thresholds(n, rng)
        shared = self.draw_query_noise(n, rng) if spec.query_draws == "once" else None
        outputs = np.empty((rounds, n), dtype=np.int8)
        if spec.redraws == "never" and rounds * n <= _AT_ONCE:
            fresh = self.draw_query_noise((rounds, n), rng) if shared is None else shared
            np.greater_equal(answers[:, None] + fresh, bar, out=outputs, casting="unsafe")
            if spec.stops:
                counts = outputs[:-1] == (1 if spec.counts == "above" else 0)
                outputs[1:][np.cumsum(counts, axis=0) >= self.cutoff] = -1
            return outputs.T
        scale, cutoff, counted = self.query_scale, self.cutoff, np.zeros(n, dtype=np.int64)
        runs = np.ones(n, dtype=np.bool_)
        for answer, output in zip(answers, outputs, strict=True):
            noise: FloatArray | float = 0.0
            if shared is not None:
                noise = shared
            elif scale:
                noise = _noise(spec.query_noise, scale, n, rng)
            above = np.asarray(answer + noise >= bar)
            output[:] = above
            if spec.stops:
                output[~runs] = -1
                above &= runs
            if spec.redraws != "never":
                redrawn = above if spec.redraws == "after_above" else runs
                if number := int(np.count_nonzero(redrawn)):
                    bar[redrawn] = self.draw_thresholds(number, rng)
            if spec.stops:
                counted += above if spec.counts == "above" else runs & ~above
                np.less(counted, cutoff, out=runs)
        return outputs.T

    def draw_thresholds(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw `n` noisy thresholds, shape (n,)."""
        scale = self.threshold_scale
        return self.threshold + (_noise(self.spec.threshold_noise, scale, n, rng) if scale else np.zeros(n))

    def draw_query_noise(self, shape: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Draw noise of answers, of the given shape."""
        scale = self.query_scale
        return _noise(self.spec.query_noise, scale, shape, rng) if scale else np.zeros(shape)

    def branches(self, data: Dataset, rounds: int) -> SparseVectorBranches:
        """Begin the tree of answers on `data`, for exact distributions; see `auditor.targets.interactive.Branching`."""
        return SparseVectorBranches(self, self.answers(data) - self.threshold, rounds)

    def law(self, data: Dataset) -> FiniteLaw:
        """Exact output distribution on `data` over transcripts of the whole pool, as tuples of 1, 0 and -1.

        See `SparseVectorBranches`. For V5, closed form: transcripts that no threshold produces are absent.

        Raises
        ------
        ValueError
            Where answers are released (see `released_answers`), for one draw that all queries share beyond
            the first "above", and for more transcripts than fit (V6: more than about 12 queries).
        """
        offsets = self.answers(data) - self.threshold
        if self.spec == VARIANTS["V5"]:
            return noiseless_law(offsets, self.threshold_scale)
        if self.spec.query_draws == "once":
            return shared_draw_law(self, offsets)
        fixed = FixedList(range(offsets.size))
        return transcript_law(SparseVectorBranches(self, offsets, fixed.rounds), fixed)


class SparseVectorSession:
    """Runs of sparse vector side by side; see `auditor.targets.interactive.Session`.

    Parameters
    ----------
    mechanism : SparseVector
        Which one.
    answers : ndarray of shape (m,)
        Noiseless answers of the pool on the dataset.
    n : int
        Number of runs.
    rng : numpy.random.Generator
        Source of all noise.
    """

    def __init__(self, mechanism: SparseVector, answers: FloatArray, n: int, rng: np.random.Generator) -> None:
        self._mechanism, self._answers, self._n, self._rng = mechanism, answers, n, rng
        self._bar = mechanism.draw_thresholds(n, rng)
        once = mechanism.spec.query_draws == "once"
        self._shared = mechanism.draw_query_noise(n, rng) if once else None
        self._counted = np.zeros(n, dtype=np.int64)
        self._runs = np.ones(n, dtype=np.bool_)

    @property
    def pool(self) -> int:
        """Number of queries in the pool."""
        return self._answers.size

    @property
    def silence(self) -> int | float:
        """-1, or NaN where answers are released."""
        return -1 if self._mechanism.spec.releases is None else math.nan

    def ask(self, queries: Queries) -> NDArray[Any]:
        """Return shape (n,): 1 above, 0 below; where answers are released those, inf above and -inf below.

        Noise is drawn for all runs, whether or not they have stopped.
        """
        spec = self._mechanism.spec
        indices = pool_indices(queries, self._n, self.pool)
        asked = self._runs & (indices != SKIP)
        noisy = self._answers[indices]
        if self._mechanism.query_scale:
            shared = self._shared
            noisy = noisy + (self._mechanism.draw_query_noise(self._n, self._rng) if shared is None else shared)
        above = asked & (noisy >= self._bar)
        below = asked & ~above
        self._counted += above if spec.counts == "above" else below
        if spec.stops:
            self._runs &= self._counted < self._mechanism.cutoff
        redrawn = {"never": None, "after_above": above, "always": asked}[spec.redraws]
        if redrawn is not None:
            self._bar[redrawn] = self._mechanism.draw_thresholds(int(redrawn.sum()), self._rng)
        if spec.releases is None:
            return np.where(asked, above.view(np.int8), np.int8(self.silence))
        released = above if spec.releases == "above" else below
        unreleased = np.where(above, np.inf, np.where(below, -np.inf, np.nan))
        return np.where(released, without_low_bits(noisy), unreleased)


def _noise(kind: NoiseKind, scale: float, n: int | tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    if kind == "laplace":
        return rng.laplace(0.0, scale, n)
    if kind == "gaussian":
        return rng.normal(0.0, scale, n)
    sign = -1.0 if kind == "negative_exponential" else 1.0
    return sign * rng.exponential(scale, n)


# ------------------------------------------------------------------------------------ mutants


@dataclass(frozen=True)
class OtherVariantTwin:
    """Builds another variant with the same parameters (for `Mutant.build`)."""

    variant: VariantName

    def __call__(self, base: SparseVector) -> SparseVector:
        """Return `base` as this variant."""
        return replace(base, variant=self.variant)


@dataclass(frozen=True)
class OtherVariantLevel:
    """True level of another variant with the same parameters (for `Mutant.true_level`)."""

    variant: VariantName

    def __call__(self, base: SparseVector) -> float:
        """Return that variant's `SparseVector.true_epsilon`."""
        return replace(base, variant=self.variant).true_epsilon


def _mutant(variant: VariantName, authors: str, note: str) -> Mutant[SparseVector]:
    name = f"{variant.lower()}_{authors}"
    return Mutant(name, OtherVariantTwin(variant), OtherVariantLevel(variant), "violation", note)


MUTANTS: dict[str, Mutant[SparseVector]] = tabulate_mutants(
    _mutant("V3", "roth_2011", "releases the compared answer: K cheap answers cost K D/b_q; long runs of 0 against 1"),
    _mutant(
        "V4", "lee_clifton", "(1 + 6c) eps / 4: 0^K 1 against 1^K 0 as K grows; (1 + 3c) eps / 4 for monotone queries"
    ),
    _mutant("V5", "stoddard", "no query noise: 0 1 against 1 0, the order of two answers is published"),
    _mutant("V6", "chen", "no cutoff: r costly answers cost (1/2 + r) eps; 0^K 1^K against 1^K 0^K"),
)
