"""The contenders of `benchmarks.peers`: what each makes of the same draws."""

from __future__ import annotations

import atexit
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor import GaussianDP, Pair, audit
from auditor.audits.fixed_size import collect_fixed
from auditor.audits.privacy_loop import Evidence, Settings, collect_evidence
from auditor.evidence.binomial import clopper_pearson
from auditor.evidence.lower_bound import level_grid, lower_bound
from auditor.privacy.guarantees import Guarantee
from auditor.targets.sampler import Sampler
from benchmarks.peers.cases import ALPHA, CLAIMED, PairOfDraws, PeerCase
from benchmarks.peers.process import PeerAnswer, PeerCommand, PeerProcess
from mechanisms.additive_noise.gaussian import analytic_mu

DPAUDIT, ORACLE, SPLIT = "dpaudit", "oracle: best event known, Clopper-Pearson", "split-sample Clopper-Pearson"
#: Bounds of the peer by the name that its helper has for them: its documented default, the strategy that chooses its
#: threshold on other draws, and the one for Gaussian DP.
PEERS = {
    "bonferroni": "jax-privacy: Clopper-Pearson, Bonferroni (its default)",
    "split": "jax-privacy: Clopper-Pearson, Split",
    "gdp": "jax-privacy: epsilon_from_gdp",
}
#: Draws a side at which the search for the smallest sample begins, and its steps: a resolution of 19 %.
FEWEST, STEP = 32, 2**0.25

#: Which of the draws are asked for: the first dataset's, or the second's.
_SIDES = Pair(np.array([1]), np.array([0]))


@dataclass
class RecordedDraws:
    """A mechanism that hands out draws made beforehand, in order; each draw once, or again from the start if `again`.

    Parameters
    ----------
    draws : PairOfDraws
    again : bool
        For timing whole audits, whose tests of independence draw beside the budget.
    """

    draws: PairOfDraws
    again: bool = False
    _used: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:  # noqa: ARG002 - they are drawn
        """The next ``n`` outputs of a side; ValueError if there are fewer."""
        side = int(data[0])
        outputs = self.draws.x if side else self.draws.y
        begin = self._used[side]
        self._used[side] = begin + n
        if begin + n <= len(outputs):
            return outputs[begin : begin + n]
        if not self.again:
            raise ValueError(f"{n} draws were asked for after {begin} of {len(outputs)}")
        return outputs[np.arange(begin, begin + n) % len(outputs)]


def contenders(case: PeerCase, peer: bool) -> list[str]:
    """Who has a bound on a case's level; ``peer``: the peer takes part."""
    return [DPAUDIT, ORACLE, SPLIT, *(PEERS[bound] for bound in case.peers if peer)]


def bound(contender: str, case: PeerCase, draws: PairOfDraws, seed: int, command: PeerCommand | None) -> float:
    """A contender's lower bound on the level at confidence 1 - `ALPHA`, from all of the draws.

    Parameters
    ----------
    contender : str
        See `contenders`.
    case : PeerCase
        Where a claim is needed, it is the true one.
    draws : PairOfDraws
    seed : int
        Of what else a contender draws.
    command : PeerCommand or None
        Of the peer.

    Notes
    -----
    Valid because: for dpaudit see `lower_bound`, for the split sample `FixedSize.lower_bound`; the oracle's event is
    chosen from the distributions, not from the draws, so that its two limits, each wrong with probability at most alpha
    / 2, hold together. That the peer's bounds are valid is not taken for granted, but measured.
    """
    if contender == DPAUDIT:
        return bound_bets(bet_on_recorded(case.claim, draws, seed, case.name, stop="budget"), case.claim)
    if contender == SPLIT:
        return bound_split(case.claim, draws, seed, case.name)
    if contender == ORACLE:
        return _known_event_bound(case.claim, draws, case.best(len(draws.x)))
    return level_of_epsilon(case.claim, _ask_peer(contender, case, draws, seed, command).epsilon, case.delta)


def bet_on_recorded(
    claim: Guarantee, draws: PairOfDraws, seed: int, name: str, *, alpha: float = ALPHA, stop: str = "verdict"
) -> Evidence:
    """Dpaudit's bets on recorded draws; ``name`` is a part of the key of its random numbers."""
    settings = Settings(alpha=alpha, draws=2 * len(draws.x), stop=stop, seed=seed)
    return collect_evidence(Sampler(RecordedDraws(draws), seed, name), claim, [_SIDES], settings)


def bound_bets(evidence: Evidence, claim: Guarantee, alpha: float = ALPHA) -> float:
    """Lower bound on the level by dpaudit's bets, see `lower_bound`."""
    return lower_bound(evidence.chunks, claim, level_grid(claim.level, claim.highest, claim.unit), alpha)


