"""Replay of a recorded counterexample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from auditor.audits.context import watch_datasets
from auditor.audits.counterexamples.confirm import Confirmation, EventCounts, confirm_event
from auditor.audits.counterexamples.shrink import Shrunk
from auditor.audits.counterexamples.shrink_data import pair_at, places_of
from auditor.audits.counterexamples.snippet import describe_counts
from auditor.audits.privacy_loop import Settings, collect_evidence
from auditor.datasets import Pair
from auditor.datasets.json_codec import (
    MOST_ENTRIES,
    NotStorableError,
    ObjectCodec,
    data_from_json,
    data_to_json,
    decode_value,
    encode_exactly,
    encode_value,
)
from auditor.errors import DpauditError, SpecificationError
from auditor.events.codec import chain_from_json, chain_to_json, check_keys
from auditor.events.event_learner import Chain
from auditor.evidence.power import flag_probability
from auditor.privacy.guarantees import NOTIONS, Guarantee
from auditor.results import make_plain
from auditor.targets import Mechanism
from auditor.targets.process_settings import keep_apart
from auditor.targets.sampler import Sampler

#: Fresh draws are taken up to so many times the recorded ones. A violation that was found with luck needs more.
_TIMES = 8
#: The same where the recorded draws are those that the event was learned from: its frequencies differ too much there.
_TIMES_LEARNED = 64


@dataclass(frozen=True)
class Replayed:
    """Outcome of replaying a counterexample.

    Parameters
    ----------
    reproduced : bool
        The same draws came again and show the violation, or fresh draws do.
    lines : list of str
        What was seen, in words.
    exactly : bool
        The same draws came again.
    """

    reproduced: bool
    lines: list[str]
    exactly: bool = False


# ----------------------------------------------------------------------------------- what is stored


def to_replay(found: Shrunk, private: bool) -> dict[str, Any]:
    """What a result has to hold for `replay_event`, as strict JSON.

    Parameters
    ----------
    found : Shrunk
    private : bool
        The datasets of the violation are not to be shown. Then neither datasets that were made from them are stored,
        only which of their rows they have, nor the event, which holds values of outputs, nor a hash of outputs.
    """
    shown = not private or found.synthetic
    record = _record_content(found.pair, found.chain, found.guarantee, found.alpha, shown)
    if record["data"] is None:
        same = found.pair is found.original
        record |= {"whole": same, "rows": None if same else _rows(found.pair, found.original)}
    return record | {
        "counts": [found.x_count, found.y_count, found.n],
        "before": [found.before.x, found.before.y, found.before.n],
        "key": found.key,
        "seed": found.seed,
        "one_a_call": found.one_a_call,
        "digest": found.digest if shown else None,
    }


def to_replay_unshrunk(
    pair: Pair, chain: Chain, best: int, counts: EventCounts, guarantee: Guarantee, alpha: float, private: bool
) -> dict[str, Any]:
    """Replay data of a counterexample that could not be shrunk.

    Its draws cannot come again, fresh ones can be taken.

    Parameters
    ----------
    pair : Pair
    chain : Chain
    best : int
        Which event of the chain.
    counts : EventCounts
        Draws in the event, among those that it was learned from.
    guarantee : Guarantee
        The claim.
    alpha : float
        Level of the audit.
    private : bool
        The datasets are not to be shown.
    """
    record = _record_content(pair, replace(chain, cuts=(chain.cuts[best],)), guarantee, alpha, not private)
    return record | {"whole": True, "counts": [counts.x, counts.y, counts.n]}


def _record_content(pair: Pair, chain: Chain, guarantee: Guarantee, alpha: float, shown: bool) -> dict[str, Any]:
    data = {"x": data_to_json(pair.x), "y": data_to_json(pair.y)} if shown else None
    if data is not None and None in data.values():
        data = None
    return {
        "data": data,
        "rows": None,
        "whole": False,
        "chain": chain_to_json(chain) if shown else None,
        "claim": claim_to_json(guarantee),
        "alpha": encode_value(float(alpha)),
    }


def _rows(pair: Pair, original: Pair) -> dict[str, Any] | None:
    """Which rows of the original pair a pair has; rows that are not of it are made up, and stored."""
    places = places_of(pair, original)
    if places is None or len(places[0]) + len(places[1]) > MOST_ENTRIES:
        return None
    x, y, added = places
    try:
        return {"x": x, "y": y, "added": encode_value(added)}
    except NotStorableError:
        return None


#: Claims as JSON.
_CLAIMS = ObjectCodec(lambda: {kind.__name__: kind for kind in NOTIONS.values()}, "a notion of privacy", "parameters")


def claim_to_json(guarantee: Guarantee) -> dict[str, Any] | None:
    """JSON of a claim.

    None for one that is not made of its parameters.
    """
    record: dict[str, Any] | None = encode_exactly(guarantee, _CLAIMS.encode, _CLAIMS.decode)
    return record


def claim_from_json(record: Any) -> Guarantee:
    """Claim that `claim_to_json` wrote.

    Raises
    ------
    SpecificationError
        If the record is none. Notions are looked up among those that are declared.
    """
    claim = _CLAIMS.decode(record)
    if not isinstance(claim, Guarantee):
        raise SpecificationError(f"expected the record of a notion of privacy, got that of a {type(claim).__name__}")
    return claim


# ------------------------------------------------------------------------------------------ replay


@dataclass(frozen=True)
class _Record:
    """What is known of a counterexample."""

    pair: Pair
    chain: Chain | None
    event: str
    guarantee: Guarantee
    alpha: float
    counts: EventCounts
    before: EventCounts | None
    key: str
    seed: int
    one_a_call: bool
    digest: str | None
    unseeded: bool
    ignore: Sequence[str]

    def sampler(self, target: Mechanism, limit: float | None, seed: int, key: str) -> Sampler:
        return Sampler(target, seed, key, limit, one_a_call=self.one_a_call, catching=True)


@keep_apart()
def replay_event(
    record: Mapping[str, Any],
    target: Mechanism,
    pair: Pair | None = None,
    *,
    seed: int | None = None,
    guarantee: Guarantee | None = None,
    limit: float | None = 60.0,
) -> Replayed:
    """Draw the counterexample of a claim's record again.

    A seeded target gives the recorded draws again, exactly. For all others, for an event that is not stored, and if
    ``seed`` is given, fresh draws are taken, up to several times as many as recorded, on which the wealth has to reach
    1/alpha again.

    Parameters
    ----------
    record : mapping
        A claim's record in results.json, whose counterexample holds under "again" what `to_replay` gave.
    target : Mechanism
        What was audited.
    pair : Pair, optional
        The two datasets of the violation, where the record does not hold them.
    seed : int, optional
        Seed of fresh draws.
    guarantee : Guarantee, optional
        The claim, where the record does not hold it.
    limit : float or None
        Seconds that one call of the target may take.

    Returns
    -------
    Replayed

    Raises
    ------
    SpecificationError
        If the record holds no counterexample to draw again, or it is damaged, or the datasets are needed.
    TargetError
        If the target does not answer, or changes the datasets.

    Notes
    -----
    Valid because: event and pair come from the record, and fresh draws are keyed apart from all that they were chosen
    on, see `confirm_event`. So "reproduced" on fresh draws has probability at most alpha if the claim holds.
    """
    known = _read(record, pair, guarantee)
    with watch_datasets([known.pair.x, known.pair.y]):
        try:
            return _replay_known(known, target, seed, limit)
        except DpauditError:
            raise
        except Exception as error:  # whatever a damaged event, or one of other outputs, makes of these
            raise SpecificationError(
                f"the recorded event cannot be counted in these outputs: {type(error).__name__}: {error}"
            ) from error


def _replay_known(known: _Record, target: Mechanism, seed: int | None, limit: float | None) -> Replayed:
    if seed is None and known.before is not None and known.chain is not None and not known.unseeded:
        sampler = known.sampler(target, limit, known.seed, known.key)
        again = _confirm_record(sampler, known, known.counts.n, "confirm", to_the_end=True)
        if again.counts == known.counts and known.digest in (None, again.digest):
            lines = [
                f"drawn again with seed {known.seed}: {describe_counts(again.counts, known.event)}, exactly as recorded"
            ]
            return Replayed(again.reached, [*lines, _evidence(again, known)], exactly=True)
        first = [
            f"drawn again with seed {known.seed}: {describe_counts(again.counts, known.event)}, but these are not the "
            f"recorded draws ({known.counts.x:,} and {known.counts.y:,}): the target or its libraries have changed, or "
            "it has its own source of randomness"
        ]
    else:
        first = []
    fresh = known.sampler(target, limit, known.seed if seed is None else seed, f"{known.key}/replay")
    if known.chain is None:
        return _learned_anew(fresh, known, first)
    most = (_TIMES_LEARNED if known.before is None else _TIMES) * known.counts.n
    found = _confirm_record(fresh, known, most, "replay")
    lines = [*first, f"fresh draws: {describe_counts(found.counts, known.event)}", _evidence(found, known)]
    if not found.reached:
        lines.append(_miss_probability(known, found.counts.n))
    return Replayed(found.reached, lines)


def _confirm_record(sampler: Sampler, known: _Record, most: int, key: str, to_the_end: bool = False) -> Confirmation:
    assert known.chain is not None  # both callers have looked
    before = known.before if known.before is not None else known.counts
    return confirm_event(
        sampler,
        known.guarantee,
        known.pair,
        known.chain,
        before,
        alpha=known.alpha,
        most=most,
        key=key,
        to_the_end=to_the_end,
    )


def _learned_anew(sampler: Sampler, known: _Record, first: list[str]) -> Replayed:
    """The event is not stored: an audit learns one on fresh draws, and is given more of them for that."""
    draws = 2 * _TIMES * (known.counts.n + (known.before.n if known.before is not None else 0))
    settings = Settings(
        alpha=known.alpha, draws=max(draws, 1_000), seed=sampler.seed, limit=sampler.limit, ignore=known.ignore
    )
    evidence = collect_evidence(sampler, known.guarantee, [known.pair], settings)
    reached = evidence.refuted(known.alpha)
    lines = [*first, f"the event is not stored: one was learned anew on {evidence.n:,} fresh draws on each dataset"]
    return Replayed(reached, [*lines, _wealth(float(evidence.wealth.best[0]), reached, known)])


def _evidence(found: Confirmation, known: _Record) -> str:
    return _wealth(found.log_wealth, found.reached, known)


def _wealth(log: float, reached: bool, known: _Record) -> str:
    power, enough = log / math.log(10), -math.log10(known.alpha)
    verdict = "reproduced" if reached else "not reproduced"
    return f"{verdict}: e-value 10^{power:.1f} against {known.guarantee}; 10^{enough:.1f} refutes it"


def _miss_probability(known: _Record, n: int) -> str:
    """How probable it is that a violation of the recorded size goes unnoticed."""
    before = known.before if known.before is not None else EventCounts(0, 0, 0)
    total = known.counts.n + before.n
    p, q = (known.counts.x + before.x) / total, (known.counts.y + before.y) / total
    whence = "" if known.before is not None else " among the draws that the event was learned from"
    missed = 1.0 - flag_probability(p, q, n, known.guarantee, known.alpha)
    return (
        f"with the recorded frequencies{whence}, {p:.3g} and {q:.3g}, this number of draws would miss the violation "
        f"with probability {missed:.2g}"
    )


def _read(record: Mapping[str, Any], pair: Pair | None, guarantee: Guarantee | None) -> _Record:
    found = record.get("counterexample")
    again = found.get("again") if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping) or not isinstance(again, Mapping):
        raise SpecificationError(f"claim {record.get('id')!r} holds no counterexample that can be drawn again")
    try:
        before, counts = again.get("before"), again["counts"]
        alpha = _level(decode_value(again["alpha"]))
        if guarantee is None:
            guarantee = claim_from_json(again["claim"])
            _check_agreement("claim", record.get("claimed"), str(guarantee))
        _check_agreement("alpha", record.get("alpha"), make_plain(alpha))
        if isinstance(again["chain"], Mapping):
            check_keys(again["chain"])
        return _Record(
            pair=_datasets(again, str(found.get("pair", "recorded pair")), pair),
            chain=None if again["chain"] is None else chain_from_json(again["chain"]),
            event=str(found.get("event", "the event")),
            guarantee=guarantee,
            alpha=alpha,
            counts=_counts(counts),
            before=None if before is None else _counts(before),
            key=str(again.get("key", record.get("id", "replay"))),
            seed=int(again.get("seed", 0)),
            one_a_call=again.get("one_a_call") is True,
            digest=again.get("digest"),
            unseeded=record.get("unseeded") is True,
            ignore=record.get("ignore", ()),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, SpecificationError):
            raise
        raise SpecificationError(
            f"the recorded counterexample cannot be read: {type(error).__name__}: {error}"
        ) from error


def _check_agreement(what: str, outside: Any, inside: Any) -> None:
    """Refuse a counterexample that is not of the record which holds it."""
    if outside is not None and outside != inside:
        raise SpecificationError(
            f"the {what} of the record is {outside!r}, that of its counterexample {inside!r}: the file was changed "
            "after the audit"
        )


def _counts(values: Any) -> EventCounts:
    x, y, n = values
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in (x, y, n))
    if not whole or not 0 <= min(x, y) <= max(x, y) <= n:
        raise SpecificationError(f"counts must be two numbers of draws and how many there were, got {values!r}")
    return EventCounts(x, y, n)


def _level(alpha: Any) -> float:
    if not isinstance(alpha, float) or not 0 < alpha < 1:
        raise SpecificationError(f"alpha must be a number in (0, 1), got {alpha!r}")
    return alpha


def _datasets(again: Mapping[str, Any], name: str, given: Pair | None) -> Pair:
    data = again["data"]
    if data is not None:
        return Pair(data_from_json(data["x"]), data_from_json(data["y"]), name)
    if given is None:
        raise SpecificationError(
            "the record does not hold the datasets: give those of the attack, --data and --neighbor"
        )
    if again["whole"] is True:
        return given
    if again["rows"] is None:
        raise SpecificationError(
            "the record does not hold the datasets, nor which rows of those of the attack they have: attack again"
        )
    rows = again["rows"]
    return pair_at(rows["x"], rows["y"], decode_value(rows["added"]), given)
