"""The two-sided bet, its experts, and their wealth.

One process serves every question. It is a test supermartingale for "level t holds on all neighbours"; run at the
claimed level it decides a verdict, run on a grid of levels it gives the lower bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.privacy.guarantees import Guarantee

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Stake:
    """What is bet on in one chunk, and its counts.

    A stake is on a chain of nested events A_1 > A_2 > ... > A_k, each more probable under P than under Q by past draws.
    It splits the outputs into k + 1 cells: cell j holds the outputs that lie in exactly the first j events.

    Parameters
    ----------
    chain : int
        Index of the chain of events in the record.
    best : int
        Index in the chain of the event that the first slot bets on alone.
    p, q : tuple of float
        Estimates of P(A_j) and Q(A_j) from past draws, none of them of this chunk.
    x, y : tuple of int
        Draws of this chunk in each of the k + 1 cells, of P and of Q.
    few : tuple of int
        Indices of the one or two events that the second slot bets on; by default all are meant.
    spread : float
        Multiple of each event's own best amount that the third slot bets on all of them. At 0, the default, it bets as
        the second one does.
    draws : float
        Draws a side that the estimates rest on, where no other event could be chosen: `suppose_violation` then corrects
        them at each level. At 0, the default, they are used as they are.
    """

    chain: int
    best: int
    p: tuple[float, ...]
    q: tuple[float, ...]
    x: tuple[int, ...]
    y: tuple[int, ...]
    few: tuple[int, ...] = ()
    spread: float = 0.0
    draws: float = 0.0


@dataclass(frozen=True)
class Chunk:
    """A chunk of draws: ``n`` of P and ``n`` of Q.

    All are of one pair; without a stake the chunk was only learned from.

    Parameters
    ----------
    pair : int
        Index of the pair.
    n : int
        Draws a side.
    stake : Stake or None
        What was bet and counted.
    whole : bool
        The draws of both sides came in one call each. If not, a call raised, and the stake's counts are the worst
        possible ones on that side, see `worst_counts`.
    """

    pair: int
    n: int
    stake: Stake | None
    whole: bool = True


def worst_counts(stake: Stake, n: int, x: bool, y: bool) -> Stake:
    """Counts of the stake that lose most on given sides.

    Parameters
    ----------
    stake : Stake
    n : int
        Draws a side.
    x, y : bool
        Sides whose ``n`` draws are taken to have come out worst: of P none in any event, of Q all in the innermost one.

    Notes
    -----
    For draws of a call that raised. Valid because: let the draws of a call be independent, and let the call raise where
    one of them would raise, or for a reason of its own. A factor of `log_factors` is increasing in what the draws of P
    say of the events and decreasing in what those of Q say, so that with these counts it is at most what it would be
    with the draws, whatever those are. So the factor of the chunk is nowhere larger than one whose expectation is at
    most 1 under the null. (Drawing again instead, and counting that, would be wrong: draws that are kept only where the
    call did not raise raise less often than they should.)
    """
    k = len(stake.p)
    worst_x, worst_y = (n, *[0] * k), (*[0] * k, n)
    return replace(stake, x=worst_x if x else stake.x, y=worst_y if y else stake.y)


#: Slots: the best event alone; it and its partner on the other side of the diagonal; and all events of the chain, of
#: which there are more than two only while draws are few. A chain of two events grows 1.46 times as fast as the best
#: single event on Laplace noise (tests/unit/evidence/test_chains.py), 1.97 times on the two tails of Gaussian noise
#: against (eps, delta), and no faster against mu. Many events grow hardly faster than two, but few draws do not tell
#: which two are best, and a bet on many depends less on it (benchmarks/head_to_head.py). The masses were chosen by
#: simulation on seeds below 1,000.
SLOTS = (0.08, 0.22, 0.7)

#: Experts: (kind, value, prior mass). A "plug" expert bets ``value`` times the likelihood-ratio-optimal amount of the
#: estimates, a "limit" expert ``value`` times the largest admissible amount. The plug-in experts grow at the best rate
#: when the estimates are good; the large limit experts find impossible events, the small ones win slowly where the
#: truth is close to the level and estimates are noise. The masses were chosen by simulation; any masses are valid.
EXPERTS = (
    ("plug", 1.0, 0.35),
    ("plug", 0.6, 0.25),
    ("plug", 0.3, 0.10),
    ("limit", 1.0, 0.10),
    ("limit", 0.3, 0.08),
    ("limit", 0.08, 0.07),
    ("limit", 0.02, 0.05),
)

#: A chain's plug-in bet adds the optimal amounts of its events, which overlap. The best part of the sum is 0.73 for
#: Laplace noise, 1.0 for the two tails of Gaussian noise, which hardly overlap, and 0.5 against mu, where both events
#: say the same.
CHAIN_SCALE = 0.7

#: Share of the wealth that is spread over all slots and experts again after a chunk ("fixed share" of Herbster and
#: Warmuth 1998), so that an expert that lost everything on an early, badly chosen event comes back. Costs at most
#: -ln(1 - 0.01) = 0.01 nats a chunk. From the hundredth on it is 1 / k after the k-th, so that the sum grows with the
#: logarithm of their number: a list of 200 pairs has thousands of chunks, and those that keep the claim lost up to 41
#: nats without this rule. Any share that is fixed before the chunk is valid.
SHARE = 0.01

#: Plug-in experts stay below the largest admissible amount, so that no single draw can ruin them.
_MARGIN = 0.98

#: Steps of Newton's method in `find_spread`; arbitrary, any amount is valid.
_NEWTON = 4

#: Chunks whose factors `Wealth.bet_all` computes together: not all, as it may stop after any of them.
_AT_ONCE = 24

_PLUG = np.array([kind == "plug" for kind, _, _ in EXPERTS])
_VALUE = np.array([value for _, value, _ in EXPERTS])
_MASS = np.array([mass for _, _, mass in EXPERTS])
LOG_PRIOR: Array = np.log(np.outer(SLOTS, _MASS / _MASS.sum()))
_PRIOR: Array = np.exp(LOG_PRIOR)[:, :, None]


def log_factors(stakes: Sequence[Stake], guarantee: Guarantee, levels: Array) -> Array:
    """Log factors of the wealth of each slot's experts.

    Parameters
    ----------
    stakes : sequence of Stake
        The events, the estimates made before the chunk and the chunk's counts, of one or more chunks. All have the same
        number of events, also in `Stake.few`, and all or none have a `Stake.spread`, and `Stake.draws`.
    guarantee : Guarantee
        The notion of privacy.
    levels : ndarray of shape (n_levels,)
        Levels at which to bet.

    Returns
    -------
    ndarray of shape (n_stakes, n_slots, n_experts, n_levels)

    Notes
    -----
    Valid because: for each event j of the chain let (p0_j, q0_j) be a point of the cap and E_j the slope of a line
    that touches the cap there from above, and put x_j = p_j - p0_j, y_j = E_j (q_j - q0_j) with the true p_j, q_j.
    Under "level t holds", concavity of the cap gives x_j <= y_j. For weights w_j >= 0 and one draw X of P and
    one draw Y of Q, independent, the factor

        (1 + sum_j w_j (1[X in A_j] - p0_j)) (1 - sum_j w_j E_j (1[Y in A_j] - q0_j))

    has, with u = sum_j w_j x_j <= v = sum_j w_j y_j, the expectation (1 + u)(1 - v) <= (1 + v)(1 - v) <= 1, provided
    that both brackets are never negative (then 1 - v >= 0); the weights are cut so that they are not. The events,
    points, slopes and weights are functions of earlier draws only. For one event this is the bet of design section 3;
    a chain is the same bet on a test with steps, with a slope for each step.
    """
    return _factors_of(_stack_stakes(stakes), guarantee, levels)


@dataclass(frozen=True, eq=False)
class _Slot:
    """What one slot bets on, of one or more stakes: which events, draws in the cells that these make, and how much."""

    events: tuple[NDArray[np.intp], NDArray[np.intp]]
    count: Array
    scale: Array | float


@dataclass(frozen=True, eq=False)
class _StakeArrays:
    """Stakes of one shape as arrays of shape (n_stakes, n_events, 1), and the slot of each kind of bet in `SLOTS`."""

    p: Array
    q: Array
    slots: tuple[_Slot, ...]
    kinds: tuple[int, int, int]
    draws: Array | None


def _stack_stakes(stakes: Sequence[Stake]) -> _StakeArrays:
    p, q = (np.array([getattr(stake, name) for stake in stakes])[:, :, None] for name in "pq")
    rows = np.arange(len(stakes))[:, None]
    every = tuple(range(p.shape[1]))

    def slot(events: list[tuple[int, ...]], scale: Array | float) -> _Slot:
        """A bet on some events of each stake's chain."""
        cells = [
            [*_merge(stake.x, those), *_merge(stake.y, those)] for stake, those in zip(stakes, events, strict=True)
        ]
        return _Slot((rows, np.array(events)), np.array(cells)[:, None, :, None], scale)

    few = [stake.few or every for stake in stakes]
    slots = [slot([(stake.best,) for stake in stakes], 1.0)]
    if len(few[0]) > 1:
        slots.append(slot(few, CHAIN_SCALE))
    pair = len(slots) - 1
    if stakes[0].spread:
        slots.append(slot([every] * len(stakes), np.array([stake.spread for stake in stakes])[:, None, None]))
    draws = np.array([stake.draws for stake in stakes])[:, None, None] if stakes[0].draws else None
    return _StakeArrays(p, q, tuple(slots), (0, pair, len(slots) - 1), draws)


