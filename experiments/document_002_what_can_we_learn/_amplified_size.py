"""Parameters of A* as printed and as corrected, and the sample size they ask for; used by `amplified`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from scipy import stats

from auditor.audits.accuracy import Exactly, Figure
from auditor.audits.inequality import Row
from auditor.claims import Draft, Erratum, accuracy, as_corrected, as_printed, inequality, scaling
from experiments.document_002_what_can_we_learn._amplified_accuracy import (
    ALPHA,
    BETA,
    EPSILON,
    fresh,
    target,
    true_error,
)
from mechanisms.learning.amplified_fresh import AmplifiedWithoutRuns, UniformBits
from mechanisms.learning.amplified_parity import PrintedAmplification, corrected, rounds, size_bound
from mechanisms.learning.parity_samples import elimination_size

#: Number of bits, epsilon, alpha, beta.
Parameters: TypeAlias = tuple[int, float, float, float]

#: Values of log2(1/beta) at which the catalogue gives the sample size, for two bits.
SMALL = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)

E1 = Erratum(
    "E1",
    "false",
    "Section 2.1 says that all algorithms of the document are symmetric: they do not depend on "
    "the order of the entries, so that databases may be multisets, with symmetric difference for the distance.",
    fails="A* cuts the database into blocks by position: its output distribution changes with the order, and if one "
    "record is "
    "deleted every block changes; with one row a block the hypotheses then cost 2 k atanh(eps/4), 3.02 for k = 12 and "
    "eps = 0.5",
    correction="A* is private under replace-one only; a random permutation of the records makes it symmetric",
)
E4 = Erratum(
    "E4",
    "false",
    "Step 1 of A* sets beta' = beta/2, and the proof of Lemma 4.6 concludes 1 - 3 beta' = "
    "1 - beta from three events of probability beta' each.",
    fails="with beta' = beta/2 the three events may have probability 3 beta/2; what A* really loses is far less",
    correction="beta' = beta/3",
)
E5 = Erratum(
    "E5",
    "false",
    "Step 1 of A* sets the number of runs k to the logarithm of 1/beta' to base 3/4, rounded up.",
    fails="the base is below 1, so k is negative, -10 for beta = 0.1: there is no candidate and no hypothesis",
    correction="k = ceil(log_{4/3}(1/beta'))",
)
E7 = Erratum(
    "E7",
    "false",
    "Theorem 4.4 and Lemma 4.6 give A* a sample complexity of O(d log(1/beta) / (eps alpha)).",
    fails="its test part has (c' k / (alpha' eps)) log(k/beta') rows, which grows as log^2(1/beta): whatever the "
    "constant, for small beta A* answers that samples are insufficient",
    correction="O((d log(1/beta) + log^2(1/beta)) / (eps alpha)); the printed bound holds with noise 2/(s eps), which "
    "is enough where only the choice is released, and with the exponential mechanism",
)
E8 = Erratum(
    "E8",
    "proof",
    "The third claim in the proof of Lemma 4.6 bounds the probability that a noisy error is less "
    "than alpha' away from the error by beta'/k.",
    fails="that is the event that should happen, and has probability 1 - beta'/k or more",
    correction="the probability of being alpha' or more away is exp(-alpha' s eps / k), at most beta'/k",
)
E7_FOOTNOTE = Erratum(
    "E7",
    "false",
    "Footnote 4 says that selection by the exponential mechanism has the same asymptotic "
    "behaviour as A*, whose sample complexity Theorem 4.4 gives as O(d log(1/beta) / (eps alpha)).",
    fails="A* needs a term log^2(1/beta) more, so that the ratio of the two sizes grows without bound as beta falls",
    correction="the variant of the footnote is the better one: it attains the bound that the theorem claims",
)


def printed_claims() -> Iterator[Draft]:
    """E4 and E5: beta' and the number of runs."""
    betas = (0.2, 0.1, 0.01, 1e-6)

    def printed(beta: float) -> PrintedAmplification:
        return PrintedAmplification(10, EPSILON, ALPHA, beta)

    yield as_printed(
        "E4",
        inequality(
            lambda: [(f"beta = {beta:g}", 3.0 * printed(beta).failure, beta) for beta in betas],
            statement="three events of probability beta' = beta/2 each have probability at most beta together",
            level="L4",
            expected="deviation",
            case="three_events",
        ),
    )
    yield as_corrected(
        "E4",
        inequality(
            lambda: [row for beta in betas for row in _three_events(beta)],
            statement="with beta' = beta/3 and the corrected k and s, bounds on the three events sum to at most beta",
            level="L4",
            case="three_events_corrected",
            derived=True,
        ),
    )
    yield as_printed(
        "E5",
        inequality(
            lambda: [(f"beta = {beta:g}", 0.75 ** printed(beta).rounds, printed(beta).failure) for beta in betas],
            statement="(3/4)^k <= beta' at the printed number of runs",
            level="L4",
            expected="deviation",
            case="no_good_candidate",
        ),
    )
    yield as_corrected(
        "E5",
        inequality(
            lambda: [(f"beta = {beta:g}", 0.75 ** rounds(beta / 3.0), beta / 3.0) for beta in betas],
            statement="(3/4)^k <= beta' for k = ceil(log_{4/3}(1/beta'))",
            level="L4",
            case="no_good_candidate_corrected",
            derived=True,
        ),
    )
    distribution = UniformBits(10)
    yield as_printed(
        "E5",
        accuracy(
            AmplifiedWithoutRuns(printed(BETA).rounds),
            target(10),
            true_error(distribution),
            at_most=ALPHA,
            beta=BETA,
            exact=1.0,
            expected="deviation",
            case="literal_k",
            is_mutant=True,
            parameters={"k": printed(BETA).rounds},
            note="the number of runs as printed is negative: there is no candidate",
        ),
    )


