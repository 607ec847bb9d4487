"""Document 002, appendix: the tail bounds that its sample sizes rest on."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy import Absolute, Setting
from auditor.audits.inequality import Row
from auditor.claims import Draft, Erratum, Source, accuracy, as_corrected, as_printed, entry, inequality
from experiments.common import rand
from mechanisms.statistical_queries.tails import (
    LaplaceMean,
    SampleMean,
    bernstein_bound,
    chernoff_above,
    chernoff_below,
    hoeffding,
    laplace_sum_tail,
    printed_laplace_bound,
    rate_bound,
    sub_gaussian_bound,
    tails,
    value_counts,
)

# ------------------------------------------------------------------------ Theorems A.1 and A.2

#: Numbers of terms, means and deviations of the computed rows: from one term to where the bounds are below 1e-10.
_TERMS = (1, 2, 5, 20, 100, 500, 2000)
_MEANS = tuple(Fraction(*mu) for mu in ((1, 100), (1, 10), (3, 10), (1, 2), (4, 5), (99, 100)))
_PHIS = tuple(Fraction(*phi) for phi in ((1, 20), (1, 4), (1, 2), (9, 10), (1, 1)))
#: Deviations of Theorem A.2, as parts of the range.
_DELTAS = tuple(Fraction(*delta) for delta in ((1, 50), (1, 10), (1, 4), (2, 5)))


@dataclass(frozen=True)
class ExcessOverTruth:
    """By how much a number is above the truth; 0 where it is below.

    Parameters
    ----------
    truth : float
        The true answer.
    """

    truth: float

    def __call__(self, outputs: Any) -> NDArray[np.float64]:
        """Errors of n outputs of shape (n,)."""
        return np.maximum(np.asarray(outputs, dtype=np.float64) - self.truth, 0.0)


def _keep_representable(rows: Iterable[Row]) -> list[Row]:
    """Rows whose bound is a normal float64: below that both sides would be 0, and nothing compared."""
    return [row for row in rows if row[2] >= sys.float_info.min]


def _bit(mu: Fraction) -> tuple[Fraction, Fraction]:
    return 1 - mu, mu


def _chernoff_rows(above: bool) -> list[Row]:
    rows = []
    for n in _TERMS:
        for mu in _MEANS:
            for phi in _PHIS:
                below_mean, above_mean = tails(_bit(mu), n, (1 - phi) * mu, (1 + phi) * mu)
                probability = above_mean if above else below_mean
                bound = (chernoff_above if above else chernoff_below)(float(mu), float(phi), n)
                rows.append((f"n = {n}, mu = {mu}, phi = {phi}", probability, bound))
    return _keep_representable(rows)


def _visits() -> tuple[Fraction, ...]:
    """Distribution of a person's number of visits, of which ten at most count."""
    values, often = value_counts(rand(), "mdvis")
    total = int(often.sum())
    law = [Fraction(0)] * 11
    for value, count in zip(values.tolist(), often.tolist(), strict=True):
        law[min(int(value), 10)] += Fraction(count, total)
    return tuple(law)


def _hoeffding_rows() -> list[Row]:
    """Bits, which are extremal, a distribution near to a fair bit on {0, 2}, and visits to a doctor, from 0 to 10."""
    spread = (Fraction(9, 20), Fraction(1, 10), Fraction(9, 20))
    laws = [(f"bits of mean {mu}", _bit(mu)) for mu in _MEANS] + [("0, 1 or 2", spread), ("visits", _visits())]
    rows = []
    for name, law in laws:
        mean, width = sum((k * p for k, p in enumerate(law)), Fraction(0)), len(law) - 1
        for n in (n for n in _TERMS if n * width <= 2000):
            for delta in _DELTAS:
                below, above = tails(law, n, mean - delta * width, mean + delta * width)
                rows.append(
                    (f"{name}, n = {n}, delta = {delta} of the range", below + above, hoeffding(float(delta), 1.0, n))
                )
    return rows