def _factors_of(
    stakes: _StakeArrays, guarantee: Guarantee, levels: Array, among: NDArray[np.intp] | None = None
) -> Array:
    """`log_factors` of stacked stakes, at the levels with the indices ``among`` if there are any."""
    p, q = stakes.p, stakes.q
    if stakes.draws is not None:
        p, q = suppose_violation(p, q, stakes.draws, guarantee, levels)
    weight, slope, p0, q0 = _weigh_events(p, q, guarantee, levels)
    if among is not None:
        weight, slope, p0, q0 = (np.take(value, among, axis=-1) for value in (weight, slope, p0, q0))
    gains = []
    for slot in stakes.slots:
        at = slot.events
        gains.append(_log_gains(weight[at], p0[at], q0[at], slope[at], slot.count, slot.scale))
    return np.stack([gains[kind] for kind in stakes.kinds], axis=1)


def _weigh_events(p: Array, q: Array, guarantee: Guarantee, levels: Array | float) -> tuple[Array, Array, Array, Array]:
    """Best weights of events, and slopes and points (p0, q0) of the lines.

    The weight is 0 where nothing is bet: the estimate is inside the null, or at an end of the cap.
    """
    p0, q0, slope = guarantee.tangent(p, q, levels)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = (p - p0) / (p0 * (1.0 - p0))
    use = guarantee.beyond(p, q, levels) & (weight > 0) & (weight < np.inf) & (slope < np.inf)
    if not use.all():
        weight, slope = np.where(use, weight, 0.0), np.where(use, slope, 0.0)
        p0, q0 = np.where(use, p0, 0.5), np.where(use, q0, 0.5)
    return weight, slope, p0, q0