def _three_events(beta: float) -> list[Row]:
    """Exact bounds on the three events of Lemma 4.6 at the corrected parameters: their sum against beta."""
    split, good = corrected(10, EPSILON, ALPHA, beta), ALPHA / 5.0
    k, s = split.rounds, split.tests
    errors = k * max(
        float(stats.binom.sf(math.ceil(2.0 * good * s) - 1, s, good)),
        float(stats.binom.cdf(math.floor(4.0 * good * s), s, 5.0 * good)),
    )
    noise = k * math.exp(-good * s * EPSILON / k)
    return [(f"beta = {beta:g}", 0.75**k + errors + noise, beta)]


def size(d: int, epsilon: float, alpha: float, beta: float, *, choice_only: bool = False) -> float:
    """Sample size of the corrected A*."""
    return float(corrected(d, epsilon, alpha, beta, choice_only=choice_only).needed)


def size_claims() -> Iterator[Draft]:
    """E7, and the exponents of the corrected bound."""
    two = 2
    yield as_printed(
        "E7",
        scaling(
            lambda length: size(two, EPSILON, ALPHA, 2.0**-length),
            parameter="log2(1/beta)",
            at=SMALL,
            exponent=1.0,
            others=(2.0,),
            measure=Exactly("samples that A* asks for", formula=True),
            expected="deviation",
            case="samples_by_beta_as_printed",
            note="d fixed; n eps alpha / (d log2(1/beta)) is to be bounded, and goes from 236 to 854",
        ),
    )
    # Whatever the constant: here C = 1000, with logarithms to base 2, at beta = 2^-200.
    constant, length = 1000.0, 200.0
    samples = math.ceil(constant * two * length / (EPSILON * ALPHA))
    split = corrected(two, EPSILON, ALPHA, 2.0**-length)
    distribution = UniformBits(two)
    yield as_printed(
        "E7",
        accuracy(
            replace(fresh(distribution, split), samples=samples),
            target(two),
            true_error(distribution),
            at_most=ALPHA,
            beta=2.0**-length,
            exact=1.0,
            expected="deviation",
            case="insufficient_samples",
            parameters={"n": samples, "k n' + s": split.needed},
            note="n = 1000 d log2(1/beta) / (eps alpha) at beta = 2^-200: A* stops for want of samples",
        ),
    )
    ten = UniformBits(10)
    choice_only = corrected(ten.d, EPSILON, ALPHA, BETA, choice_only=True)
    yield as_corrected(
        "E7",
        accuracy(
            fresh(ten, choice_only, choice_only=True),
            target(ten.d),
            true_error(ten),
            at_most=ALPHA,
            beta=BETA,
            case="noise_for_the_choice_alone",
            draws={"smoke": 4_000, "standard": 10_000},
            derived=True,
            independence=False,
            parameters={"k": choice_only.rounds, "s": choice_only.tests, "n": choice_only.needed},
            note="noise 2/(s eps) and a test part for it, whose size has no log^2(1/beta)",
        ),
    )
    lengths = tuple(x * math.log(2.0) for x in SMALL)
    claims: list[tuple[str, str, tuple[float, ...], float, Callable[[float], Parameters]]] = [
        # Fewer bits than log(1/beta), and more.
        ("small_beta", "log(1/beta)", lengths, 2.0, lambda x: (two, EPSILON, ALPHA, math.exp(-x))),
        ("beta", "log(1/beta)", lengths, 1.0, lambda x: (512, EPSILON, ALPHA, math.exp(-x))),
        ("d", "d", (2.0, 8.0, 32.0, 128.0, 512.0), 1.0, lambda x: (round(x), EPSILON, ALPHA, BETA)),
        ("eps", "eps", (0.05, 0.1, 0.2, 0.4, 0.8), -1.0, lambda x: (10, x, ALPHA, BETA)),
        ("alpha", "alpha", (0.01, 0.02, 0.05, 0.1, 0.2), -1.0, lambda x: (10, EPSILON, x, BETA)),
    ]
    for case, name, at, exponent, parameters in claims:
        draft = _claim_sample_size(case, name, at, exponent, parameters)
        yield as_corrected("E7", draft) if case == "small_beta" else draft
    yield inequality(
        _ratios_to_nonprivate,
        statement="the sample size of A* is at most 841 ln(1/beta) / eps times that of the learner without privacy",
        level="L4",
        case="ratio_to_nonprivate",
        derived=True,
        note="the remark after Lemma 4.6, O(ln(1/beta) / eps), which holds with the term log^2(1/beta) as well: "
        "325 d + 38 L <= 469 (d ln 2 + ln(1/beta)) and L = ln(3/beta) <= 1.793 ln(1/beta), for eps <= 0.9, beta < 1/4",
    )


