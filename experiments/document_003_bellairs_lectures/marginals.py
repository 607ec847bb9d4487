"""Document 003, section 6.3: all t-way conjunctions of a person's attributes, with independent noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from auditor.audits.accuracy import Exactly, Figure, Largest, Setting
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    broken,
    conformity,
    entry,
    exact,
    expectation,
    inequality,
    reference,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.guarantees import ApproxDP, PureDP
from experiments.common import REPLACE, person, rand, replaced
from mechanisms.query_release.marginals import (
    MUTANTS,
    BinaryAttributes,
    ComposedMarginals,
    GaussianMarginals,
    PureMarginals,
    median_of_largest_laplace,
    median_of_largest_normal,
    rows_needed,
)

_N = len(rand())
_EPSILON, _DELTA = 1.0, 1e-6
#: One attribute of each column: visits, coinsurance, deductible, incentive payment, expenditure cap, limitation,
#: chronic diseases, and health rated good, fair or poor.
TEN = BinaryAttributes(
    (
        ("mdvis", 1.0),
        ("lncoins", 1.0),
        ("idp", 1.0),
        ("lpi", 1.0),
        ("fmde", 1.0),
        ("physlm", 0.5),
        ("disea", 10.0),
        ("hlthg", 1.0),
        ("hlthf", 1.0),
        ("hlthp", 1.0),
    )
)
#: And ten more cuts of the columns that have more than two values.
TWENTY = BinaryAttributes(
    (
        *TEN.cuts,
        ("mdvis", 2.0),
        ("mdvis", 4.0),
        ("mdvis", 8.0),
        ("lncoins", 3.5),
        ("lncoins", 4.0),
        ("lpi", 6.0),
        ("lpi", 6.5),
        ("fmde", 6.0),
        ("disea", 5.0),
        ("disea", 15.0),
    )
)
#: Health rated good, fair or poor.
HEALTH = BinaryAttributes(TEN.cuts[-3:])
#: Health rated fair or poor.
TWO = BinaryAttributes(TEN.cuts[-2:])
#: A person without any of the attributes, and one with all.
NOBODY = person(**dict.fromkeys(rand().columns, 0.0))
EVERYBODY = person(**{str(name): float(rand()[name].max()) for name in rand().columns})

#: An output is 180 numbers.
_FEWER = {"smoke": 5_000, "standard": 30_000}
_SOME = {"smoke": 10_000, "standard": 200_000}


def complementary() -> Pair:
    """Two rows that differ in every attribute."""
    return replaced("person 0 has none of the attributes, against all", NOBODY, EVERYBODY)


def one_attribute() -> Pair:
    """Two rows that differ in one attribute."""
    return replaced("person 0 has none of the attributes, against poor health", NOBODY, {**NOBODY, "hlthp": 1.0})


def fair_and_poor() -> Pair:
    """Two rows that differ in two attributes."""
    both = {**NOBODY, "hlthf": 1.0, "hlthp": 1.0}
    return replaced("person 0 has none of the attributes, against fair and poor health", NOBODY, both)


def _harmonic_number(k: int) -> float:
    """H_k, the expectation of the largest of k exponential variables."""
    return sum(1.0 / i for i in range(1, k + 1))


@entry("003/tway_marginals_laplace", title="t-way marginals, independent noise", source=Source("003", "section 6.3"))
def tway_marginals() -> Iterator[Draft]:
    """All conjunctions of two or three attributes, negated or not; two persons that differ in all attributes.

    The document answers k = 2^t C(d, t) queries by the Laplace mechanism within error o(1) once n is about sqrt(k),
    which takes advanced composition. A row satisfies C(d, t) of the k conjunctions, whatever it is, so the sensitivity
    is 2 C(d, t)/n, and not k/n, in the l1 norm, and sqrt(2 C(d, t))/n in the l2 norm (derived).
    """
    claimed, apart = PureDP(_EPSILON), complementary()
    pairs = [apart, one_attribute()]
    pure = PureMarginals(TEN, 2, _N, _EPSILON)
    draws = {"smoke": 70_000, "standard": 70_000}
    yield from reference(pure, claimed, pairs, case="two_way", relation=REPLACE, draws=draws, follows=False)
    small = PureMarginals(HEALTH, 2, _N, _EPSILON)
    yield conformity(small, rand(), case="health", draws={"smoke": 12_000, "standard": 200_000})
    yield exact(PureMarginals(TEN, 3, _N, _EPSILON), claimed, pairs, case="three_way", relation=REPLACE)
    rough = ApproxDP(_EPSILON, _DELTA)
    for case, mechanism in (
        ("two_way_composed", ComposedMarginals(TEN, 2, _N, _EPSILON, _DELTA)),
        ("two_way_gaussian", GaussianMarginals(TEN, 2, _N, _EPSILON, _DELTA)),
    ):
        yield exact(mechanism, rough, apart, case=case, relation=REPLACE)
    gaussian = GaussianMarginals(HEALTH, 2, _N, _EPSILON, _DELTA)
    draws = {"smoke": 40_000, "standard": 200_000}
    yield from reference(gaussian, rough, apart, case="health_gaussian", relation=REPLACE, draws=draws, follows=False)
    yield from _mutants()
    yield from _accuracy()
    yield from _exponents()


def _mutants() -> Iterator[Draft]:
    # One set of two attributes: two answers move, by twice the noise's scale together.
    one, two = MUTANTS["sensitivity_one_sided"], PureMarginals(TWO, 2, _N, _EPSILON)
    yield broken(one, two, fair_and_poor(), relation=REPLACE, draws=_SOME)
    # Two of the three sets have the attribute: four answers move.
    each, health = MUTANTS["no_composition"], PureMarginals(HEALTH, 2, _N, _EPSILON)
    yield broken(each, health, one_attribute(), relation=REPLACE, draws=_SOME)
    subtracted = MUTANTS["negatives_by_exact_subtraction"]
    yield broken(subtracted, PureMarginals(TEN, 2, _N, _EPSILON), one_attribute(), relation=REPLACE, draws=_FEWER)
    three, found = PureMarginals(TEN, 3, _N, _EPSILON), MUTANTS["sensitivity_k_over_n"]
    yield expectation(
        found.build(three),
        rand(),
        Largest(three.counts(rand()) * three.unit),
        at_most=three.scale * _harmonic_number(three.queries),
        case=found.name,
        expected="deviation",
        is_mutant=True,
        draws={"smoke": 400, "standard": 2_000},
        note=found.note,
    )


def _accuracy() -> Iterator[Draft]:
    for case, t in (("two_way", 2), ("three_way", 3)):
        mechanism = PureMarginals(TEN, t, _N, _EPSILON)
        yield expectation(
            mechanism,
            rand(),
            Largest(mechanism.counts(rand()) * mechanism.unit),
            at_most=mechanism.scale * _harmonic_number(mechanism.queries),
            exact=mechanism.expected_largest(),
            case=f"{case}_largest",
            draws={"smoke": 100, "standard": 2_000},
            derived=True,
            note="the expectation is b H_k for the Laplace distribution: nothing is lost",
        )
    yield inequality(
        _expected_maxima,
        statement="the expectation of the largest of k = 2^t C(d, t) errors is b H_k",
        relation="==",
        level="L4",
        # Noise on the integers for Laplace noise; the scales are 90 rows and more.
        tolerance=1e-4,
        case="expected_largest",
        derived=True,
    )


def _expected_maxima() -> list[Row]:
    rows: list[Row] = []
    for attributes, t in ((TEN, 2), (TEN, 3), (TWENTY, 3), (TWENTY, 4)):
        mechanism = PureMarginals(attributes, t, _N, _EPSILON)
        label = f"d = {len(attributes)}, t = {t}, k = {mechanism.queries:,}, in scales"
        rows.append((label, mechanism.expected_largest() / mechanism.scale, _harmonic_number(mechanism.queries)))
    return rows


# --------------------------------------------------------------------------------------- exponents

#: Attributes for which the number of rows is computed: C(d, t) is d^t/t! to a few percent.
_MANY = (64.0, 128.0, 256.0, 512.0)
#: The first so many of the twenty attributes, for what is drawn.
_FEW = (5.0, 10.0, 20.0)


def _exponents() -> Iterator[Draft]:
    """Rows for a fixed error, computed; and the error of a fixed number of rows, drawn: it is in proportion to 1/n."""
    for t in (2, 3):
        for case, exponent, needed in (
            ("pure", float(t), _NeededRows(t)),
            ("composed", t / 2.0, _NeededRows(t, _DELTA, composed=True)),
            ("gaussian", t / 2.0, _NeededRows(t, _DELTA)),
        ):
            yield scaling(
                needed,
                parameter="d",
                at=_MANY,
                exponent=exponent,
                others=(t / 2.0,) if case == "pure" else (float(t), 1.5 if t == 2 else 1.0),
                log_factor=_NormalFactor(t) if case == "gaussian" else _LaplaceFactor(t),
                measure=Exactly("rows for a median of the largest error of 0.1"),
                figure=Figure(f"Rows for all {t}-way marginals", case, "attributes d", "rows"),
                case=f"rows_{t}_way_{case}",
                derived=case != "composed",
            )
    for case, exponent, kind, log_factor in (
        ("pure", 2.0, PureMarginals, _LaplaceFactor(2)),
        ("composed", 1.0, ComposedMarginals, _LaplaceFactor(2)),
        ("gaussian", 1.0, GaussianMarginals, _NormalFactor(2)),
    ):
        yield scaling(
            _DrawnError(kind),
            parameter="d",
            at=_FEW,
            exponent=exponent,
            others=(1.0, 1.5) if case == "pure" else (1.5, 2.0),
            log_factor=_FiniteSizeFactor(log_factor, 1.0 if case == "pure" else 0.5),
            case=f"error_2_way_{case}",
            draws={"smoke": 600, "standard": 3_000},
            derived=case != "composed",
        )


@dataclass(frozen=True)
class _NeededRows:
    """Rows for a median of the largest error of 0.1, by the number of attributes."""

    t: int
    delta: float = 0.0
    composed: bool = False

    def __call__(self, d: float) -> float:
        return rows_needed(int(d), self.t, _EPSILON, 0.1, delta=self.delta, composed=self.composed)


@dataclass(frozen=True)
class _LaplaceFactor:
    """Median of the largest of 2^t C(d, t) Laplace errors, in scales: about ln k."""

    t: int

    def __call__(self, d: float) -> float:
        return median_of_largest_laplace(math.comb(int(d), self.t) << self.t)


@dataclass(frozen=True)
class _NormalFactor:
    """The same of normal errors, in standard deviations: about sqrt(2 ln k)."""

    t: int

    def __call__(self, d: float) -> float:
        return median_of_largest_normal(math.comb(int(d), self.t) << self.t)


@dataclass(frozen=True)
class _FiniteSizeFactor:
    """A factor, and what C(d, 2) is short of d^2/2, to a power: one part in 5 at d = 5."""

    factor: Callable[[float], float]
    power: float

    def __call__(self, d: float) -> float:
        return self.factor(d) * math.pow(1.0 - 1.0 / d, self.power)


@dataclass(frozen=True)
class _DrawnError:
    """Largest error of all two-way marginals of the first attributes."""

    kind: Callable[..., Any]

    def __call__(self, d: float) -> Setting:
        mechanism = self.kind(BinaryAttributes(TWENTY.cuts[: int(d)]), 2, _N, _EPSILON)
        return Setting(mechanism, rand(), Largest(mechanism.counts(rand()) * mechanism.unit))