def _shape(stake: Stake) -> tuple[int, int, bool, bool]:
    """What stakes whose factors are computed together have in common."""
    return len(stake.p), len(stake.few), stake.spread > 0, stake.draws > 0


def _merge(counts: Sequence[int], events: Sequence[int]) -> list[float]:
    """Draws in the cells that some of the events make."""
    ends = [0, *(event + 1 for event in events), len(counts)]
    return [float(sum(counts[a:b])) for a, b in itertools.pairwise(ends)]


def suppose_violation(
    p: Array, q: Array, draws: Array | float, guarantee: Guarantee, levels: Array
) -> tuple[Array, Array]:
    """Estimates of an event's probabilities, given that the level is exceeded.

    They are the posterior mean of (p, q) beyond the line that touches the cap nearest to them, with normal errors. A
    bet gains only where the level is exceeded, so that what the draws say of the other case does not matter. (The test
    of two proportions of Turner, Ly and Grünwald, "Generic e-variables for exact sequential k-sample tests that allow
    for optional stopping", 2024, restricts its prior so.)

    Parameters
    ----------
    p, q : ndarray
        Estimates under the two datasets, in (0, 1).
    draws : ndarray or float
        Draws a side that they rest on.
    guarantee : Guarantee
        The notion of privacy.
    levels : ndarray
        Levels; the four are broadcast.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Probabilities in (0, 1); unchanged where the line is vertical.

    Notes
    -----
    For an event that was not chosen. One that was chosen because it looks good has estimates that are too high already:
    with learned events bets take up to a fifth more draws so (sparse vector), and for one of 200 pairs.
    """
    p0, q0, slope = guarantee.tangent(p, q, levels)
    use = slope < np.inf
    slope = np.where(use, slope, 0.0)
    of_p, of_q = p * (1.0 - p) / draws, slope * q * (1.0 - q) / draws
    variance = of_p + slope * of_q
    with np.errstate(over="ignore"):
        beyond = (p - p0 - slope * (q - q0)) / np.sqrt(variance)
        # The density of the standard normal over its distribution function, at `beyond`.
        hazard = math.sqrt(2.0 / math.pi) / special.erfcx(-beyond / math.sqrt(2.0))
    lift = np.where(use, hazard / np.sqrt(variance), 0.0)
    least = 0.5 / draws
    return np.clip(p + lift * of_p, least, 1.0 - least), np.clip(q - lift * of_q, least, 1.0 - least)


