"""The simplest event that shows a violation, among those that were learned and simpler ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from auditor.audits.counterexamples.confirm import EventCounts
from auditor.audits.loop import ChunkLoop
from auditor.audits.privacy_loop import CHUNKS
from auditor.events.event_learner import MOST_SYMBOLS, Chain, Proposal
from auditor.events.feature_detection import telling_features
from auditor.events.features import Feature, Rank, fixed_features
from auditor.events.fitting import learn_symbols
from auditor.events.root_causes import cause_of, rank_simplicity
from auditor.events.structure import structure_of
from auditor.evidence.power import divergence_rate
from auditor.evidence.two_sample_bet import Stake, Wealth
from auditor.privacy.guarantees import Guarantee
from auditor.targets.outputs import Batch, pool_outputs

Array = NDArray[np.float64]

#: Cuts that are looked at for each feature: arbitrary, sixteenths and some more of either dataset's values.
_CUTS = 24
#: Of two equally simple events the one in fewer words is taken, unless it needs so many times as many draws; arbitrary.
_MORE = 1.5
#: An event is taken if it gains so many times what an alarm needs: of many events some gain as much by luck. Arbitrary,
#: the draws are meant to be four times as many as needed.
_CLEAR = 2.0
#: Characters of an event that can be said in a line; longer ones, such as sets of many values, come last whatever they
#: read.
_LINE = 100
#: Events of one simplicity that are looked at; arbitrary, bounds the time.
_MOST = 40


def single_events(chains: Iterable[Chain]) -> list[Chain]:
    """Each event of some chains by itself."""
    return list(dict.fromkeys(replace(chain, cuts=(cut,)) for chain in chains for cut in chain.cuts))


def simple_events(
    x: Batch, y: Batch, guarantee: Guarantee, keeps: Callable[[Feature], bool] | None = None
) -> list[Chain]:
    """The best event of each feature, by past draws.

    Of features that need no learning, and of few symbols.

    Parameters
    ----------
    x, y : Batch
        Past draws, as many of each side.
    guarantee : Guarantee
        The claim.
    keeps : callable, optional
        Says of which features events may be; default of all.
    """
    found: list[Chain] = []
    features: list[Feature] = [
        *fixed_features(pool_outputs(x, y)),
        *structure_of(x, y).features,
        *telling_features(x, y),
    ]
    symbols = learn_symbols(x, y, MOST_SYMBOLS)
    if symbols is not None and (keeps is None or keeps(symbols)):
        # Few symbols from either end of the order, and all but few.
        last = len(symbols.ranks) - 1
        cuts = {float(k) for k in (0, 1, 2, last - 1, last - 2, last - 3) if 0 <= k < last}
        found += [Chain(symbols, side, (cut,)) for side in ("below", "above") for cut in sorted(cuts)]
    for feature in dict.fromkeys(features if keeps is None else filter(keeps, features)):
        a, b = feature(x), feature(y)
        found_values = np.unique(np.concatenate([a[~np.isnan(a)], b[~np.isnan(b)]]))
        if not len(found_values):
            continue
        many = len(found_values) > _CUTS
        cuts_at = found_values if not many else np.quantile(found_values, np.linspace(0, 1, _CUTS), method="lower")
        for side in ("below", "above"):
            inside = [(v[:, None] <= cuts_at if side == "below" else v[:, None] > cuts_at).sum(axis=0) for v in (a, b)]
            p, q = ((count + 1.0) / (len(x) + 2.0) for count in inside)
            growth = divergence_rate(p, q, guarantee, guarantee.level)
            best = int(np.argmax(growth))
            if growth[best] > 0:
                found.append(Chain(feature, side, (float(cuts_at[best]),)))
    return found


def round_cuts(chain: Chain) -> Iterator[Chain]:
    """The event with cuts of fewer digits, fewest first.

    None for ranks, which are no numbers to be read.
    """
    (cut,) = chain.cuts
    if isinstance(chain.feature, Rank) or not math.isfinite(cut) or (cut == int(cut) and abs(cut) < 1_000):
        return
    yield replace(chain, cuts=(0.0,))
    if abs(cut) > 1:
        yield from (replace(chain, cuts=(float(whole),)) for whole in (math.floor(cut), math.ceil(cut)))
    for digits in (1, 2, 3):
        size = 10.0 ** (math.floor(math.log10(abs(cut))) + 1 - digits)
        for towards in (math.floor, math.ceil):
            value = float(f"{towards(cut / size) * size:.{digits}g}")
            yield replace(chain, cuts=(value,))


def simplest_event(
    chains: Sequence[Chain],
    past: tuple[Batch, Batch],
    fresh: tuple[Batch, Batch],
    guarantee: Guarantee,
    alpha: float,
    cause: str = "",
) -> tuple[Chain, EventCounts, int] | None:
    """The simplest of some events that wins on fresh draws.

    It was not learned from them.

    Parameters
    ----------
    chains : sequence of Chain
        Single events; versions of them with rounder cuts are tried as well.
    past, fresh : tuple of two Batches
        Draws of each side: those from which probabilities are estimated, and those on which the events are judged.
    guarantee : Guarantee
        The claim.
    alpha : float
        Level that an event's wealth is to reach.
    cause : str
        Of equally simple events those with this cause are taken first, see `cause_of`.

    Returns
    -------
    (Chain, EventCounts, int) or None
        The event, its counts in all these draws, and how many draws a side it needs to reach 1/alpha, as estimated from
        what it gained. Nothing here is evidence: the event is to be confirmed on fresh draws.
    """
    judge = _SharedDrawsBet(past, fresh, guarantee, alpha)
    groups: dict[tuple[bool, int, bool], list[Chain]] = {}
    for chain in chains:
        order = len(chain.words()[0]) > _LINE, rank_simplicity(chain), cause_of(chain) != cause
        groups.setdefault(order, []).append(chain)
    for _, group in sorted(groups.items()):
        wins: dict[Chain, int] = {}
        for chain in group[:_MOST]:
            judge.into(wins, chain)
            for rounder in round_cuts(chain) if chain in wins else ():
                judge.into(wins, rounder)
        if wins:
            fastest = min(wins.values())
            near = [chain for chain, needed in wins.items() if needed <= _MORE * fastest]
            best = min(near, key=lambda chain: (len(chain.words()[0]), wins[chain]))
            return best, judge.counts(best), wins[best]
    return None


@dataclass
class _SharedDrawsBet:
    """Bets on events that are given one after the other, all on the same draws."""

    past: tuple[Batch, Batch]
    fresh: tuple[Batch, Batch]
    guarantee: Guarantee
    alpha: float
    _values: dict[Feature, list[Array]] = field(default_factory=dict)

    def into(self, wins: dict[Chain, int], chain: Chain) -> None:
        """Note the draws a side that the event needs.

        If its gain on the fresh draws is clear.
        """
        enough, side, n = math.log(1 / self.alpha), len(self.fresh[0]), len(self.past[0])
        before_x, before_y, x, y = self._outputs_in_event(chain)
        p, q = (np.array((inside.sum() + 1.0) / (side + 2.0)) for inside in (x, y))
        if side * float(divergence_rate(p, q, self.guarantee, self.guarantee.level)) < _CLEAR * enough:
            return  # not even the best bet would gain so much
        event = Proposal(chain, 0, np.array([float(before_x.sum())]), np.array([float(before_y.sum())]), n)
        wealth = Wealth(self.guarantee, np.array([self.guarantee.level]))
        loop = ChunkLoop(CHUNKS, side)
        for _ in loop:
            drawn, size = loop.used, loop.take()
            a, b = (int(inside[drawn : drawn + size].sum()) for inside in (x, y))
            wealth.bet(Stake(0, 0, *event.estimates(), (size - a, a), (size - b, b)))
            event.add((size - a, a), (size - b, b), size)
        gained = float(wealth.current[0])
        if gained >= _CLEAR * enough:
            wins[chain] = math.ceil(side * enough / gained)

    def counts(self, chain: Chain) -> EventCounts:
        """How often an event occurred in all draws."""
        x, y, more_x, more_y = (int(inside.sum()) for inside in self._outputs_in_event(chain))
        return EventCounts(x + more_x, y + more_y, len(self.past[0]) + len(self.fresh[0]))

    def _outputs_in_event(self, chain: Chain) -> list[NDArray[np.bool_]]:
        """Which outputs are in the event: past ones of each side, then fresh ones."""
        values = self._values.get(chain.feature)
        if values is None:
            values = [chain.feature(batch) for batch in (*self.past, *self.fresh)]
            self._values[chain.feature] = values
        cut = chain.cuts[0]
        return [np.asarray(v <= cut if chain.side == "below" else v > cut) for v in values]