def _ratios_to_nonprivate() -> list[Row]:
    """Sizes of the corrected A* over those of Gaussian elimination, against ``841 ln(1/beta) / eps``."""
    return [
        (
            f"d = {d}, eps = {epsilon:g}, alpha = {alpha:g}, log2(1/beta) = {length:g}",
            size(d, epsilon, alpha, 2.0**-length) / elimination_size(alpha, 2.0**-length, d),
            841.0 * length * math.log(2.0) / epsilon,
        )
        for d in (1, 2, 32, 512)
        for epsilon in (0.05, 0.5, 0.9)
        for alpha in (0.01, 0.1, 0.4)
        for length in (2.1, *SMALL)
    ]


def _claim_sample_size(
    case: str, name: str, at: tuple[float, ...], exponent: float, parameters: Callable[[float], Parameters]
) -> Draft:
    """The corrected sample size against its closed form."""
    return scaling(
        lambda x: size(*parameters(x)),
        parameter=name,
        at=at,
        exponent=exponent,
        measure=Exactly("samples that A* asks for", formula=True),
        curve=lambda x: size_bound(*parameters(x)),
        criterion=False,
        case=f"samples_by_{case}",
        derived=True,
        note="n <= (325 d L + 38 L^2) / (eps alpha), L = ln(3/beta)",
        figure=size_figure("noise k/(s eps) on all errors") if case == "small_beta" else None,
    )


def size_figure(curve: str) -> Figure:
    """Where sample sizes of the two selections are drawn together, over log2(1/beta)."""
    return Figure(
        "Sample size of the amplified parity learner as beta falls",
        curve,
        "log2(1/beta)",
        "samples, two bits, eps = 0.5, alpha = 0.1",
        at=_to_base_two,
    )


def _to_base_two(length: float) -> float:
    return length / math.log(2.0)
