"""Tests of independence of draws given the dataset, which everything else here assumes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from auditor.targets.outputs import Batch, hash_outputs
from auditor.targets.sampler import Call, Sampler

#: What is bounded, where draws are independent: the four tests of `check_independence` together fail on one dataset
#: with at most this probability, each time that they are made, and so does `dependent_counts` in one audit. By the
#: union bound follows, and no more than that:
#:
#: - an audit of a privacy claim tests the two datasets of its first pair: 2e-6. Where it then speaks against the claim
#:   it tests the other pairs that it rests on, repeats some or all of these tests on more draws, and tests the counts:
#:   (4 c + 3) 1e-6 at most if it rests on c pairs, of which the first need not be one;
#: - conformity tests each dataset, a game one, an accuracy claim at one setting one: 1e-6 each;
#: - a run has the sum over its claims: 0.2 % for a thousand claims of privacy that are not refuted. It is beside alpha,
#:   which is about refutations: what fails here is a deviation, and draws are then taken one a call.
FALSE_ALARM = 1e-6
#: Comparisons a test. A test fails at 1e-6 / 4 when 22 comparisons that are not ties go the same way; 48 leave so many
#: where half of them are ties, as for noise on a coarse lattice.
COMPARISONS = 48
#: Comparisons where draws take long: two more than must go the same way.
FEW = 24
#: A test with fewer comparisons that are not ties has little power; more are made before a claim is called violated,
#: up to so many times as many. A value that a shared draw takes with probability 0.03 is then still found: of the 384
#: calls 11 have it on average, and with 4 blocks a call three of them are enough.
INFORMATIVE, MOST, LONGER = 44, 16, 4
#: Draws of a block, of which each of the two tests on short calls makes one comparison, and blocks of a short call.
#: Calls cost more than draws do.
BLOCK, BLOCKS = 6, 2


@dataclass(frozen=True)
class Independence:
    """Outcome of the independence tests.

    Parameters
    ----------
    passed : bool
        No test failed.
    finding : str
        What failed, in words; empty if nothing did.
    p_values : dict of str to float
        One-sided p-value of each test.
    draws : int
        Outputs drawn for the tests.
    seeded : bool
        The same generator gave the same outputs again.
    untied : int
        Fewest comparisons of a test that were not ties.
    asked : str
        What looked dependent in the draws of a first refutation, which then had to be reached again on new ones; empty
        if nothing did. See `auditor.audits.dependence`.
    asked_p : float
        The p-value of that; 1 if an earlier run said so.
    in_calls : bool
        The new draws were made in calls like the first ones; else they were taken one a call.
    still : str
        What looks dependent in draws that were taken one a call; empty if nothing does.
    """

    passed: bool
    finding: str
    p_values: dict[str, float]
    draws: int
    seeded: bool = True
    untied: int = 0
    asked: str = ""
    asked_p: float = 1.0
    in_calls: bool = False
    still: str = ""

    @property
    def alone(self) -> bool:
        """Whether the evidence is of draws taken one a call.

        They are if others are or look dependent.
        """
        return not self.passed or bool(self.asked and not self.in_calls)

    @property
    def likeliest(self) -> str:
        """Finding of the test with the smallest p-value.

        Whether it failed or not.
        """
        return _FINDINGS[min(self.p_values, key=lambda name: self.p_values[name])] if self.p_values else ""

    @property
    def note(self) -> str:
        """Describe the draws' dependence; empty if there is none."""
        if not self.passed:
            return f"draws are not independent: {self.finding}"
        if not self.asked:
            return ""
        return f"draws may not be independent{f' (p = {self.asked_p:.2g})' if self.asked_p < 1 else ''}: {self.asked}"


#: Nothing was tested.
UNTESTED = Independence(True, "", {}, 0)

_FINDINGS = {
    "within a call": "draws of one call are closer to one another than draws of different calls",
    "between calls": "the draws of a call repeat those of an earlier call",
    "neighbouring draws": "neighbouring draws of one call are closer to one another than distant ones",
    "draws at a distance": "draws of one call repeat at a fixed distance",
    "counts of calls": "the event that was bet on occurs in the draws of a call together, or not at all",
}


