"""Document 003, lecture 1: why the definition is what it is."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from auditor.audits.accuracy import Exactly
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    accuracy,
    broken,
    conformity,
    entry,
    exact,
    inequality,
    privacy,
    reference,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.exact import Law, curve
from auditor.privacy.guarantees import ApproxDP, DeltaDP, PureDP
from experiments.common import REPLACE, person, rand, replaced, visits
from experiments.document_003_bellairs_lectures._posterior import (
    average_distance,
    distances,
    largest_distance,
    largest_move,
    likelihoods,
    two_point_priors,
    worst_prior,
)
from mechanisms.additive_noise.geometric import TwoSidedGeometric
from mechanisms.base.queries import Count, Histogram
from mechanisms.composition.random_row import MUTANTS as ROWS
from mechanisms.composition.random_row import RandomRow
from mechanisms.composition.suppression import MUTANTS as INTERFACES
from mechanisms.composition.suppression import (
    SMALLEST,
    DifferencingAttack,
    GeometricNoiseCounts,
    GuessingGame,
    KnownRestAttack,
    OverlappingDifferencing,
    SuppressedCounts,
    guessing_bound,
)
from mechanisms.local_model.randomized_response import from_epsilon
from mechanisms.selection.exponential import ExponentialMechanism

# ------------------------------------------------------------------------------- differencing


def _is_wrong(right: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Error of a guess: 1 if it is wrong."""
    return 1.0 - right.astype(np.float64)


