"""A ledger for people: its sums, and whether the record verifies."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from auditor.audits.counterexamples.replay import claim_from_json
from auditor.audits.privacy_loop import Past
from auditor.errors import SpecificationError
from auditor.evidence.lower_bound import level_grid, lower_bound, rejects_below
from auditor.evidence.two_sample_bet import Chunk, Wealth
from auditor.privacy.guarantees import Guarantee
from auditor.results import Verdict, make_plain
from auditor.runs.ledger.fingerprint import fingerprint_parts
from auditor.runs.ledger.record import past_of
from auditor.runs.ledger.session import describe_claim, share_of
from auditor.runs.ledger.store import Series, Store

_LOG10 = 1 / math.log(10)
#: Nats by which a wealth that is computed again may differ: other versions of numpy round otherwise. A changed count
#: moves it by more, unless it was bet on with next to nothing.
_CLOSE = 1e-6


#: In place of the verdict of a night that did not come to one.
UNENDED = "did not end"


@dataclass(frozen=True)
class Shown:
    """One series, as it is listed."""

    series: Series
    nights: int
    draws: int
    log10: float
    log10_max: float
    verdict: str
    alpha: float
    most: float
    lower_bound: float
    last: str
    place: int  # of its last night among all of the ledger, whatever the clocks said


def series_of(store: Store) -> list[Shown]:
    """All series of a ledger, in the order in which they began."""
    found = []
    for series in store.series():
        chunks = store.query("SELECT n, log FROM chunks WHERE series = ? ORDER BY number", series.number)
        nights = store.query(
            "SELECT coalesce(ended, begun), alpha, coalesce(verdict, ?), rowid FROM nights WHERE series = ? "
            "ORDER BY number",
            UNENDED,
            series.number,
        )
        bounds = store.query("SELECT max(lower_bound) FROM nights WHERE series = ?", series.number)
        if not nights:
            raise store.damaged(f"series {series.number} has no night")
        last, alpha, verdict, place = nights[-1]
        logs = [0.0, *(float(log) for _, log in chunks)]
        found.append(
            Shown(
                series,
                nights=len(nights),
                draws=2 * sum(int(n) for n, _ in chunks),
                log10=logs[-1] * _LOG10,
                log10_max=max(logs) * _LOG10,
                verdict=str(verdict),
                alpha=float(alpha),
                most=max(float(night[1]) for night in nights) / share_of(series.attempt),
                lower_bound=float(bounds[0][0] or 0.0),
                last=str(last),
                place=int(place),
            )
        )
    return found


def format_ledger(path: Path, everything: bool = False) -> list[str]:
    """The ledger as a table.

    Of each claim the latest series only, unless ``everything`` is asked for.

    Parameters
    ----------
    path : Path
        The file.
    everything : bool
        Show all series.
    """
    with Store(path) as store:
        found = series_of(store)
        head = f"ledger {store.identity}, begun {store.begun}"
    latest = {one.series.claim: one for one in sorted(found, key=lambda one: one.place)}
    shown = found if everything else sorted(latest.values(), key=lambda one: one.series.claim)
    if not shown:
        return [head, "nothing is counted yet"]
    rows = [
        ("claim", "claimed", "nights", "draws", "wealth now", "largest", "needed", "lower bound", "verdict", "last")
    ]
    for one in shown:
        rows.append(
            (
                one.series.claim,
                one.series.claimed,
                str(one.nights),
                f"{one.draws:,}",
                f"10^{one.log10:.1f}",
                f"10^{one.log10_max:.1f}",
                f"10^{-math.log10(one.alpha):.1f}",
                f"{one.lower_bound:.4g}",
                one.verdict + (" (one draw a call)" if one.series.alone else ""),
                one.last,
            )
        )
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    spent = sum({one.series.claim: one.most for one in sorted(shown, key=lambda one: one.most)}.values())
    closed = [f"closed: {one.series.claim}, {one.series.closed}" for one in shown if one.series.closed]
    doubted = [f"doubted: {one.series.claim}, {one.series.looked}" for one in shown if one.series.looked]
    left_out = len(found) - len(shown)
    return [
        head,
        "",
        *table,
        "",
        *closed,
        *doubted,
        *([f"{left_out} series of earlier sources or specifications are left out (--all)"] if left_out else []),
        f"largest shares of alpha that these claims have had on any night add up to {spent:.4g}: the probability that "
        "any of those that hold is ever called violated is at most that",
    ]


def as_json(path: Path) -> list[str]:
    """The ledger as strict JSON, all series."""
    with Store(path) as store:
        found = series_of(store)
        head: dict[str, Any] = {"schema": "dpaudit-ledger-list/1", "identity": store.identity, "begun": store.begun}
    series = [
        {
            "series": one.series.number,
            "claim": one.series.claim,
            "claimed": one.series.claimed,
            "one_draw_a_call": one.series.alone,
            "attempt": one.series.attempt,
            "about": dict(one.series.about),
            "begun": one.series.begun,
            "closed": one.series.closed,
            "doubted": one.series.looked or "",
            "last": one.last,
            "nights": one.nights,
            "draws": one.draws,
            "log10_e_value": one.log10,
            "log10_max_e_value": one.log10_max,
            "lower_bound": one.lower_bound,
            "alpha": one.alpha,
            "largest_alpha": one.most,
            "verdict": one.verdict,
        }
        for one in found
    ]
    return json.dumps(
        make_plain({**head, "series": series}), indent=1, ensure_ascii=False, allow_nan=False
    ).splitlines()


def verify_ledger(path: Path) -> tuple[list[str], bool]:
    """Compute all series' wealth again and compare with the record.

    It is computed from bets and counts.

    Returns
    -------
    list of str
        A line for each thing that is not as recorded, and a last one with the number of series.
    bool
        Whether all is as recorded.

    Raises
    ------
    SpecificationError
        If the file is no ledger.
    """
    wrong: list[str] = []
    counted = unknown = 0
    with Store(path) as store:
        broken = store.unbroken()
        if broken:
            return [f"the file is damaged: {broken}"], False
        numbered = _misnumbered_attempts(store)
        for series in store.series():
            counted += 1
            where = f"series {series.number} of {series.claim}"
            try:
                past = past_of(store, series.number)
            except SpecificationError as error:
                wrong.append(f"{where}: {error}")
                continue
            found = [
                *numbered.get(series.number, []),
                *_contradictions(store, series),
                *_uncounted_chunks(past, len(series.pairs)),
                *_inconsistent_nights(store, series, past),
            ]
            if not found and series.guarantee is not None:
                found = _wealth(past, series) or _differing_bound(store, past, series)
            unknown += series.guarantee is None
            wrong += [f"{where}: {text}" for text in found]
    as_recorded = f"{counted} series: " + ("all are as recorded" if not wrong else f"{len(wrong)} differences")
    note = (
        f"; {unknown} of claims that are not made of their parameters, whose wealth is not computed" if unknown else ""
    )
    return [*wrong, as_recorded + note], not wrong


def _contradictions(store: Store, series: Series) -> list[str]:
    """What a series says twice, and not the same: its claim, and the state that it is of."""
    found = []
    if series.guarantee is not None:
        said = describe_claim(claim_from_json(series.guarantee))
        if series.claimed != said:
            found.append(f"its claim is {series.claimed!r} in words, {said!r} by its parameters")
    [(fingerprint,)] = store.query("SELECT fingerprint FROM series WHERE number = ?", series.number)
    if fingerprint != fingerprint_parts(series.about):
        found.append(f"its fingerprint {fingerprint!r} is not that of the state that is recorded beside it")
    return found


def _misnumbered_attempts(store: Store) -> dict[int, list[str]]:
    """Series whose attempt is not the one after those that were closed, by number.

    The attempt tells the series' share of alpha: two of one number would have it twice.
    """
    found: dict[int, list[str]] = {}
    states: dict[tuple[str, str], list[tuple[int, bool]]] = {}  # attempts, and whether each is closed
    rows = store.query("SELECT number, claim, fingerprint, alone, attempt, closed FROM series ORDER BY number")
    for _, claim, fingerprint, _, attempt, closed in rows:
        states.setdefault((claim, fingerprint), []).append((attempt, closed is not None))
    taken = set()
    for number, claim, fingerprint, alone, attempt, _ in rows:
        before = [(one, closed) for one, closed in states[claim, fingerprint] if one < attempt]
        if (claim, fingerprint, alone, attempt) in taken:
            found[number] = [f"attempt {attempt} is there twice"]
        elif attempt != 1 + max((one for one, _ in before), default=0) or not all(closed for _, closed in before):
            found[number] = [f"it is attempt {attempt}, and the closed ones before it do not lead to that"]
        taken.add((claim, fingerprint, alone, attempt))
    return found


def _uncounted_chunks(past: Past, pairs: int) -> list[str]:
    """Chunks that no audit counts."""
    return [
        f"chunk {k} cannot be: {text}" for k, chunk in enumerate(past.chunks) if (text := _fault(chunk, past, pairs))
    ]


def _fault(chunk: Chunk, past: Past, pairs: int) -> str:
    if chunk.n < 1 or not 0 <= chunk.pair < pairs:
        return f"{chunk.n} draws a side of pair {chunk.pair}"
    stake = chunk.stake
    if stake is None:
        return ""
    if not 0 <= stake.chain < len(past.words) or not 0 <= stake.best < len(stake.p) or len(stake.p) != len(stake.q):
        return f"event {stake.best} of chain {stake.chain}"
    for counts in (stake.x, stake.y):
        if len(counts) != len(stake.p) + 1 or min(counts) < 0 or sum(counts) != chunk.n:
            return f"counts {list(counts)} of {chunk.n} draws"
    if not all(0 < v < 1 for v in (*stake.p, *stake.q)):
        return f"estimates {list(stake.p)} and {list(stake.q)}"
    return ""


def _inconsistent_nights(store: Store, series: Series, past: Past) -> list[str]:
    """What nights say of their chunks and verdicts that does not fit.

    A verdict is that of `Evidence.refuted`, of all chunks up to that night at its share of alpha. A refutation may have
    been doubted, and then the verdict is another one.
    """
    found, last, share = [], 0, share_of(series.attempt)
    guarantee = None if series.guarantee is None else claim_from_json(series.guarantee)
    counted = dict(
        store.query("SELECT night, max(number) + 1 FROM chunks WHERE series = ? GROUP BY night", series.number)
    )
    rows = store.query(
        "SELECT number, chunks, draws, alpha, judged, verdict FROM nights WHERE series = ? ORDER BY number",
        series.number,
    )
    if [row[0] for row in rows] != list(range(1, len(rows) + 1)):
        found.append(f"nights have the numbers {[row[0] for row in rows]}")
    for number, chunks, draws, alpha, judged, verdict in rows:
        first, last = last, max(last, counted.pop(number, 0))
        own = past.chunks[first:last]
        if chunks is not None and (len(own) != chunks or 2 * sum(chunk.n for chunk in own) != draws):
            found.append(f"night {number} says {chunks} chunks with {draws} draws, there are {len(own)}")
        if not isinstance(alpha, float):  # a column of SQLite takes any type
            found.append(f"night {number} has alpha {alpha!r}, which is no number")
            continue
        if not 0 < alpha < share:
            found.append(f"night {number} has alpha {alpha:.6g}, attempt {series.attempt} has less than {share:.3g}")
            continue
        if judged:
            refuted = _is_refuted(past, last, guarantee, alpha)
            if refuted != (verdict == Verdict.VIOLATION) and not (refuted and (series.looked or guarantee is None)):
                found.append(f"night {number} says {verdict!r}, its wealth says otherwise")
    if counted.keys() - {len(rows) + 1}:  # what a night began and lost is counted before the next one begins
        found.append(f"chunks are of the nights {sorted(counted)}, of which nothing else is known")
    return found


def _is_refuted(past: Past, chunks: int, guarantee: Guarantee | None, alpha: float) -> bool:
    """Whether the first chunks reject the claim and all smaller levels; without a guarantee, whether they may."""
    reached = max([0.0, *(log for _, log in past.path[:chunks])]) >= math.log(1 / alpha)
    return reached and (guarantee is None or rejects_below(past.chunks[:chunks], guarantee, alpha))


def _wealth(past: Past, series: Series) -> list[str]:
    """The first chunk at which the wealth, computed again, is not the recorded one."""
    guarantee = claim_from_json(series.guarantee)
    wealth = Wealth(guarantee, np.array([guarantee.level]))
    for k, (chunk, (_, recorded)) in enumerate(zip(past.chunks, past.path, strict=True)):
        wealth.bet(chunk.stake)
        again = float(wealth.current[0])
        if again != recorded and not abs(again - recorded) <= _CLOSE * max(1.0, abs(recorded)):
            return [f"the wealth after chunk {k} is e^{again:.9g}, recorded is e^{recorded:.9g}"]
    return []


def _differing_bound(store: Store, past: Past, series: Series) -> list[str]:
    """Whether the largest lower bound, which is shown, is not that of the chunks up to its night."""
    nights = store.query(
        "SELECT number, alpha, lower_bound FROM nights WHERE series = ? AND lower_bound IS NOT NULL "
        "ORDER BY lower_bound DESC, number LIMIT 1",
        series.number,
    )
    if not nights:
        return []
    night, alpha, recorded = nights[0]
    if not isinstance(recorded, float):
        return [f"night {night} says lower bound {recorded!r}, which is no number"]
    if not isinstance(alpha, float):  # that is said of the night
        return []
    [(last,)] = store.query(
        "SELECT coalesce(max(number) + 1, 0) FROM chunks WHERE series = ? AND night <= ?", series.number, night
    )
    guarantee = claim_from_json(series.guarantee)
    grid = level_grid(guarantee.level, guarantee.highest, guarantee.unit)
    # Rounding may decide whether a level is rejected: the bound is one of those at about this alpha.
    low, high = (lower_bound(past.chunks[:last], guarantee, grid, alpha * math.exp(off)) for off in (-_CLOSE, _CLOSE))
    if low <= recorded <= high:
        return []
    return [f"night {night} says lower bound {recorded:.9g}, its chunks say {low:.9g}"]