@entry(
    "002/chernoff_hoeffding",
    title="Chernoff's and Hoeffding's bounds",
    source=Source("002", "Theorems A.1 and A.2"),
)
def chernoff_hoeffding() -> Iterator[Draft]:
    """Exact tails of binomial sums, and of sums of a person's visits, against the bounds; and persons who are sampled.

    Both theorems hold. The rows are computed, from one term to 2,000; the samples are of 200 persons drawn with
    replacement from the 20,190 of the data, at deviations where the bound is 0.05.
    """
    for case, above, statement in (
        ("chernoff_above", True, "P[mean >= (1 + phi) mu] <= exp(-phi^2 mu n / 3)"),
        ("chernoff_below", False, "P[mean <= (1 - phi) mu] <= exp(-phi^2 mu n / 2)"),
    ):
        yield inequality(
            partial(_chernoff_rows, above),
            statement=statement,
            level="L4",
            case=case,
            note="n bits of mean mu, phi in (0, 1]; binomial distribution",
        )
    yield inequality(
        _hoeffding_rows,
        statement="P[|mean - mu| >= delta] <= 2 exp(-2 delta^2 n / (b - a)^2)",
        level="L4",
        case="hoeffding",
        note="distributions of integers, and their sums by convolution",
    )
    n, beta = 200, 0.05
    share = float(rand()["idp"].mean())
    phi = math.sqrt(3.0 * math.log(1.0 / beta) / (share * n))
    # One-sided: what is below the mean is no failure.
    yield accuracy(
        SampleMean(n, "idp"),
        rand(),
        ExcessOverTruth(share),
        at_most=phi * share,
        beta=beta,
        strict=True,
        case="share_of_persons_on_plan",
        controls={"a 40th of the persons": SampleMean(n // 40, "idp")},
        note="Theorem A.1, upper tail",
        parameters={"n": n, "phi": phi},
    )
    mean, width = float(rand()["mdvis"].mean()), 77.0
    most = width * math.sqrt(math.log(2.0 / beta) / (2.0 * n))
    yield accuracy(
        SampleMean(n, "mdvis"),
        rand(),
        Absolute(mean),
        at_most=most,
        beta=beta,
        strict=True,
        case="mean_of_visits",
        controls={
            "persons with ten visits or more": Setting(
                SampleMean(n, "mdvis"), rand()[rand()["mdvis"] >= 10], Absolute(mean), most
            )
        },
        note="Theorem A.2 for visits between 0 and 77",
        parameters={"n": n, "range": width},
    )


# ------------------------------------------------------------------------------- Lemma A.3

_E17 = Erratum(
    "E17",
    "false",
    "Lemma A.3 says for independent X_1 .. X_n from Lap(lambda) and every delta > 0 that "
    "Pr[|sum X_i / n| >= delta] = exp(-delta^2 n / (4 lambda^2)).",
    fails="read as an upper bound, it is exceeded: with u = delta / lambda, at n = 1, u = 5 the probability is 0.0067 "
    "where 0.0019 is stated, at n = 2, u = 4 it is 0.0017 for 0.00034, at n = 3, u = 3 it is 0.0021 for 0.0012; for "
    "any u, however small, it is exceeded from some n on, as the exact rate is below u^2/4. As an equality it fails in "
    "the other direction as well: 0.37 for 0.78 at n = u = 1. The proof bounds the upper tail only, and uses "
    "(1 - x)^-1 < e^x for 0 < x < 1/2, where the reverse holds",
    correction="2 exp(-n delta^2 / (4 lambda^2 + 2 lambda delta)) for every delta > 0; "
    "2 exp(-n delta^2 / (8 lambda^2)) for delta <= 2 sqrt(2) lambda; the exact rate is "
    "sqrt(1 + u^2) - 1 - ln((1 + sqrt(1 + u^2)) / 2) for n. What is derived from the lemma keeps its form, with other "
    "constants",
)

#: Where the printed bound is exceeded often enough to be seen in draws: terms and delta / lambda, and draws at smoke.
_SEEN = ((1, 5.0, 30_000), (2, 4.0, 80_000), (3, 3.0, 300_000))
#: Where only the exact distribution shows it. The proof remarks on delta < 1 < lambda: the last three rows have delta <
#: lambda.
_COMPUTED = ((10, 2.0), (30, 1.4), (100, 1.0), (300, 0.9), (400, 0.7), (1700, 0.5))
#: For the bounds that hold: from one term to 3,000, and from a hundredth of the scale to a hundred scales, as far as
#: bounds are above 2e-308.
_GRID = tuple(
    (n, u) for n in (1, 2, 3, 10, 30, 100, 300, 1000, 3000) for u in (0.01, 0.1, 0.5, 1.0, 2.0, 2.8, 5.0, 20.0, 100.0)
)


def _laplace_rows(bound: Callable[[int, float], float], places: Iterable[tuple[int, float]]) -> list[Row]:
    return _keep_representable(
        (f"n = {n}, delta = {u:g} lambda", laplace_sum_tail(n, n * u), bound(n, u)) for n, u in places
    )


@entry(
    "002/laplace_sum_tail",
    title="Tail of a mean of Laplace variables",
    source=Source("002", "Lemma A.3"),
    errata=[_E17],
)
def laplace_sum() -> Iterator[Draft]:
    """The printed bound in draws and in numbers, and three bounds that hold; lambda = 1, so that delta is u.

    The exact tail is a mixture of Gamma tails. With delta below lambda, as a remark in the proof has it, the printed
    bound is exceeded only at probabilities below 1e-12: those are computed.
    """
    for n, u, smoke in _SEEN:
        place = f"n_{n}"
        exact, mechanism = laplace_sum_tail(n, n * u), LaplaceMean(n)
        draws = {"smoke": smoke, "standard": 1_000_000}
        yield as_printed(
            "E17",
            accuracy(
                mechanism,
                0.0,
                Absolute(0.0),
                at_most=u,
                beta=printed_laplace_bound(n, u),
                strict=True,
                exact=exact,
                expected="deviation",
                case=f"printed_{place}",
                draws=draws,
                parameters={"n": n, "delta / lambda": u},
            ),
        )
        yield as_corrected(
            "E17",
            accuracy(
                mechanism,
                0.0,
                Absolute(0.0),
                at_most=u,
                beta=bernstein_bound(n, u),
                strict=True,
                exact=exact,
                case=f"bernstein_{place}",
                draws=draws,
                derived=True,
                parameters={"n": n, "delta / lambda": u},
            ),
        )
    yield as_printed(
        "E17",
        inequality(
            partial(_laplace_rows, printed_laplace_bound, _COMPUTED),
            statement="P[|mean| >= delta] <= exp(-n delta^2 / (4 lambda^2))",
            level="L4",
            expected="deviation",
            case="printed",
        ),
    )
    for case, bound, statement, places in (
        ("exact_rate", rate_bound, "2 exp(-n I(delta / lambda))", _GRID),
        ("bernstein", bernstein_bound, "2 exp(-n delta^2 / (4 lambda^2 + 2 lambda delta))", _GRID),
        (
            "sub_gaussian",
            sub_gaussian_bound,
            "2 exp(-n delta^2 / (8 lambda^2))",
            [(n, u) for n, u in _GRID if u < 2.82],
        ),
    ):
        yield as_corrected(
            "E17",
            inequality(
                partial(_laplace_rows, bound, tuple(places)),
                statement=f"P[|mean| >= delta] <= {statement}",
                level="L4",
                case=case,
                derived=True,
                note="for delta of at most 2 sqrt(2) lambda" if case == "sub_gaussian" else "for every delta",
            ),
        )