def bound_split(claim: Guarantee, draws: PairOfDraws, seed: int, name: str, *, alpha: float = ALPHA) -> float:
    """Lower bound by Clopper and Pearson on the second half of the draws, for an event from the first."""
    settings = Settings(alpha=alpha, draws=2 * len(draws.x), seed=seed, method="clopper-pearson")
    return collect_fixed(Sampler(RecordedDraws(draws), seed, name), claim, [_SIDES], settings).lower_bound()


def verdict_draws(case: PeerCase, draws: PairOfDraws, seed: int) -> float:
    """Draws a side after which dpaudit refutes the claim that is too small; infinite if it does not."""
    evidence = bet_on_recorded(case.too_small, draws, seed, case.name)
    return evidence.n if evidence.refuted(ALPHA) else math.inf


def smallest(
    contender: str, case: PeerCase, samples: Sequence[PairOfDraws], command: PeerCommand | None, fewest: int = FEWEST
) -> float:
    """Smallest number of draws a side at which a fixed-size bound refutes the claim in at least half of the samples.

    What somebody needs who knows the number beforehand. It grows geometrically, and is then halved in: the share of
    samples is taken to grow with the number. Infinite if even whole samples are too small.
    """
    most, level = len(samples[0].x), CLAIMED * case.truth

    def enough(n: int) -> bool:
        missing = math.ceil(len(samples) / 2)
        for seed, draws in enumerate(samples):
            missing -= bound(contender, case, draws.first(n), seed, command) > level
            if missing == 0 or missing > len(samples) - seed - 1:  # whatever the other samples say
                break
        return missing == 0

    steps = [round(fewest * STEP**k) for k in range(math.floor(math.log(most / fewest, STEP)) + 1)]
    low, high = -1, 0  # steps[low] is too small
    while not enough(steps[high]):
        if high == len(steps) - 1:
            return math.inf
        low, high = high, min(high + 4, len(steps) - 1)  # four steps double the number
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(steps[middle]) else (middle, high)
    return steps[high]


def own_seconds(
    contender: str, case: PeerCase, draws: PairOfDraws, command: PeerCommand | None, clock: Any
) -> float | None:
    """Seconds that a contender takes beside sampling, its draws being served from memory; None for the oracle.

    For dpaudit and the split sample a whole audit with its tests of independence, for the peer its library alone.
    ``clock`` is `time.process_time`, or another function that returns seconds.
    """
    if contender == ORACLE:
        return None
    if contender not in (DPAUDIT, SPLIT):
        return _ask_peer(contender, case, draws, 0, command).seconds
    method = "e-process" if contender == DPAUDIT else "clopper-pearson"
    begun = clock()
    audit(
        RecordedDraws(draws, again=True),
        case.claim,
        _SIDES,
        alpha=ALPHA,
        draws=2 * len(draws.x),
        stop="budget",
        method=method,
        id="peers",
    )
    return float(clock() - begun)


def _known_event_bound(claim: Guarantee, draws: PairOfDraws, threshold: float) -> float:
    x, y = (np.array(np.count_nonzero(side >= threshold)) for side in (draws.x, draws.y))
    n = len(draws.x)
    p, q = clopper_pearson(x, n, ALPHA / 2, "lower"), clopper_pearson(y, n, ALPHA / 2, "upper")
    return float(claim.level_of(p, q)) if p > q else 0.0


def _ask_peer(contender: str, case: PeerCase, draws: PairOfDraws, seed: int, command: PeerCommand | None) -> PeerAnswer:
    if command is None:
        raise ValueError(f"{contender!r} needs the peer's command")
    kind = next(kind for kind, name in PEERS.items() if name == contender)
    x, y = (side.astype(np.float64) for side in (draws.x, draws.y))
    return peer_process(command).ask(kind, x, y, alpha=ALPHA, delta=case.delta, seed=seed)


def level_of_epsilon(claim: Guarantee, epsilon: float, delta: float) -> float:
    """The peer's epsilon at ``delta`` as the level of the claim's notion.

    Valid because: a mechanism of Gaussian DP at mu has epsilon(mu) at delta, which grows with mu, so that an epsilon of
    at least e means a mu of at least that of e.
    """
    if not isinstance(claim, GaussianDP):
        return epsilon
    return analytic_mu(epsilon, delta) if epsilon > 0 else 0.0


@cache
def peer_process(command: PeerCommand) -> PeerProcess:
    """One process of the peer for each process of ours, which ends with it."""
    peer = PeerProcess(command.words, dict(command.variables))
    atexit.register(peer.close)
    return peer
