"""False alarms at zero margin where events are read off structures, transcripts, learned scores or the own ratio."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from auditor import Pair, PureDP
from auditor.audits.privacy_loop import Settings, collect_evidence
from auditor.targets.sampler import Sampler
from tests.statistics import ALLOWED as ALPHA
from tests.statistics import check_rates

DRAWS_A_SIDE = 400
PAIR = Pair(np.array([0]), np.array([1]))
TRUTH = math.e / (1 + math.e)


def bit(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Randomised response at epsilon = 1."""
    return np.asarray((rng.random(n) < TRUTH) == bool(data[0]))


def records(data: Any, n: int, rng: np.random.Generator) -> list[Any]:
    """Dicts, with lists whose length and content do not depend on the data, around one randomised bit."""
    letters = np.array(list("abc"))
    return [
        {"bit": "yes" if b else "no", "noise": letters[rng.integers(0, 3, k)].tolist(), "number": float(v)}
        for b, k, v in zip(bit(data, n, rng), rng.integers(0, 5, n).tolist(), rng.normal(size=n), strict=True)
    ]


def ragged(data: Any, n: int, rng: np.random.Generator) -> list[Any]:
    """Lists of coins of which one is a randomised bit; a list without it every now and then."""
    rows = rng.integers(0, 2, (n, 6)).tolist()
    return [
        [int(b), *row[: sum(row)]] if row[0] or row[1] else row for b, row in zip(bit(data, n, rng), rows, strict=True)
    ]


def transcript(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int8]:
    """Rows of -1, 0 and 1 of which the first tells the bit."""
    rows = rng.integers(-1, 2, (n, 20)).astype(np.int8)
    rows[:, 0] = bit(data, n, rng)
    return rows


def floats(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A bit with noise in floating point, whose last digits tell the bit now and then."""
    return np.asarray(bit(data, n, rng) + rng.laplace(size=n))


def clamped(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A bit with noise on a lattice that is clamped to an interval of its own."""
    noise = np.rint(np.clip(rng.laplace(size=n), -1.5, 1.5) * 2.0**10) / 2.0**10
    return np.asarray(bit(data, n, rng) + noise)


def shifted(data: Any, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Three coordinates that a bit moves, with noise on a lattice."""
    return np.asarray(np.rint((bit(data, n, rng)[:, None] * 2.0 + rng.laplace(size=(n, 3))) * 2.0**10) / 2.0**10)


class Rated:
    """A bit with the ratio of its probabilities, which is the claim."""

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        return bit(data, n, rng).astype(np.int64)

    def log_likelihood_ratio(self, outputs: Any, x: Any, y: Any) -> Any:
        return (1.0 - 2.0 * np.asarray(outputs)) * (y[0] - x[0])


def joined(data: Any, n: int, rng: np.random.Generator) -> list[Any]:
    """A hash, two bits whose exclusive or tells the bit, and a number that follows from the others if it does so."""
    first, chosen, other = rng.integers(0, 2, n), rng.integers(0, 4, n), rng.integers(0, 40, n)
    told = bit(data, n, rng)
    last = np.where(told, 10 * chosen + 5, other)
    return list(zip(chosen.tolist(), first.tolist(), (first ^ told).tolist(), last.tolist(), strict=True))


def table(data: Any, n: int, rng: np.random.Generator) -> list[Any]:
    """Tables of two rows; a randomised bit decides whether two columns agree."""
    told, first = bit(data, n, rng), rng.integers(0, 2, (n, 2))
    second = (first ^ told[:, None]).tolist()
    return [
        [{"job": j, "city": "pq"[c]} for j, c in zip(*rows, strict=True)]
        for rows in zip(first.tolist(), second, strict=True)
    ]


MECHANISMS = {
    "records": records,
    "table": table,
    "ragged": ragged,
    "rows": transcript,
    "floats": floats,
    "clamped": clamped,
    "joined": joined,
    "shifted": shifted,
    "ratio": Rated(),
}


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
def test_false_alarms_are_rare(mechanism: Any) -> None:
    options = Settings(alpha=ALPHA, draws=2 * DRAWS_A_SIDE, stop="budget")

    def alarms(seed: int) -> tuple[bool]:
        found = collect_evidence(Sampler(mechanism, seed, "structured"), PureDP(1.0), [PAIR], options)
        return (found.refuted(ALPHA),)

    check_rates(alarms, "false alarms")


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
def test_a_claim_of_half_the_level_is_refuted(mechanism: Any) -> None:
    # So that the audits above are of something that events see. A bit gains about 0.05 nats a draw against half of its
    # level; 7 are needed at alpha = 1e-3.
    options = Settings(alpha=1e-3, draws=8_000, seed=1)
    assert collect_evidence(Sampler(mechanism, 1, "structured"), PureDP(0.5), [PAIR], options).refuted(1e-3)
