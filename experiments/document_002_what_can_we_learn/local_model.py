"""Document 002, section 5: local randomizers, the oracle through which they are called, and transparency."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, broken, component, conformity, entry, exact, inequality, reference
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from auditor.targets.analysts import FixedList, Repeat
from auditor.targets.interactive import History, Queries
from experiments.common import REPLACE
from mechanisms.local_model.local_model import MUTANTS, LocalAlgorithm, LocalOracle
from mechanisms.local_model.local_randomizers import LocalRandomizer, TwiceNoisy, alarm, noisy_value, response
from mechanisms.local_model.noninteractive import NoninteractiveOracle

#: One of each kind: a bit, one of five symbols, a number of 0 to 9 with noise, a rare event, a value with two noises.
_KINDS: dict[str, LocalRandomizer] = {
    "response": response(1.0),
    "five_symbols": response(1.0, 5),
    "noisy_number": noisy_value(1.0, 10),
    "rare_event": alarm(1.0, 0.1),
    "two_noises": TwiceNoisy(1.0, 4).clamped(8),
}


def _database(*records: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(records, dtype=np.int64)


def _inputs(randomizer: LocalRandomizer) -> list[Pair]:
    """Every two inputs of a randomizer: all are neighbours."""
    u = range(len(randomizer.matrix))
    return [Pair(_database(a), _database(b), f"input {a} against {b}") for a in u for b in u if a < b]


# -------------------------------------------------------------------------------------- oracle


@dataclass(frozen=True)
class EveryoneThenTheOdd:
    """Asks every person for a cheap response, and then again, at a higher level, those who answered 1.

    Parameters
    ----------
    people, randomizers : int
        Of the oracle; randomizer 0 is the cheap one, 1 the other.
    """

    people: int
    randomizers: int
    adaptive: ClassVar[bool] = True
    coins: ClassVar[int] = 0

    @property
    def rounds(self) -> int:
        """Two for each person."""
        return 2 * self.people

    def __call__(self, history: History) -> Queries:
        """Return the next query of each trial, shape (n,)."""
        person, again = history.rounds % self.people, history.rounds >= self.people
        if not again:
            return person * self.randomizers
        said = np.asarray(history.answers)[:, person] == 1
        return np.where(said, person * self.randomizers + 1, -1).astype(np.int64)


@entry(
    "002/local_model_oracle",
    title="Local randomizers, oracle and ledger",
    source=Source("002", "Definitions 5.1 to 5.3"),
)
def oracle() -> Iterator[Draft]:
    """Every randomizer on every two inputs; transcripts of algorithms that spend, and try to overspend, a budget of 1.

    The definition of a local randomizer is pointwise; here outputs are finitely many, so that it says the same for
    densities and probabilities. That the levels of calls on one person may be chosen on the way needs adaptive
    composition, which the document does not state; the filter in the oracle is what makes it true.
    """
    for name, randomizer in _KINDS.items():
        pairs = _inputs(randomizer)
        ends = max(pairs, key=lambda pair: abs(int(pair.x[0]) - int(pair.y[0])))
        yield exact(randomizer, PureDP(randomizer.epsilon), pairs, case=name, relation=REPLACE)
        yield component(randomizer, PureDP(randomizer.epsilon), ends, case=name, relation=REPLACE)

    single = Pair(_database(1), _database(0), "the only person's bit")
    among = Pair(_database(0, 1, 1), _database(0, 0, 1), "the second of three persons' bits")
    spends = LocalOracle([response(0.25), response(0.5)], 1, 1.0)
    whole, three = LocalOracle([response(1.0)], 1, 1.0), LocalOracle([response(0.25), response(0.75)], 3, 1.0)
    for case, algorithm, pair in (
        # Four calls on one index, all answered 1: the whole of the budget.
        ("four_responses", LocalAlgorithm(spends, Repeat(0, 4)), single),
        # Two cheap calls and a dear one; then a fourth that is refused, and so is a fifth.
        ("overspending", LocalAlgorithm(spends, FixedList((0, 1, 0, 0, 1))), single),
        ("asked_until_one", LocalAlgorithm(whole, Repeat(0, 3, until=1)), single),
        ("answers_decide", LocalAlgorithm(three, EveryoneThenTheOdd(3, 2)), among),
        ("noninteractive", LocalAlgorithm(NoninteractiveOracle(three, (0, 2, 4, 3)), FixedList((0, 2, 4, 3))), among),
    ):
        yield from reference(algorithm, PureDP(1.0), pair, case=case, relation=REPLACE, follows=False)

    two = LocalOracle([response(1.0), noisy_value(1.0, 2)], 1, 1.0)
    for name, algorithm, pair in (
        ("budget_per_randomizer", LocalAlgorithm(two, FixedList((0, 1))), single),
        ("checked_after_sampling", LocalAlgorithm(whole, Repeat(0, 3)), single),
        ("refund_on_exception", LocalAlgorithm(whole, Repeat(0, 3)), single),
        (
            "randomizer_sees_more",
            LocalAlgorithm(LocalOracle([response(1.0)], 3, 1.0), FixedList((0, 1, 2))),
            Pair(_database(1, 0, 0), _database(0, 0, 0), "the first of three persons' bits"),
        ),
        ("answers_cached", LocalAlgorithm(whole, Repeat(0, 3)), single),
    ):
        yield broken(MUTANTS[name], algorithm, pair, relation=REPLACE)


# -------------------------------------------------------------------------------- transparency


@entry(
    "002/transparent_randomizer",
    title="Randomizers whose probabilities can be evaluated",
    source=Source("002", "Definition 5.13"),
)
def transparent() -> Iterator[Draft]:
    """What each randomizer says of its probabilities: their sums, their ratios, and what is drawn.

    The running time of the definition is asymptotic; where probabilities are sums, the number of terms is compared with
    ln(1 / phi), for the relaxed form with an additive error of phi.
    """
    for name, randomizer in _KINDS.items():
        yield exact(randomizer, PureDP(randomizer.epsilon), _inputs(randomizer), case=name, relation=REPLACE)
        yield conformity(randomizer, *map(_database, range(len(randomizer.matrix))), case=name)
    yield inequality(_sums, statement="sum over w of Pr[R(u) = w] = 1", relation="==", tolerance=1e-12, case="sums")
    yield inequality(_ratios, statement="Pr[R(u) = w] <= e^eps Pr[R(u') = w]", case="ratios")
    yield inequality(
        _errors, statement="|p_phi(w) - Pr[R(u) = w]| <= phi for the relaxed evaluation", case="relaxed_evaluation"
    )
    yield inequality(
        _terms,
        statement="the relaxed evaluation takes at most 3 + 2 log(1/phi) (inputs - 1) / eps terms",
        case="terms_of_the_evaluation",
        derived=True,
    )


def _sums() -> list[Row]:
    return [
        (f"{name}, input {u}", sum(randomizer.pmf(u, w) for w in range(len(row))), 1.0)
        for name, randomizer in _KINDS.items()
        for u, row in enumerate(randomizer.matrix)
    ]


def _ratios() -> list[Row]:
    """For each pair of inputs, the output with the largest ratio."""
    rows = []
    for name, randomizer in _KINDS.items():
        for pair in _inputs(randomizer):
            for a, b in ((pair.x, pair.y), (pair.y, pair.x)):
                outputs = range(randomizer.rows.shape[1])
                ratio = max(randomizer.pmf(int(a[0]), w) / randomizer.pmf(int(b[0]), w) for w in outputs)
                rows.append((f"{name}, {a[0]} against {b[0]}", ratio, float(np.exp(randomizer.epsilon))))
    return rows


#: Additive errors that are asked for.
_PHI = (1e-1, 1e-3, 1e-6, 1e-9)
#: Randomizers with probabilities that are infinite sums: levels small and large, few and many inputs.
_SUMS = (TwiceNoisy(0.1, 2), TwiceNoisy(1.0, 4), TwiceNoisy(3.0, 2))


def _errors() -> list[Row]:
    """For each error, the output within 20 steps of the inputs at which the evaluation is farthest off."""
    rows = []
    for one in _SUMS:
        for phi in _PHI:
            off = max(abs(one.pmf_within(0, w, phi) - one.pmf(0, w)) for w in range(-20, one.values + 20))
            rows.append((f"eps = {one.epsilon:g}, {one.values} inputs, phi = {phi:g}", off, phi))
    return rows


def _terms() -> list[Row]:
    return [
        (
            f"eps = {one.epsilon:g}, {one.values} inputs, phi = {phi:g}",
            2.0 * one.terms(phi) + 1.0,
            3.0 + 2.0 * np.log(1.0 / phi) * (one.values - 1) / one.epsilon,
        )
        for one in _SUMS
        for phi in _PHI
    ]
