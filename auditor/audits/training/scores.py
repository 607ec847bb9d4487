"""Canary scores of one training run, held against a claim, on a stated assumption.

Canaries were included in the training data by fair coins. Each has a score, such as its loss under the trained model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from auditor.audits.finish import fields_of_claim
from auditor.audits.given_numbers import read_numbers
from auditor.audits.loop import ChunkRule
from auditor.audits.training.draw_bets import bet_on_draws, conclude_result, describe_bets
from auditor.audits.training.score_pictures import count_scores, trace_tradeoff
from auditor.audits.training.training_call import write_training_call
from auditor.errors import SpecificationError, check_alpha, check_id, check_positive
from auditor.evidence.one_run import (
    GuessWealth,
    bound_correct_guesses,
    exceeds_curve,
    find_largest_level,
    find_rejected_level,
)
from auditor.privacy.guarantees import ApproxDP, Guarantee, PureDP
from auditor.results import AuditResult, Verdict, wealth_fields
from auditor.targets.process_settings import keep_apart
from auditor.targets.sampler import check_seed, make_generator

Array = NDArray[np.float64]

#: What may be assumed beyond the claim and the fair coins.
NOTHING, INDEPENDENT = "nothing", "independent-canaries"
ASSUMPTIONS = (NOTHING, INDEPENDENT)
#: Scores between which events are learned anew. They are there at once, so that learning costs no draws but time: of
#: Gaussian scores the mean bound was .775 at the growth of other audits, .784 at half of it, .792 here.
CHUNKS = ChunkRule(16, growth=0.05, smallest=4)
#: Parts of the canaries that are guessed about, where no number is given; each has its share of alpha, half of it for
#: each direction. Arbitrary.
PARTS = (0.1, 0.25, 0.5, 1.0)
#: Probability of numbers in and out as unequal as these from fair coins, below which scores are refused.
UNFAIR = 1e-6
#: Points of the path of the wealth that are kept, at most; arbitrary.
_SHOWN = 200
#: Coins that each side of the order is taken to have had before any was opened, half of them right.
_PRIOR = 2.0

_SAYS = {
    NOTHING: "assumes fair coins and nothing else: it holds however canaries interact",
    INDEPENDENT: "assumes that canaries do not interact; if they do, the level may be far below this bound",
}


@dataclass(frozen=True)
class Scores:
    """Scores of canaries in the training data, and of others.

    Parameters
    ----------
    inside, outside : ndarray of shape (n_inside,), (n_outside,)
        Finite numbers.
    """

    inside: Array
    outside: Array

    @property
    def canaries(self) -> int:
        """Number of canaries."""
        return len(self.inside) + len(self.outside)

    def shuffled(self, seed: int) -> tuple[Array, NDArray[np.bool_]]:
        """Scores of all canaries with their coins, in a random order.

        Parameters
        ----------
        seed : int
            Seed of the order.
        """
        scores = np.concatenate([self.inside, self.outside])
        included = np.arange(len(scores)) < len(self.inside)
        order = make_generator(seed, "scores", "order").permutation(len(scores))
        return scores[order], included[order]


def read_scores(inside: ArrayLike, outside: ArrayLike) -> Scores:
    """Check scores of canaries.

    Parameters
    ----------
    inside, outside : array_like
        Scores of included and of excluded canaries.

    Raises
    ------
    SpecificationError
        If they are no finite numbers, if there are none, or if fair coins do not give such unequal numbers.
    """
    checked = []
    for name, given in (("inside", inside), ("outside", outside)):
        values = read_numbers(f"scores {name} must be numbers", given)
        if values.ndim != 1:
            raise SpecificationError(f"scores {name} must be a list of numbers, got shape {values.shape}")
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise SpecificationError(f"scores {name}: number {wrong[0] + 1} is {values[wrong[0]]}, not finite")
        checked.append(values)
    scores = Scores(*checked)
    if scores.canaries < 2:
        raise SpecificationError(f"expected scores of at least 2 canaries, got {scores.canaries}")
    a, m = len(scores.inside), scores.canaries
    if 2 * float(stats.binom.cdf(min(a, m - a), m, 0.5)) < UNFAIR:
        raise SpecificationError(
            f"{a} canaries inside and {m - a} outside are not from fair coins (probability below {UNFAIR:g}): include "
            "each canary with probability 1/2"
        )
    return scores


def check_scores_audit(
    canaries: int,
    claim: Guarantee,
    assume: str,
    alpha: float,
    guesses: int | None,
    detect: float | None,
    seed: int,
    id_: str,
) -> None:
    """Raise a SpecificationError for what `audit_scores` does not take."""
    if not isinstance(claim, Guarantee):
        raise SpecificationError(f"claim must be a guarantee such as PureDP(1.0), got {claim!r}")
    if assume not in ASSUMPTIONS:
        raise SpecificationError(f"assume must be one of {', '.join(ASSUMPTIONS)}, got {assume!r}")
    check_alpha(alpha)
    check_seed(seed)
    check_id(id_)
    if detect is not None:
        check_positive("detect", detect)
    whole = isinstance(guesses, int | np.integer) and not isinstance(guesses, bool)
    if guesses is not None and not (whole and 1 <= guesses <= canaries):
        raise SpecificationError(f"guesses must be an integer from 1 to {canaries}, got {guesses!r}")
    if guesses is not None and (assume == INDEPENDENT or isinstance(claim, PureDP)):
        raise SpecificationError(
            f"guesses = {guesses} has no effect on bets, by which {claim} is audited: leave it out"
        )


@keep_apart()
def audit_scores(
    inside: ArrayLike,
    outside: ArrayLike,
    claim: Guarantee,
    *,
    assume: str = NOTHING,
    alpha: float = 0.01,
    guesses: int | None = None,
    detect: float | None = None,
    seed: int = 0,
    id: str = "scores/L1/claim/given",  # noqa: A002 - it is the result's id
) -> AuditResult:
    """Audit a training run from the scores of its canaries.

    Each canary was included by a fair coin of its own. A canary's score is any function of what is released, such as
    its loss. Whether high or low scores speak for inclusion is learned.

    Parameters
    ----------
    inside, outside : array_like of shape (n_inside,), (n_outside,)
        Scores of the canaries that were included, and of those that were not.
    claim : Guarantee
        What is claimed of the whole run, for adding or removing one canary.
    assume : {"nothing", "independent-canaries"}
        What the bound may rest on beyond the claim and the coins. With "nothing" it is about guesses of coins: anytime
        valid bets for pure DP, the bound of Steinke et al. for approximate DP, the recursion of Mahloujifar et al. for
        other notions. With "independent-canaries" every canary is a draw.
    alpha : float
        Probability of a false alarm, in (0, 1).
    guesses : int, optional
        Canaries that are guessed about, fixed before the scores are seen. By default several numbers share alpha.
        Refused for pure DP and for independent canaries, which are bet on.
    detect : float, optional
        Level that an event of probability 0.01 is to be found at, with independent canaries; default twice the claim.
        With "nothing" it is a level that the canaries have to be able to certify; default more than the claim.
    seed : int
        Seed of the order of canaries, and of equal scores.
    id : str
        The result's id.

    Returns
    -------
    AuditResult
        ``draws`` is the number of canaries; ``caveat`` says what is assumed. "inconclusive" where so few canaries
        cannot show what is to be found, with "nothing" whatever their scores.

    Raises
    ------
    SpecificationError
        If an argument is not what it must be.
    """
    scores = read_scores(inside, outside)
    check_scores_audit(scores.canaries, claim, assume, alpha, guesses, detect, seed, id)
    asked = {"assume": assume, "alpha": alpha, "guesses": guesses, "detect": detect, "seed": seed, "id": id}
    labels = {
        **fields_of_claim(id, id.partition("/")[0], claim, "L1"),
        "alpha": alpha,
        "expected": Verdict.CONSISTENT,
        "mechanism": "canary scores",
        "title": "Canary scores of one training run",
        "draws": scores.canaries,
        "pair": f"{len(scores.inside):,} canaries in the training data, {len(scores.outside):,} not, by fair coins",
        "caveat": _SAYS[assume],
        "stop": "budget",
        "tradeoff": trace_tradeoff(scores.inside, scores.outside, claim),
        "replay": write_training_call("audit_scores", {"inside": inside, "outside": outside}, claim, asked),
    }
    if assume == INDEPENDENT:
        return _from_draws(scores, claim, alpha, detect, seed, labels)
    if isinstance(claim, PureDP):
        return _from_bets(scores, claim, alpha, detect, seed, labels)
    return _from_guesses(scores, claim, alpha, guesses, detect, seed, labels)


def _describe_scores(scores: Scores) -> dict[str, Any]:
    """Number of canaries, and what a plot of their scores shows."""
    return {"canaries": scores.canaries, "canary_scores": count_scores(scores.inside, scores.outside)}


# ------------------------------------------------------------------------------------- nothing is assumed


def _describe_out_of_reach(canaries: int, ceiling: float, claim: Guarantee, detect: float | None) -> str:
    """Describe what so few canaries cannot show, whatever their scores are; empty if there is nothing."""
    if ceiling > claim.level and (detect is None or ceiling >= detect):
        return ""
    wanted = f"{claim.level:.4g} is claimed" if detect is None else f"{detect:.4g} was to be found"
    return f"{canaries:,} canaries certify at most {ceiling:.4g}, whatever their scores are, and {wanted}"


def _from_bets(
    scores: Scores, claim: PureDP, alpha: float, detect: float | None, seed: int, labels: Mapping[str, Any]
) -> AuditResult:
    """Bets on guesses, the most extreme scores first, against pure DP."""
    right, sure = guess_in_order(scores, claim.level, seed)
    wealth = GuessWealth(right, sure)
    bound = find_rejected_level(lambda level: wealth.rejects(level, alpha), claim.level)
    path = wealth.path(claim.level)
    made = np.flatnonzero(sure > 0)
    best = int(np.argmax(path)) + 1
    ceiling = find_rejected_level(lambda e: GuessWealth(*np.ones((2, scores.canaries))).rejects(e, alpha), 0.0)
    shown = sorted({round(k) for k in np.linspace(0, len(path) - 1, min(len(path), _SHOWN))})
    return conclude_result(
        labels,
        wealth.rejects(claim.level, alpha),
        bound,
        ceiling=ceiling,
        detect=detect,
        missed=_describe_out_of_reach(scores.canaries, ceiling, claim, detect),
        event=f"{int(right[made[made < best]].sum()):,} of {int((made < best).sum()):,} guesses are right",
        record={"assumes": NOTHING, "guesses": int((made < best).sum())} | _describe_scores(scores),
        **wealth_fields([(k + 1, float(path[k])) for k in shown], float(max(path.max(), 0.0))),
    )


def guess_in_order(scores: Scores, epsilon: float, seed: int) -> tuple[Array, Array]:
    """Guess coins one after another, with a bet on each.

    The highest and the lowest scores in turn, towards the middle. What is guessed at an end is what most of the coins
    that were opened there have been, and the bet is what grows best if that share is the truth.

    Valid because: the order is a function of the scores, and each guess and bet one of the coins opened before.

    Parameters
    ----------
    scores : Scores
        The scores.
    epsilon : float
        The claimed level, to which bets are fitted; any bets are valid at any level.
    seed : int
        Seed of the order of equal scores.

    Returns
    -------
    right, sure : ndarray of shape (n_canaries,)
        1.0 where the guess was right, and the part of the stake that is put on it.
    """
    values, included = scores.shuffled(seed)
    order = np.argsort(values, kind="stable")  # of a random order, so that ties are broken by it
    m = len(order)
    high, low = order[::-1], order
    ends = np.empty(m, np.intp)
    ends[0::2], ends[1::2] = high[: (m + 1) // 2], low[: m // 2]
    opened = included[ends].astype(np.float64)
    right, sure = np.empty(m), np.empty(m)
    bar = 1.0 / (1.0 + math.exp(-epsilon))
    for side, prior in ((0, 1.0), (1, 0.0)):  # before anything is known a high score speaks for inclusion
        coins = opened[side::2]
        seen = np.arange(len(coins))
        share = (np.cumsum(coins) - coins + _PRIOR * (0.5 + 0.25 * (2 * prior - 1))) / (seen + _PRIOR)
        guess = share >= 0.5
        likely = np.maximum(share, 1.0 - share)
        right[side::2] = coins == guess
        # The best part of the largest bet, p / (1 - p) (likely / p - 1) = (likely - p) / (1 - p), and never nothing.
        with np.errstate(divide="ignore"):  # no guess is likelier than an epsilon of 37 and more allows
            sure[side::2] = np.clip((likely - bar) / (1.0 - bar), 0.05, 1.0)
    return right, sure


def _from_guesses(
    scores: Scores,
    claim: Guarantee,
    alpha: float,
    guesses: int | None,
    detect: float | None,
    seed: int,
    labels: Mapping[str, Any],
) -> AuditResult:
    """Numbers of right guesses at both ends of the scores, for numbers that were fixed before."""
    m = scores.canaries
    numbers = [guesses] if guesses is not None else sorted({max(1, round(part * m)) for part in PARTS})
    values, included = scores.shuffled(seed)
    order = np.argsort(values, kind="stable")
    tries = []
    for r in numbers:
        low, high = included[order[: r // 2]], included[order[m - (r - r // 2) :]]
        right = int(high.sum() + (~low).sum())
        tries += [(r, right), (r, r - right)]
    share, highest = alpha / len(tries), min(40.0, claim.highest)

    def rejects(one: tuple[int, int], level: float) -> bool:
        return _refutes(claim, level, one[1], one[0], m, share)

    # Of a number and its other direction one at least is there.
    best, bound = find_largest_level([one for one in tries if 2 * one[1] >= one[0]], rejects, claim.level, highest)
    ceiling = find_largest_level([(r, r) for r in reversed(numbers)], rejects, 0.0, highest)[1]
    return conclude_result(
        labels,
        _refutes(claim, claim.level, best[1], best[0], m, share),
        bound,
        ceiling=ceiling,
        detect=detect,
        missed=_describe_out_of_reach(m, ceiling, claim, detect),
        event=f"{best[1]:,} of {best[0]:,} guesses are right",
        record={"assumes": NOTHING, "guesses": [list(t) for t in tries]} | _describe_scores(scores),
    )


def _refutes(claim: Guarantee, level: float, right: int, guesses: int, canaries: int, alpha: float) -> bool:
    if 2 * right < guesses:
        return False
    if isinstance(claim, ApproxDP):
        return bound_correct_guesses(right, guesses, canaries, level, claim.delta) <= alpha
    return exceeds_curve(right, guesses, canaries, claim, level, alpha)


# ------------------------------------------------------------------------------------- canaries do not interact


def _from_draws(
    scores: Scores, claim: Guarantee, alpha: float, detect: float | None, seed: int, labels: Mapping[str, Any]
) -> AuditResult:
    """Bets on events of single scores, canary after canary in a random order.

    Valid because: canaries that do not interact are independent draws, in an order that does not depend on scores; see
    `bet_on_draws`.
    """
    bets = bet_on_draws(*scores.shuffled(seed), claim, alpha, CHUNKS, deadline=True)
    refuted, bound, fields = describe_bets(bets, claim, alpha, detect)
    return conclude_result(labels, refuted, bound, record={"assumes": INDEPENDENT} | _describe_scores(scores), **fields)