def check_independence(
    sampler: Sampler, data: Any, *key: str | int, comparisons: int = COMPARISONS, blocks: int = BLOCKS
) -> Independence:
    """Four sign tests on a target's draws.

    Parameters
    ----------
    sampler : Sampler
        Draws of the target.
    data : object
        The dataset.
    *key : str or int
        Of these draws.
    comparisons : int
        Comparisons a test, a multiple of 4: two in each short call.
    blocks : int
        Comparisons in each short call, if they are to be more.

    Notes
    -----
    Valid because: let a, b, c be three draws. If draws are independent and identically distributed, b and c are
    exchangeable given a, so "a is closer to b than to c" and "a is closer to c than to b" are equally likely, whatever
    the distribution of the outputs and whatever symmetric distance is used. Triples are disjoint, so the number of
    times that the first holds is, among the triples that are not ties, Binomial(m, 1/2). Each test compares a with a
    draw b that a faulty target might tie to it (same call; same place of another call; next draw; the draw at the
    distance at which the first half of a long call repeats best, in its second half) and a draw c that it might not, at
    a quarter of `FALSE_ALARM`. The distance is a function of other draws than those compared. Constant outputs give
    only ties and pass: they are independent.
    """
    size = BLOCK * blocks
    asked = [Call(size, ("independence", *key, k)) for k in range(comparisons // BLOCKS)]
    asked.append(Call(4 * comparisons, ("independence", *key, "long")))
    sampler.expect(*((data, call) for call in asked))
    calls = [sampler.draw(data, call.n, *call.key) for call in asked]
    numbers = _numbers(calls)
    short, long = np.array(numbers[:-1]), numbers[-1]
    table = short.reshape(len(short), blocks, BLOCK, -1)  # (calls, blocks of a call, draws of a block, coordinates)
    outcomes = {
        "within a call": _count_closer(*_draws_as_rows(*_triples_within_blocks(table))),
        "between calls": _count_closer(*_draws_as_rows(*_triples_between_calls(table))),
        "neighbouring draws": _count_closer(*_neighbouring_triples(long)),
        "draws at a distance": _compare_recurring_draws(
            long, *_draws_as_rows(table[:, :, BLOCK // 2 - 1 :: BLOCK // 2])
        ),
    }
    p_values = {name: _at_least(*outcome) for name, outcome in outcomes.items()}
    failed = [_FINDINGS[name] for name, p in p_values.items() if p < FALSE_ALARM / len(p_values)]
    again = sampler.draw(data, size, "independence", *key, 0)
    seeded = bool((hash_outputs(again) == hash_outputs(calls[0])).all())
    untied = min(trials for name, (_, trials) in outcomes.items() if name != "draws at a distance")
    return Independence(not failed, "; ".join(failed), p_values, sum(map(len, calls)) + size, seeded, untied)


def _at_least(wins: int, trials: int) -> float:
    """Probability of so many wins or more, of Binomial(trials, 1/2)."""
    return float(special.betainc(wins, trials - wins + 1, 0.5)) if wins else 1.0


def worst_of(found: Sequence[Independence]) -> Independence:
    """Worst outcome of several datasets' tests, with all draws."""
    worst = min(found, key=lambda test: (test.passed, min(test.p_values.values())))
    return replace(worst, draws=sum(test.draws for test in found), seeded=all(test.seeded for test in found))


def check_calls(groups: Iterable[Sequence[tuple[int, int]]]) -> float:
    """E-value that an event occurs in a call's draws together.

    As a natural logarithm.

    Parameters
    ----------
    groups : iterable of sequences of (int, int)
        For each event, and each dataset: the draws of each call, and how many of them were in the event, which was
        fixed before any of these calls.

    Notes
    -----
    Valid because: if draws are independent, the counts k_i of a group are Binomial(n_i, p) with one p. The numerator is
    the probability of what was seen under a distribution that was fixed beforehand, each call with a p of its own from
    Beta(1/2, 1/2); the denominator is its largest probability under any common p. So the expectation of the quotient is
    at most 1 (universal inference, Wasserman, Ramdas and Balakrishnan 2020). Whether a further call joins a group may
    depend on the past: with the true p in the denominator the quotient is a martingale, and it is smaller with the
    largest. Groups may share draws: their quotients are averaged.
    """
    logs = []
    for group in groups:
        n, k = np.array(group, dtype=np.float64).T
        apart = special.betaln(k + 0.5, n - k + 0.5) - special.betaln(0.5, 0.5)
        share = k.sum() / n.sum()
        together = special.xlogy(k, share) + special.xlog1py(n - k, -share)
        logs.append(float((apart - together).sum()))
    return float(special.logsumexp(logs) - np.log(len(logs))) if logs else 0.0


def dependent_counts(groups: Iterable[Sequence[tuple[int, int]]], before: Independence) -> Independence:
    """Outcome of the tests ``before``, and of `check_calls` at level `FALSE_ALARM`.

    Parameters
    ----------
    groups : iterable of sequence of (int, int)
        See `check_calls`.
    before : Independence
        Outcome of the other tests.
    """
    p_value = min(1.0, math.exp(-check_calls(groups)))  # Markov's inequality
    p_values = {**before.p_values, "counts of calls": p_value}
    if p_value >= FALSE_ALARM:
        return replace(before, p_values=p_values)
    return replace(before, passed=False, finding=_FINDINGS["counts of calls"], p_values=p_values)


def _triples_within_blocks(blocks: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Two draws of each block, and a third one of the block in its place in the next call: triples are disjoint."""
    return blocks[:, :, 0], blocks[:, :, 1], np.roll(blocks[:, :, 2], -1, axis=0)


def _triples_between_calls(blocks: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """A draw of each block, the one in its place in the next call, and another one of that call.

    Triples are disjoint: anchors of calls of even number, and their partners, have another place than those of odd
    number, and every call is next to one call only.
    """
    following = np.roll(blocks, -1, axis=0)
    call = np.arange(len(blocks))
    place = call % 2
    return blocks[call, :, place], following[call, :, place], following[:, :, BLOCK - 1]


def _neighbouring_triples(long: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Each third draw, the next one, and the one after that of a triple that is far away."""
    m = len(long) // 4
    third = np.roll(long[2 : 3 * m : 3], m // 2, axis=0)
    return long[0 : 3 * m : 3], long[1 : 3 * m : 3], third


def _draws_as_rows(*draws: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Draws as rows."""
    # Their number is given, as it cannot be told from draws of no numbers.
    return tuple(array.reshape(math.prod(array.shape[:-1]), array.shape[-1]) for array in draws)


def _compare_recurring_draws(long: NDArray[np.float64], others: NDArray[np.float64]) -> tuple[int, int]:
    """Compare draws of the second half of a long call at the distance at which those of the first half are closest.

    Draws of other calls are what they are compared with.
    """
    first, second = long[: len(long) // 2], long[len(long) // 2 :]
    with np.errstate(invalid="ignore", over="ignore"):
        apart = [np.abs(first[lag:] - first[:-lag]).sum(axis=1).mean() for lag in range(1, len(first) // 2 + 1)]
    lag = int(np.argmin(apart)) + 1
    at = np.arange(len(second))
    a = at[(at // lag % 2 == 0) & (at + lag < len(second))]
    m = min(len(a), len(others))
    return _count_closer(second[a[:m]], second[a[:m] + lag], others[:m])


def _numbers(calls: list[Batch]) -> list[NDArray[np.float64]]:
    """Outputs of each call as rows of numbers: values where all are numbers of one shape, keys otherwise."""
    arrays = [call for call in calls if isinstance(call, np.ndarray)]
    if len(arrays) < len(calls) or len({array.shape[1:] for array in arrays}) > 1:
        return [hash_outputs(call).astype(np.float64)[:, None] for call in calls]
    # Symbols far from one another and from any usual output: what is not finite is equal to its like only.
    return [
        np.nan_to_num(array.astype(np.float64).reshape(len(array), -1), nan=-1e17, posinf=1e18, neginf=-1e18)
        for array in arrays
    ]


def _count_closer(a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]) -> tuple[int, int]:
    """How often a is closer to b than to c, and how often the two are not equally far."""
    with np.errstate(invalid="ignore", over="ignore"):
        near, far = np.abs(a - b).sum(axis=1), np.abs(a - c).sum(axis=1)
    return int((near < far).sum()), int((near != far).sum())
