"""After a violation: the smallest datasets, the simplest event and the fewest draws that show it again."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from auditor.audits.counterexamples.confirm import EventCounts, confirm_event
from auditor.audits.counterexamples.shrink_data import EnoughError, explain_kept, has_fewer_rows, smaller_pair
from auditor.audits.counterexamples.simplify_event import simple_events, simplest_event, single_events
from auditor.audits.independence import check_independence, worst_of
from auditor.audits.loop import Clock
from auditor.audits.privacy_loop import FIRST, Settings, collect_evidence
from auditor.datasets import Pair, Relation
from auditor.errors import SpecificationError, TargetError, TargetRaised
from auditor.events.elements import read_once
from auditor.events.event_learner import Chain
from auditor.events.ignored_causes import find_kept_without
from auditor.events.root_causes import cause_of
from auditor.privacy.guarantees import Guarantee
from auditor.targets.outputs import Batch
from auditor.targets.sampler import Sampler

#: A candidate gets so many times the draws that the violation took when it was drawn again: the number needed varies
#: about as much from run to run. A smaller example may be weaker, but not by more.
_PATIENCE = 4
#: Candidates are judged at this part of alpha: where many are tried that keep the claim exactly, one that passes by
#: chance would end in a confirmation that fails. Arbitrary; costs a third more draws.
_STRICTER = 0.1
#: Draws a side that a candidate gets at least: fewer would hardly show outputs that have nothing in common.
_LEAST = 64
#: Times that the violation is drawn again at first, to see how many draws it takes.
_REPEATS = 2
#: Part of the draws that these repetitions may take, and part of draws and time that may be spent before an event is
#: chosen; the rest is for that and for the confirmation.
_FIRST_SHARE, _PAIR_SHARE = 0.25, 0.6
#: Draws a side of a confirmation that are taken one a call; arbitrary, a fifth of a second for a fast target. Testing
#: for independence takes about as many.
_ALONE = 1_000
#: Times that an event is chosen, if none wins at first: the draws may have been unlucky. Arbitrary.
_CHOICES = 2
#: The shortest time that counts, in seconds; arbitrary.
_TICK = 1e-3
#: The target's exceptions after which nothing more is tried: each may have cost a restart. Arbitrary.
_RAISED = 8


@dataclass(frozen=True)
class Shrunk:
    """A small counterexample.

    Parameters
    ----------
    pair : Pair
        The datasets.
    chain : Chain
        One event; ``chain.words()[0]`` says it.
    cause : str
        What tells the datasets apart, see `cause_of`.
    x_count, y_count, n : int
        How often the event occurred in ``n`` draws on each dataset, on draws that nothing was chosen on.
    log10_e_value : float
        Evidence of these draws alone.
    tried : int
        Pairs that were tried beside the original one.
    draws : int
        Outputs that shrinking took, both sides together.
    synthetic : bool
        The pair was made from one of the synthetic pairs, and holds no row of the pair of the violation.
    original : Pair
        The pair of the violation.
    guarantee, alpha
        As `shrink_counterexample` was given them.
    seed, key : int, str
        Of the sampler that the confirming draws came from.
    before : EventCounts
        EventCounts from which the first bets were estimated.
    one_a_call : bool
        The confirming draws were taken one a call.
    digest : str
        Hash of these draws.
    kept : str
        Why the datasets are those of the violation, in words; empty unless nothing can be taken from them.
    """

    pair: Pair
    chain: Chain
    cause: str
    x_count: int
    y_count: int
    n: int
    log10_e_value: float
    tried: int
    draws: int
    synthetic: bool
    original: Pair
    guarantee: Guarantee
    alpha: float
    seed: int
    key: str
    before: EventCounts
    one_a_call: bool
    digest: str
    kept: str = ""


def shrink_counterexample(
    sampler: Sampler,
    guarantee: Guarantee,
    relation: Relation | None,
    pair: Pair,
    chain_candidates: Sequence[Chain],
    *,
    alpha: float,
    draws: int,
    seconds: float | None = None,
    others: Sequence[tuple[Pair, Sequence[Chain]]] = (),
    synthetic: Sequence[Pair] = (),
    values: Sequence[Any] | None = None,
    least: int = 0,
    ignore: Sequence[str] = (),
) -> Shrunk | None:
    """Find smaller datasets and a simpler event that violate.

    They do so on fresh draws.

    Parameters
    ----------
    sampler : Sampler
        That of the audit, or its version for one draw a call if the verdict rests on such draws.
    guarantee : Guarantee
        The claim that was violated.
    relation : Relation or None
        What smaller pairs must satisfy; without one only common rows are removed, see `smaller_pair`.
    pair : Pair
        The pair of the violation.
    chain_candidates : sequence of Chain
        Events of the violation, such as the learner's finalists, the best one first. Simpler ones are tried as well.
    alpha : float
        Level of the audit.
    draws : int
        Outputs that may be drawn, both sides together.
    seconds : float, optional
        Time that may be taken.
    others : sequence of (Pair, sequence of Chain)
        Other pairs that the evidence rests on, with their events, the most promising first. Evidence of few draws on
        many pairs may rest on luck on one of them and on a violation on another: the first pair is taken on which the
        violation shows again.
    synthetic : sequence of Pair
        Pairs of made-up rows that are tried before the pair itself is made smaller, for data that are private.
    values : sequence, optional
        The domain of a row, see `smaller_pair`.
    least : int
        Fewest rows of a dataset that the claim is about.
    ignore : sequence of str
        Kinds of causes that the audit ignores, and that events are not to have.

    Returns
    -------
    Shrunk or None
        None if the violation did not show again within the budget, or the target failed: the original stands.

    Notes
    -----
    Valid because: the verdict rests on the audit's evidence and on nothing here. Draws of this function are keyed apart
    from all others. Which pair and event are kept is decided on draws keyed by "try", "past" and "fresh"; the two are
    then fixed, and judged once, at level alpha, on draws keyed by "confirm" that nothing was chosen on, see
    `confirm_event`. So if the claim holds on the pair that was kept, a counterexample is returned with probability at
    most alpha.
    """
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 4 * FIRST:
        raise SpecificationError(f"draws must be an integer of at least {4 * FIRST}, got {draws!r}")
    tries = _PairTrials(copy.copy(sampler), guarantee, alpha, draws, seconds, ignore)
    try:
        given = [(pair, chain_candidates), *others]
        shown = next((one for one in given if tries.repeat(one[0], len(given))), None)
        if shown is None:
            # The events are known, and may need fewer draws than finding them again.
            tries.unit = max(_LEAST, draws // 32)
            return tries.confirmed(pair, pair, chain_candidates, False)
        pair, chain_candidates = shown
        made_up = None
        with suppress(EnoughError):
            made_up = next((p for p in synthetic if _is_allowed(p, relation, least) and tries.serves(p)), None)
        best = smaller_pair(pair if made_up is None else made_up, relation, tries.serves, values, least)
        found = tries.confirmed(pair, best, chain_candidates, made_up is not None)
        return found and replace(found, kept=explain_kept(pair, relation) if best is pair else "")
    except TargetError:
        return None


def _is_allowed(pair: Pair, relation: Relation | None, least: int) -> bool:
    if relation is not None:
        try:
            relation.check(pair)
        except SpecificationError:
            return False
    return not has_fewer_rows(pair, least)


@dataclass
class _PairTrials:
    """Trials of pairs, and the budget that is left."""

    sampler: Sampler
    guarantee: Guarantee
    alpha: float
    draws: int
    seconds: float | None
    ignore: Sequence[str] = ()
    begun: float = field(default_factory=time.monotonic)
    key: str = ""
    unit: int = _LEAST // _PATIENCE
    used: int = 0
    audits: int = 0
    tried: int = 0
    raised: int = 0
    events: list[Chain] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.key = f"{self.sampler.key}/shrink"

    def repeat(self, pair: Pair, among: int) -> bool:
        """Draw the violation again, twice.

        The draws it takes depend much on luck.
        """
        for _ in range(_REPEATS):
            found = self._draws_to_refute(pair, int(_FIRST_SHARE * self.draws) // (2 * _REPEATS * among))
            if found is None:
                break
            self.unit = max(self.unit, found)
        return bool(self.events)

    def serves(self, pair: Pair) -> bool:
        """Whether a pair violates the claim within `_PATIENCE` times the draws.

        Raises
        ------
        EnoughError
            If the budget is used, or the target fails, or raised too often.
        """
        most = _PATIENCE * self.unit
        spent = self.used + 2 * most > _PAIR_SHARE * self.draws
        if spent or self.raised >= _RAISED or self._seconds(_PAIR_SHARE) == 0:
            raise EnoughError
        self.tried += 1
        try:
            return self._draws_to_refute(pair, most) is not None
        except TargetRaised:  # a smaller dataset may be one that it was not made for
            self.raised += 1
            return False
        except TargetError:  # it hangs, or died, or answers what cannot be read
            raise EnoughError from None

    def _draws_to_refute(self, pair: Pair, most: int) -> int | None:
        """Draws a side after which an audit refutes the claim on a pair, None if it does not."""
        self.sampler.key = f"{self.key}/try/{self.audits}"
        self.audits += 1
        settings = Settings(
            alpha=_STRICTER * self.alpha,
            draws=max(2 * most, 4 * FIRST),
            seconds=None if self.seconds is None else max(self._seconds(_PAIR_SHARE), _TICK),
            seed=self.sampler.seed,
            limit=self.sampler.limit,
            ignore=self.ignore,
        )
        evidence = collect_evidence(self.sampler, self.guarantee, [pair], settings)
        self.used += 2 * evidence.n
        if not evidence.refuted(settings.alpha):
            return None
        self.events = [proposal.chain for proposal in evidence.learners[0].finalists]
        return evidence.n

    def _seconds(self, share: float = 1.0) -> float:
        """Seconds left of a share of the time, at least 0."""
        if self.seconds is None:
            return math.inf
        return max(share * self.seconds - (time.monotonic() - self.begun), 0.0)

    def _affordable_draws(self, times: int) -> int:
        """Draws a side of past and of fresh draws: with half of the time, and of the draws, the rest can be done."""
        n = min(times * self.unit, (self.draws - self.used) // 8)
        if self.seconds is not None and self.used:
            n = min(n, int(self._seconds() / 8 * self.used / max(time.monotonic() - self.begun, _TICK)))
        return max(n, _LEAST // 2)

    def confirmed(self, original: Pair, pair: Pair, chains: Sequence[Chain], synthetic: bool) -> Shrunk | None:
        """Choose the event and judge it, once.

        On draws that nothing was chosen on.
        """
        self.sampler.key = self.key
        found = None
        cause = cause_of(chains[0]) if chains else ""
        for attempt in range(_CHOICES):
            n = self._affordable_draws(_PATIENCE ** (1 + attempt))
            past, fresh = (self._draw_both_sides(pair, n, key, attempt) for key in ("past", "fresh"))
            find_kept = find_kept_without(self.ignore)
            simple = simple_events(*past, self.guarantee, None if find_kept is None else find_kept(*past))
            candidates = [*simple, *single_events([*self.events, *chains])]
            candidates = list(dict.fromkeys(candidates))
            found = simplest_event(candidates, past, fresh, self.guarantee, self.alpha, cause)
            if found is not None:
                break
        if found is None:
            return None
        chain, before, needed = found
        most = max(min(_PATIENCE * needed, (self.draws - self.used) // 2), needed, _LEAST)
        sampler = self._independent_sampler(pair, most)
        one_a_call = sampler.one_a_call
        clock = Clock(None if self.seconds is None else max(self._seconds(), _TICK))
        judged = confirm_event(sampler, self.guarantee, pair, chain, before, alpha=self.alpha, most=most, clock=clock)
        self.used += 2 * judged.counts.n
        if not judged.reached:
            return None
        return Shrunk(
            pair=pair,
            chain=chain,
            cause=cause_of(chain),
            x_count=judged.counts.x,
            y_count=judged.counts.y,
            n=judged.counts.n,
            log10_e_value=judged.log_wealth / math.log(10),
            tried=self.tried,
            draws=self.used,
            synthetic=synthetic,
            original=original,
            guarantee=self.guarantee,
            alpha=self.alpha,
            seed=sampler.seed,
            key=self.key,
            before=before,
            one_a_call=one_a_call,
            digest=judged.digest,
        )

    def _independent_sampler(self, pair: Pair, most: int) -> Sampler:
        """A sampler whose draws on the pair are independent as far as can be told.

        A target may share noise within a call on some data only, and this pair is none of those that were tested. Few
        draws are taken one a call; before many the tests are made again.
        """
        if self.sampler.one_a_call:
            return self.sampler
        if most > _ALONE:
            sides = ((pair.x, "x"), (pair.y, "y"))
            found = self.sampler.settled(lambda: worst_of([check_independence(self.sampler, *side) for side in sides]))
            self.used += found.draws
            if found.passed:
                return self.sampler
        return self.sampler.alone()

    def _draw_both_sides(self, pair: Pair, n: int, key: str, attempt: int) -> tuple[Batch, Batch]:
        sides = ((pair.x, "x"), (pair.y, "y"))
        x, y = (read_once(self.sampler.draw_either_way(data, n, key, side, attempt)[0]) for data, side in sides)
        self.used += 2 * n
        return x, y