def _is_right(right: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Error of an interface: 1 if a guess about it is right."""
    return right.astype(np.float64)


@entry(
    "003/differencing_small_count_suppression",
    title="Differencing two large counts",
    source=Source("003", "Lecture 1, opening discussion"),
)
def differencing() -> Iterator[Draft]:
    """Who has 36 visits? Nobody does in these data, or one person; 19,240 have at most 10.

    The bound on guessing is (e^eps + delta) / (1 + e^eps): catalogue 000_001_003, A7.
    """
    attack = DifferencingAttack(Count("mdvis", low=36.0, high=36.0), Count("mdvis", low=0.0, high=10.0))
    noisy = GeometricNoiseCounts(attack.queries, (0.5, 0.5))
    # The target is asked for in the second query only; a person of the wide predicate is in both.
    target, in_both = visits(20, 36), visits(5, 20)
    yield from reference(noisy, PureDP(1.0), [in_both, target], case="noisy_counts", relation=REPLACE, follows=False)
    yield conformity(noisy, target, case="noisy_counts")

    interface = INTERFACES["as_described"]
    yield broken(interface, noisy, target, relation=REPLACE)
    datasets = (target.x, target.y)
    suppressed = GuessingGame(interface.build(noisy), attack)
    yield accuracy(
        suppressed,
        datasets,
        _is_wrong,
        at_most=0.0,
        beta=0.0,
        case="attack_on_suppressed_counts",
        note="the attack is always right",
    )
    bound = guessing_bound(noisy.epsilon)
    yield accuracy(
        suppressed,
        datasets,
        _is_right,
        at_most=0.0,
        beta=bound,
        case="as_described",
        expected="deviation",
        is_mutant=True,
        note="more often right than any attack on an interface of the claimed level",
    )
    yield accuracy(
        GuessingGame(noisy, attack),
        datasets,
        _is_right,
        at_most=0.0,
        beta=bound,
        case="attack_on_noisy_counts",
        note="the same attack",
    )
    # A wide predicate that holds for the target too: the mistake is the audit's, and its attack learns nothing.
    careless = OverlappingDifferencing(attack.target, Count("mdvis", low=0.0, high=40.0))
    yield accuracy(
        GuessingGame(SuppressedCounts(careless.queries, SMALLEST), careless),
        datasets,
        _is_wrong,
        at_most=0.0,
        beta=0.0,
        case="predicates_not_disjoint",
        expected="deviation",
        is_mutant=True,
        note="the person is in both counts, and their difference says nothing",
    )
    # An adversary who knows all other rows needs no first query, and attains the bound at the level of the second.
    yield accuracy(
        GuessingGame(noisy, KnownRestAttack(float(attack.queries[1](target.x)))),
        datasets,
        _is_right,
        at_most=0.0,
        beta=guessing_bound(noisy.epsilons[1]),
        exact=guessing_bound(noisy.epsilons[1]),
        case="informed_attack_on_noisy_counts",
        note="attains the bound at the level of the second answer",
    )


# ------------------------------------------------------------------------ statistical distance


def _growing_groups() -> list[Row]:
    """Statistical distance of datasets that differ in k rows: at most k times that of neighbours."""
    mechanism, n = RandomRow(), 100
    start = np.arange(n, dtype=float)
    rows = []
    for k in range(1, n + 1):
        end = np.where(np.arange(n) < k, start + n, start)
        rows.append(
            (f"{k} of {n} rows differ", curve(mechanism.law(start), mechanism.law(end)).delta(0.0), k / (2 * n))
        )
    return rows


@entry(
    "003/statistical_distance_only_privacy",
    title="A random row, published half of the time",
    source=Source("003", "section 1.2, remark 1"),
)
def statistical_distance() -> Iterator[Draft]:
    """One person's number of visits goes from 0, which others have too, to 36, which nobody has.

    Statistical distance 1/(2n), as delta at every eps; no pure level. What is drawn is on the first 10 persons, where
    1/(2n) = 0.05 is large enough to be estimated; the distribution is also checked on all 20,190.
    """
    mechanism, everybody, common = RandomRow("mdvis"), visits(0, 36), visits(0, 2)
    few = Pair(everybody.x.head(10), everybody.y.head(10), "one of ten persons goes from 0 visits to 36")
    delta = mechanism.delta(few.x)
    for epsilon in (0.0, 1.0, 3.0):
        for pair, case in ((everybody, "all_persons"), (few, "ten_persons")):
            attained = DeltaDP(mechanism.delta(pair.x), epsilon)
            yield exact(mechanism, attained, pair, case=f"{case}_eps_{epsilon:g}", relation=REPLACE)
        # The pair leaves nothing to find at its own delta; half of that is refuted, by a bound that comes close to it.
        half, case = DeltaDP(delta / 2, epsilon), f"half_of_the_delta_eps_{epsilon:g}"
        note = "a control: the bound on delta is to pass half of 1/(2n) at every eps"
        yield exact(mechanism, half, few, case=case, relation=REPLACE, expected="violation", note=note)
        yield privacy(mechanism, half, few, case=case, relation=REPLACE, expected="violation", note=note)
    shared = Pair(common.x.head(10), common.y.head(10), "one of ten persons goes from 0 visits to 2")
    yield exact(mechanism, ApproxDP(1.0, delta), [few, shared], case="ten_persons", relation=REPLACE)
    yield privacy(mechanism, ApproxDP(1.0, delta), shared, case="ten_persons_shared_values", relation=REPLACE)
    yield exact(mechanism, ApproxDP(1.0, delta), shared, case="ten_persons_shared_values", relation=REPLACE)
    yield inequality(
        _growing_groups,
        statement="datasets at distance k have statistical distance at most k/(2n), any two at most 1/2",
        case="statistical_distance_of_groups",
        note="attained: closeness of neighbours alone leaves datasets that have nothing in common at 1/2",
    )

    # Controls: half of the delta, no delta at all, twice the delta.
    described, whole = ROWS["as_described"], ROWS["without_the_half"]
    for claim in (PureDP(1.0), ApproxDP(1.0, delta / 2)):
        yield broken(described, mechanism, few, guarantee=claim, relation=REPLACE)
    yield broken(whole, mechanism, few, guarantee=ApproxDP(1.0, delta), relation=REPLACE)


# ---------------------------------------------------------------------------------- posteriors

_EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 4.0)
#: Priors that are tried: an even grid, beside the worst one.
_PRIORS = two_point_priors(99)


def _response(epsilon: float) -> tuple[Law, Law]:
    """Randomised response on the plans of four persons, one of whom is not known."""
    few = rand().head(4).astype(float)
    mechanism, others = from_epsilon(epsilon, "idp"), few["idp"].iloc[1:]
    return mechanism.law(few.assign(idp=[0.0, *others])), mechanism.law(few.assign(idp=[1.0, *others]))


def _all_distributions(epsilon: float) -> list[tuple[str, tuple[Law, Law]]]:
    """Output distributions of three eps-DP mechanisms on data that differ in one row."""
    health = replaced("health", person(hlthp=0), person(hlthp=1))
    count = TwoSidedGeometric(Count("hlthp", equals=1.0), math.exp(epsilon))
    # A hundred persons: the scores of more are too far apart for all probabilities to be positive doubles.
    visit = visits(0, 5)
    choice = ExponentialMechanism(Histogram("mdvis", edges=(0, 1, 3, 6, 11, 78)), epsilon)
    return [
        ("randomised response", _response(epsilon)),
        ("geometric count", (count.law(health.x), count.law(health.y))),
        ("exponential mechanism", (choice.law(visit.x.head(100)), choice.law(visit.y.head(100)))),
    ]


def _tables(epsilon: float) -> list[tuple[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]]]:
    return [(f"{name}, eps = {epsilon:g}", likelihoods(laws)) for name, laws in _all_distributions(epsilon)]


def _priors(epsilon: float) -> list[tuple[float, float]]:
    worst = worst_prior(epsilon)
    return [*_PRIORS, worst, worst[::-1]]


def _moved_beliefs() -> list[Row]:
    return [(name, largest_move(table, _priors(eps)), eps) for eps in _EPSILONS for name, table in _tables(eps)]


def _bounded_distances() -> list[Row]:
    return [
        (name, largest_distance(table, _priors(eps)), math.tanh(eps / 4))
        for eps in _EPSILONS
        for name, table in _tables(eps)
    ]


def _largest_of_response(epsilon: float) -> float:
    """Largest statistical distance of prior and posterior under randomised response."""
    return float(distances(worst_prior(epsilon), likelihoods(_response(epsilon))).max())


def _attained_distances() -> list[Row]:
    return [(f"eps = {eps:g}", _largest_of_response(eps), math.tanh(eps / 4)) for eps in _EPSILONS]


def _half_prior() -> list[Row]:
    return [
        (f"eps = {eps:g}", largest_distance(likelihoods(_response(eps)), [(0.5, 0.5)]), math.tanh(eps / 2) / 2)
        for eps in _EPSILONS
    ]


def _converse() -> list[Row]:
    """Exact level against what the largest distance implies, over all priors and over the even one."""
    rows = []
    for eps in _EPSILONS:
        for name, laws in _all_distributions(eps):
            table, level = likelihoods(laws), curve(*laws).epsilon(0.0)
            implied = 4 * math.atanh(largest_distance(table, [worst_prior(level), worst_prior(level)[::-1]]))
            rows.append((f"{name}, eps = {eps:g}, worst prior", level, implied))
            even = largest_distance(table, [(0.5, 0.5)])
            rows.append((f"{name}, eps = {eps:g}, even prior", level, 2 * math.atanh(2 * even)))
    return rows


def _correlated_beliefs() -> list[Row]:
    """Two persons who are known to have the same plan: an output moves the belief about one by both."""
    rows = []
    for eps in _EPSILONS:
        mechanism, few = from_epsilon(eps, "idp"), rand().head(2)
        table = likelihoods([mechanism.law(few.assign(idp=float(bit))) for bit in (0, 1)])
        rows.append((f"eps = {eps:g}", largest_distance(table, _priors(2 * eps)), math.tanh(eps / 4)))
    return rows


def _average_distances() -> list[Row]:
    return [
        (f"eps = {eps:g}", average_distance(worst_prior(eps), likelihoods(_response(eps))), math.tanh(eps / 4))
        for eps in _EPSILONS
    ]


@entry(
    "003/bayes_posterior_equivalence",
    title="Posterior beliefs about one row",
    source=Source("003", "section 1.2, remark 2"),
)
def posteriors() -> Iterator[Draft]:
    """All other rows are known; outputs are of randomised response, a geometric count, the exponential mechanism.

    The document states the distances up to constants. The constants are derived: forwards tanh(eps / 4), backwards
    4 artanh (catalogue 000_001_003, bayes_posterior_equivalence).
    """
    yield inequality(
        _moved_beliefs,
        statement="posterior / prior is within e^-eps and e^eps, for every prior, value and output",
        case="ratio_of_posterior_to_prior",
    )
    yield inequality(
        _bounded_distances,
        statement="prior and posterior are within tanh(eps/4) in statistical distance",
        case="distance",
        derived=True,
    )
    yield inequality(
        _attained_distances,
        statement="randomised response attains tanh(eps/4), at the prior 1/(1 + e^(eps/2))",
        relation="==",
        case="distance_attained",
        derived=True,
    )
    yield inequality(
        _half_prior,
        statement="an even prior sees tanh(eps/2)/2 only",
        relation="==",
        case="distance_at_the_even_prior",
        derived=True,
    )
    yield inequality(
        _converse,
        statement="distances of at most e imply a level of at most 4 artanh(e), with the even prior 2 artanh(2e)",
        case="converse",
        derived=True,
    )
    yield scaling(
        _largest_of_response,
        parameter="eps",
        at=tuple(2.0**-k for k in range(8, 1, -1)),
        exponent=1.0,
        others=(0.5, 2.0),
        measure=Exactly("largest statistical distance"),
        curve=lambda eps: eps / 4,
        case="largest_distance",
        derived=True,
        note="with the constant 1/4",
    )
    yield inequality(
        lambda: [
            (f"eps = {eps:g}", eps / 4 * (1 - eps**2 / 48), _largest_of_response(eps)) for eps in (0.01, 0.1, 0.5, 1.0)
        ],
        statement="the constant 1/4 is approached: the distance is at least eps/4 (1 - eps^2/48)",
        case="constant",
        derived=True,
    )
    yield inequality(
        _correlated_beliefs,
        statement="the same distance for a prior that ties two rows",
        case="correlated_prior",
        expected="deviation",
        is_mutant=True,
        note="the statement is about one row, all others fixed",
    )
    yield inequality(
        _average_distances,
        statement="the same distance for the posterior averaged over outputs",
        relation="==",
        case="distance_after_averaging",
        expected="deviation",
        is_mutant=True,
        note="the average of the posteriors is the prior: nothing is seen",
    )