def find_spread(p: Array, q: Array, guarantee: Guarantee) -> float:
    """Multiple of the events' own best amounts that grows fastest.

    Parameters
    ----------
    p, q : ndarray of shape (n_events,)
        Estimates of the probabilities of nested events, outermost first, each in (0, 1).
    guarantee : Guarantee
        The claim.

    Returns
    -------
    float
        At least 0; 0 if no event speaks against the claim.
    """
    weight, slope, p0, q0 = _weigh_events(p, q, guarantee, guarantee.level)
    use = weight > 0
    if not use.any():
        return 0.0
    weight, slope, p0, q0 = weight[use], slope[use], p0[use], q0[use]
    inside = np.tril(np.ones((len(p0) + 1, len(p0))), -1)  # cell j lies in the first j events
    gains = np.concatenate([(inside - p0) @ weight, (q0 - inside) @ (weight * slope)])
    mass = np.concatenate([-np.diff(side[use], prepend=1.0, append=0.0) for side in (p, q)])
    limit = float(_MARGIN / -gains.min())
    amount = float(min(1.0 / len(p0), limit))
    for _ in range(_NEWTON):  # the growth is concave in the amount
        part = gains / (1.0 + amount * gains)
        amount = min(max(amount + float(mass @ part) / float(mass @ part**2), 0.0), limit)
    return amount


def _log_gains(weight: Array, p0: Array, q0: Array, slope: Array, count: Array, scale: Array | float) -> Array:
    """Log factors of every expert, shape (n_stakes, n_experts, n_levels), with given weights and counts of cells."""
    gains = _bets(weight, p0, q0, slope, scale)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where processors have AVX-512, numpy's logarithm takes a tenth of the time of scipy's `xlog1py`.
        np.log1p(gains, out=gains)  # in place: at many levels, memory for the array takes longer than what is computed
        gains *= count
    np.copyto(gains, 0.0, where=count == 0)
    summed: Array = gains.sum(axis=2)
    return summed


def _bets(weight: Array, p0: Array, q0: Array, slope: Array, scale: Array | float) -> Array:
    """What a draw in each cell adds to 1, shape (..., n_experts, 2 * n_cells, n_levels): cells of x, then cells of y.

    The arguments have the shape (..., n_events, n_levels).
    """
    # A draw in cell j lies in the first j events: w_1 + ... + w_j, less what is paid for all.
    *outer, events, levels = weight.shape
    cells, sloped = np.zeros((*outer, 2 * (events + 1), levels)), weight * slope
    on_x, on_y = cells[..., : events + 1, :], cells[..., events + 1 :, :]
    np.cumsum(weight, axis=-2, out=on_x[..., 1:, :])
    np.cumsum(sloped, axis=-2, out=on_y[..., 1:, :])
    on_x -= (weight * p0).sum(axis=-2, keepdims=True)
    np.subtract((sloped * q0).sum(axis=-2, keepdims=True), on_y, out=on_y)
    worst = -np.minimum(on_x[..., 0, :], on_y[..., -1, :])  # the outermost cell is worst for x, the innermost for y
    limit = np.divide(1.0, worst, out=np.zeros_like(worst), where=worst > 0)[..., None, :]
    value = _VALUE[:, None]
    amount = np.where(_PLUG[:, None], np.minimum(value * scale, _MARGIN * limit), value * limit)
    bets: Array = amount[..., None, :] * cells[..., None, :, :]
    return np.maximum(bets, -1.0, out=bets)


def known_event_gains(p: float, q: float, guarantee: Guarantee) -> Array:
    """Log factors of one draw in each cell.

    At the claimed level, with the event's probabilities taken as known.

    Parameters
    ----------
    p, q : float
        Probabilities of the event under the first and the second dataset, in [0, 1].
    guarantee : Guarantee
        The claim.

    Returns
    -------
    ndarray of shape (n_experts, 4)
        A draw of P outside and inside the event, a draw of Q outside and inside.
    """
    level = np.array([guarantee.level])
    weight, slope, p0, q0 = _weigh_events(np.array([[p]]), np.array([[q]]), guarantee, level)
    if not weight.item():
        return np.zeros((len(EXPERTS), 4))
    with np.errstate(divide="ignore"):
        return np.log1p(_bets(weight, p0, q0, slope, 1.0))[:, :, 0]


