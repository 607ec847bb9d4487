"""Rows of a ledger's series: chunks, bets and events, and the chunk that was begun.

Events are in the encoding of all files, see `auditor.events.codec`. A bet is a plain list of its numbers: there is one
a chunk, and names would be most of its text.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass

from auditor.audits.privacy_loop import ChunkPlan, Past
from auditor.errors import SpecificationError
from auditor.events.codec import chain_from_json
from auditor.evidence.two_sample_bet import Chunk, Stake
from auditor.runs.ledger.store import Store


@dataclass(frozen=True)
class Begun:
    """A chunk that was begun and is not counted.

    Parameters
    ----------
    number : int
        Its number.
    plan : ChunkPlan
        What was going to be drawn and bet; without events where these cannot be read from a record.
    seed : str or None
        Seed of its draws, if they follow from it.
    one_a_call : bool
        They were going to be taken one a call.
    """

    number: int
    plan: ChunkPlan
    seed: str | None
    one_a_call: bool

    def comes_again(self, seed: str) -> bool:
        """Whether a run with this seed repeats former draws.

        It can bet the same, as long as the target is seeded.
        """
        return self.plan.chain is not None and self.seed == seed


def begun_of(store: Store, series: int) -> Begun | None:
    """A series' chunk that was begun and not counted.

    None if there is none.

    Parameters
    ----------
    store : Store
        The file.
    series : int
        Number of the series.

    Raises
    ------
    SpecificationError
        If it cannot be read.
    """
    rows = store.query("SELECT number, pair, n, stake, seed, one_a_call FROM plans WHERE series = ?", series)
    if not rows:
        return None
    number, pair, n, text, seed, one_a_call = rows[0]
    try:
        bet = stake_of(text)
        chain = None
        if bet is not None:
            found = store.query("SELECT chain FROM chains WHERE series = ? AND number = ?", series, bet.chain)
            chain = None if found[0][0] is None else chain_from_json(json.loads(found[0][0]))
        plan = ChunkPlan(int(pair), int(n), bet, chain)
    except (IndexError, KeyError, TypeError, ValueError, SpecificationError) as error:
        raise store.damaged(error) from error
    return Begun(int(number), plan, None if seed is None else str(seed), bool(one_a_call))


def past_of(store: Store, series: int) -> Past:
    """All that was counted of one series.

    Parameters
    ----------
    store : Store
        The file.
    series : int
        Number of the series.

    Raises
    ------
    SpecificationError
        If something of it cannot be read, or chunks are missing.
    """
    rows = store.query("SELECT number, pair, n, whole, stake, log FROM chunks WHERE series = ? ORDER BY number", series)
    events = store.query("SELECT number, words, chain FROM chains WHERE series = ? ORDER BY number", series)
    try:
        for what, numbers in (("chunk", [row[0] for row in rows]), ("event", [row[0] for row in events])):
            if numbers != list(range(len(numbers))):
                raise ValueError(f"series {series} has the {what} numbers {numbers!r:.80}")
        chunks = tuple(Chunk(int(p), int(n), stake_of(stake), bool(whole)) for _, p, n, whole, stake, _ in rows)
        chains = {chain_from_json(json.loads(text)): int(k) for k, _, text in events if text is not None}
        words = tuple(tuple(map(str, json.loads(text))) for _, text, _ in events)
        drawn = itertools.accumulate(chunk.n for chunk in chunks)
        path = tuple((n, float(row[-1])) for n, row in zip(drawn, rows, strict=True))
    except (KeyError, TypeError, ValueError, SpecificationError) as error:
        raise store.damaged(error) from error
    memory = dict(store.query("SELECT pair, content FROM memory WHERE series = ?", series))
    return Past(chunks, words, chains, path, memory)


def stake_text(stake: Stake | None) -> str | None:
    """A bet with its counts as JSON; None for none."""
    if stake is None:
        return None
    chain, best, p, q, x, y, few, spread, draws = vars(stake).values()
    counts = [[int(count) for count in side] for side in (x, y, few)]
    estimates = [[float(v) for v in side] for side in (p, q)]
    return json.dumps([int(chain), int(best), *estimates, *counts, float(spread), float(draws)])


def stake_of(text: str | None) -> Stake | None:
    """What `stake_text` wrote; ledgers of older versions have no `Stake.draws`."""
    if text is None:
        return None
    chain, best, p, q, x, y, few, spread, *draws = json.loads(text)
    p, q = (tuple(map(float, side)) for side in (p, q))
    x, y, few = (tuple(map(int, side)) for side in (x, y, few))
    return Stake(int(chain), int(best), p, q, x, y, few, float(spread), *map(float, draws))
