"""Exact distributions of private multiplicative weights: its transcripts with finitely many answers.

The noise of the threshold is summed over, everything else in an epoch is independent given it. On the lattice on which
the mechanism draws its noise the integral of the proof is a sum.

Source: document 003, Claim 3.2.2; catalogue 000_001_003, private_multiplicative_weights (exact epoch probability).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from auditor.targets.interactive import SKIP, pool_indices
from mechanisms.base.mechanism import FloatArray, IntArray, require

if TYPE_CHECKING:
    from mechanisms.query_release.multiplicative_weights import MultiplicativeWeights

#: Scales of the threshold's noise that are summed over, on either side: what is left out is e^-40 of the whole.
_REACH = 40.0
#: Branches times thresholds: 128 MB of float64.
_MAX_WORK = 2**24
#: exp(-700) is still a normal double: gaps further from the threshold than this many noise scales would make possible
#: transcripts look impossible.
_MAX_GAP = 700.0
#: Beyond every answer and every threshold, and far from the end of int64.
_FAR = 2**60


class MultiplicativeWeightsBranches:
    """All transcripts that are possible, with the weight of the threshold noise in each (see `Branches`).

    Parameters
    ----------
    mechanism : MultiplicativeWeights
        With cuts, so that answers are integers.
    answers : ndarray of shape (m,), int64
        Noiseless answers of the pool, in lattice steps.

    Raises
    ------
    ValueError
        For a mechanism without cuts, for noise on too fine a lattice, and, later, for gaps too far from the threshold
        and for more transcripts than fit.

    Notes
    -----
    Probabilities are within 1e-13 of their size, and what is left out is below 1e-17 in all.
    """

    def __init__(self, mechanism: MultiplicativeWeights, answers: IntArray) -> None:
        require(mechanism.cuts is not None, "a mechanism with cuts (its answers are not finite)", mechanism.cuts)
        self.silence = int(mechanism.silence)
        self._mechanism, self._answers = mechanism, answers
        self._log_base = math.log1p(mechanism.base - 1.0)
        reach = math.ceil(_REACH / self._log_base) if mechanism.rules.threshold_noise else 0
        require(2 * reach < _MAX_WORK, f"a noise scale of at most {_MAX_WORK / 2 / _REACH:.0f} lattice steps", reach)
        noise = np.arange(-reach, reach + 1)
        self._thresholds = mechanism.threshold + noise
        self._fresh = self._pmf(noise) if reach else np.ones(1)
        ends = np.concatenate([[-_FAR], mechanism.lattice_cuts, [_FAR]])
        self._cells = np.stack([ends[:-1], ends[1:] - 1], axis=1)
        size = mechanism.universe.size
        # For each branch: weights of thresholds jointly with the answers so far, hypothesis, updates; and, once it has
        # halted, its probability alone.
        self._density: list[FloatArray | None] = [self._fresh]
        self._hypothesis = [np.full(size, 1.0 / size)]
        self._updates = [0]
        self._halted = [0.0]

    def ask(self, queries: IntArray) -> tuple[IntArray, NDArray[np.int64]]:
        """See `Branches.ask`. What is impossible is left out, what underflows is refused by `mass`."""
        queries = pool_indices(queries, len(self._density), self._answers.size)
        parents: list[int] = []
        answers: list[int] = []
        old = self._density, self._hypothesis, self._updates, self._halted
        self._density, self._hypothesis, self._updates, self._halted = [], [], [], []
        for k, (density, hypothesis, updates, halted) in enumerate(zip(*old, strict=True)):
            if density is None or queries[k] == SKIP:
                self._append(density, hypothesis, updates, halted)
                parents.append(k)
                answers.append(self.silence)
                continue
            for code, weight in self._split(int(queries[k]), hypothesis):
                joint = density * weight
                # A weight of 0 at all thresholds is an impossible answer: gaps are too near for an underflow. So is a
                # joint one where weights are 0 or 1.
                if not np.any(joint if self._mechanism.rules.compared == "exact" else weight):
                    continue
                parents.append(k)
                answers.append(code)
                self._begin_branch(joint, hypothesis, updates, int(queries[k]), code)
            work = len(parents) * self._fresh.size
            require(work <= _MAX_WORK, f"fewer transcripts: at most {_MAX_WORK} numbers", work)
        return np.array(parents, dtype=np.int64), np.array(answers, dtype=np.int64)

    def mass(self) -> FloatArray:
        """See `Branches.mass`; ValueError if a probability underflows."""
        mass = np.array([h if d is None else float(d.sum()) for d, h in zip(self._density, self._halted, strict=True)])
        require(bool(np.all(mass > 0)), "gaps closer to the threshold: a probability underflows", mass.min())
        return mass

    def _append(self, density: FloatArray | None, hypothesis: FloatArray, updates: int, halted: float) -> None:
        self._density.append(density)
        self._hypothesis.append(hypothesis)
        self._updates.append(updates)
        self._halted.append(halted)

    def _begin_branch(self, density: FloatArray, hypothesis: FloatArray, updates: int, query: int, code: int) -> None:
        """Begin the branch with one more answer."""
        if code == 0:
            self._append(density, hypothesis, updates, 0.0)
            return
        mechanism = self._mechanism
        total = float(density.sum())
        if mechanism.rules.stops and updates + 1 >= mechanism.cap:
            self._append(None, hypothesis, updates + 1, total)
            return
        moved = mechanism.updated(hypothesis[None], np.array([query]), np.array([1 if code > 0 else -1]))[0]
        self._append(total * self._fresh if mechanism.rules.refreshed else density, moved, updates + 1, 0.0)

    def _split(self, query: int, hypothesis: FloatArray) -> list[tuple[int, FloatArray]]:
        """Probability of each code given the threshold; without those on the side that the exact answer is not."""
        rules, bar = self._mechanism.rules, self._thresholds
        gap = int(self._answers[query] - self._mechanism.of_hypothesis(hypothesis[None], query)[0])
        away = abs(abs(gap) - self._mechanism.threshold) * self._log_base
        require(away <= _MAX_GAP, f"gaps within {_MAX_GAP} noise scales of the threshold", away)
        everywhere = np.ones_like(bar)
        if rules.compared == "noisy":
            # No update from -bar + 1 to bar - 1, otherwise the sides begin at these two.
            codes = [(0, self._probability_between(1 - bar, bar - 1, gap))]
            up, down, update = np.maximum(bar, 1), np.minimum(-bar, 0), everywhere
        else:
            update = (abs(gap) >= bar).astype(np.int64)
            codes = [(0, np.asarray(1.0 - update, dtype=np.float64))]
            up, down = everywhere, 0 * everywhere
        for j, (low, high) in enumerate(self._cells):
            if rules.answer == "reused":
                above = self._probability_between(np.maximum(up, low), high * everywhere, gap)
                below = self._probability_between(low * everywhere, np.minimum(down, high), gap)
            else:
                cell = self._probability_between(low, high, gap)
                above = self._probability_between(up, _FAR * everywhere, gap) * cell
                below = self._probability_between(-_FAR * everywhere, down, gap) * cell
            if rules.side == "exact":
                codes.append((1 + j if gap > 0 else -1 - j, update * (above + below)))
            else:
                codes += [(1 + j, update * above), (-1 - j, update * below)]
        return codes

    def _probability_between(self, low: IntArray, high: IntArray, gap: int) -> FloatArray:
        """Probability that gap plus noise is between two integers; without loss of digits in the tails."""
        low, high = np.asarray(low) - gap, np.asarray(high) - gap
        # Where both ends are on one side of 0 the mass is a difference of two tails, elsewhere 1 less two tails.
        right, left = low > 0, high < 0
        near = self._tail(np.where(right, low, np.where(left, -high, 1 - low)))
        far = self._tail(np.where(right, high + 1, np.where(left, 1 - low, high + 1)))
        inside = np.where(right | left, near - far, 1.0 - near - far)
        return np.asarray(np.where(high >= low, inside, 0.0), dtype=np.float64)

    def _tail(self, k: IntArray) -> FloatArray:
        """P[Z >= k] for k >= 0 (k >= 1 in what is used)."""
        return np.asarray(np.exp(-self._log_base * (np.maximum(k, 0) - 1.0)) / (self._mechanism.base + 1.0))

    def _pmf(self, k: IntArray) -> FloatArray:
        a = self._mechanism.base
        return np.asarray(np.exp(-self._log_base * np.abs(k)) * (a - 1.0) / (a + 1.0), dtype=np.float64)