class StakesInOrder:
    """Stakes of chunk after chunk, stacked for many levels.

    Parameters
    ----------
    stakes : iterable of Stake or None
        Events, estimates and counts of each chunk; None where nothing is bet.

    Attributes
    ----------
    runs : list
        Of each `_AT_ONCE` chunks, the stakes of one shape together with their places.
    """

    def __init__(self, stakes: Iterable[Stake | None]) -> None:
        played = [stake for stake in stakes if stake is not None]
        self.runs: list[list[tuple[list[int], _StakeArrays]]] = []
        for start in range(0, len(played), _AT_ONCE):
            run = played[start : start + _AT_ONCE]
            places: dict[tuple[int, int, bool, bool], list[int]] = {}
            for k, stake in enumerate(run):
                places.setdefault(_shape(stake), []).append(k)
            self.runs.append([(those, _stack_stakes([run[k] for k in those])) for those in places.values()])


class Wealth:
    """Wealth at a set of levels, chunk after chunk.

    Parameters
    ----------
    guarantee : Guarantee
        The notion of privacy.
    levels : ndarray of shape (n_levels,)
        Levels, each of which is a null hypothesis of its own.

    Attributes
    ----------
    current, best : ndarray of shape (n_levels,)
        Natural logarithm of the wealth now, and of its running maximum.

    Notes
    -----
    Valid because: each chunk multiplies the wealth by sum_i c_i F_i, where F_i is expert i's product of factors of
    `log_factors` over the chunk and the portfolio weights c_i >= 0, with sum 1, are functions of earlier draws (their
    prior, their past wealth and the share that is spread again). Given the past each F_i has expectation at most 1
    under the null, so the sum has, and the wealth is a non-negative supermartingale that starts at 1. By Ville's
    inequality it ever reaches 1/alpha with probability at most alpha.
    """

    def __init__(self, guarantee: Guarantee, levels: Array) -> None:
        self.guarantee = guarantee
        self.levels = np.asarray(levels, float)
        self._played = 0
        self._shares = np.repeat(_PRIOR, len(self.levels), axis=2)
        self.current: Array = np.zeros(len(self.levels))
        self.best: Array = np.zeros(len(self.levels))

    def bet(self, stake: Stake | None) -> None:
        """Play one chunk."""
        if stake is not None:
            self._play(log_factors([stake], self.guarantee, self.levels)[0])

    def bet_all(self, stakes: StakesInOrder, enough: float = math.inf) -> None:
        """Bet on chunk after chunk until all levels are decided.

        A level whose best wealth has reached ``enough`` is decided, and may be played no further.

        The same as `bet` on each until then, in less time: factors are computed for many chunks together.

        Parameters
        ----------
        stakes : StakesInOrder
            Events, estimates and counts of each chunk.
        enough : float
            Natural logarithm of a wealth; by default there is none, and every chunk is played.
        """
        for groups in stakes.runs:
            left = np.flatnonzero(self.best < enough)
            among = left if len(left) < len(self.levels) else None
            found: dict[int, Array] = {}
            for places, group in groups:
                found.update(zip(places, _factors_of(group, self.guarantee, self.levels, among), strict=True))
            for k in range(len(found)):
                self._play(found[k], among)
                if self.best.min() >= enough:
                    return

    def _play(self, factors: Array, among: NDArray[np.intp] | None = None) -> None:
        """Multiply the wealth by the factors of a chunk, at some of the levels if there are indices."""
        shares = self._shares if among is None else self._shares[:, :, among]
        largest = factors.max(axis=(0, 1))
        grown = shares * np.exp(factors - largest)
        total = grown.sum(axis=(0, 1))
        gained = largest + np.log(total / shares.sum(axis=(0, 1)))  # 0, without rounding, where nothing was bet
        self._played += 1
        share = min(SHARE, 1.0 / self._played)
        shares = grown * ((1.0 - share) / total) + share * _PRIOR
        if among is None:
            self._shares, self.current = shares, self.current + gained
            self.best = np.maximum(self.best, self.current)
        else:
            self._shares[:, :, among] = shares
            self.current[among] += gained
            self.best[among] = np.maximum(self.best[among], self.current[among])
