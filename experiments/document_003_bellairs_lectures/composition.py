"""Document 003, section 2.1.2: answering many queries, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditor.audits.accuracy import Exactly
from auditor.audits.inequality import Row
from auditor.claims import (
    Draft,
    Source,
    broken,
    broken_and_deviating,
    conformity,
    entry,
    exact,
    expectation,
    inequality,
    privacy,
    reference,
    scaling,
)
from auditor.datasets import Pair
from auditor.privacy.exact import LossCurve, advanced_composition, curve, optimal_composition
from auditor.privacy.guarantees import ApproxDP, DeltaDP, PureDP
from auditor.targets.analysts import FixedList
from auditor.targets.transcripts import ExactDialogue
from experiments.common import REPLACE, person, replaced, visits
from mechanisms.additive_noise.geometric import TwoSidedGeometric
from mechanisms.additive_noise.laplace import LatticeLaplace
from mechanisms.base.mechanism import FloatArray
from mechanisms.base.queries import Count
from mechanisms.composition.advanced_composition import MUTANTS as CLAIMS
from mechanisms.composition.advanced_composition import (
    ManyResponses,
    expected_absolute_loss,
    expected_loss,
    expected_loss_under_other,
    largest_expected_loss,
)
from mechanisms.composition.composition import MUTANTS as ACCOUNTANTS
from mechanisms.composition.composition import (
    Accountant,
    AccountedPart,
    LeakyResponse,
    LeakyResponsePart,
    NoisyCountPart,
    RowBit,
    Rows,
)
from mechanisms.composition.composition_game import CompositionGame, QuitWhenAhead

_POOR = Count("hlthp", equals=1.0)
#: Four counts that one person enters: in poor health, ten visits or more, many diseases, limited in what she can do.
_FOUR = (_POOR, Count("mdvis", low=10.0), Count("disea", low=31.0), Count("physlm", equals=1.0))


def _health_changes(row: int = 0) -> Pair:
    return replaced("a person in good health is replaced by one in poor health", person(hlthp=0), person(hlthp=1), row)


def _all_four_change() -> Pair:
    """All four counts go up, at a person in the middle of the data."""
    well, ill = person(hlthp=0, mdvis=0, disea=10, physlm=0), person(hlthp=1, mdvis=20, disea=33, physlm=1)
    return replaced("a person enters all four groups", well, ill, index=10_000)


def _at_least(k: int) -> list[Count]:
    """Counts of the persons with at least 1, ..., k visits."""
    return [Count("mdvis", low=float(v)) for v in range(1, k + 1)]


def _noisy_count(count: Count, rows: Rows = None) -> NoisyCountPart:
    """A count with noise on a lattice of sixteenths: so few losses that compositions have exact curves."""
    return NoisyCountPart(count, rows, step=2.0**-4)


# ------------------------------------------------------------------------------- basic composition


@entry("003/basic_composition", title="Basic composition", source=Source("003", "Theorem 2.1.2"))
def basic_composition() -> Iterator[Draft]:
    """A budget accountant over noisy counts, over randomised responses, and over rows published with probability delta.

    The best events: all counts are small; all responses are 1; a row is published.
    """
    four = _all_four_change()
    counts = Accountant([_noisy_count(count) for count in _FOUR], 1.0)
    # Blocks of rows that overlap in thirds: the person in the middle is in three of them.
    blocks = [_noisy_count(_POOR, rows) for rows in ((0, 12_000), (8_000, 16_000), (9_000, 20_190), (0, 4_000))]
    overlapping, middle = Accountant(blocks, 1.0), _health_changes(10_000)
    disjoint = Accountant([_noisy_count(_POOR, rows) for rows in ((0, 8_000), (8_000, 16_000), (16_000, 20_190))], 1.0)
    # The first person's answers to whether she had at least 1, 2, ... 8 visits.
    bits = [LeakyResponsePart(RowBit(count)) for count in _at_least(8)]
    often = visits(0, 40)
    for case, pure, pair in (
        ("laplace_counts", counts, four),
        ("blocks_that_overlap", overlapping, middle),
        ("disjoint_blocks", disjoint, middle),
        ("responses", Accountant(bits, 2.0), often),
    ):
        yield from reference(pure, PureDP(pure.epsilon), pair, case=case, relation=REPLACE, follows=False)
    # A bit is published as it is with probability 1 - 0.99^8 = 0.0773 against a claimed 0.08. By draws only as a
    # distribution: where the best event is impossible on one side, no level counts as detectable.
    rows = Accountant(bits, 0.0, 0.08)
    yield exact(rows, DeltaDP(0.08, 0.0), often, case="rows_published", relation=REPLACE)
    leaky = Accountant(bits, 2.0, 0.008)
    yield from reference(leaky, ApproxDP(2.0, 0.008), often, case="leaky_responses", relation=REPLACE, follows=False)
    yield conformity(counts, four, case="laplace_counts")
    yield conformity(rows, often, case="rows_published")
    yield conformity(leaky, often, case="leaky_responses")

    apart = Accountant([_noisy_count(_POOR), _noisy_count(Count("hlthf", equals=1.0))], 1.0)
    fair = replaced(
        "a person in fair health is replaced by one in poor health",
        person(hlthp=0, hlthf=1),
        person(hlthp=1, hlthf=0),
    )
    yield from broken_and_deviating(ACCOUNTANTS["noise_reused"], apart, fair, relation=REPLACE)
    yield broken(ACCOUNTANTS["budget_not_divided"], counts, four, relation=REPLACE)
    # Both spend twice the budget. Of a budget of 4 that gives noise of half a row, with which a few draws tell the two
    # datasets apart.
    generous = Accountant(counts.parts, 4.0)
    asked_again = Accountant([_noisy_count(_POOR)] * 3 + [_noisy_count(_FOUR[1])], 4.0)
    for name, parts in (("budget_divided_by_sqrt_k", generous), ("counted_by_query_text", asked_again)):
        yield broken(ACCOUNTANTS[name], parts, four, relation=REPLACE)
    yield broken(ACCOUNTANTS["parallel_on_overlap"], overlapping, middle, relation=REPLACE)

    yield scaling(
        _cost_of_counts,
        parameter="k",
        at=[1, 2, 4, 8, 16, 32],
        exponent=1.0,
        others=[0.5, 2.0],
        measure=Exactly(),
        # Plus the rounding of a sum of k levels.
        curve=lambda k: 0.1 * k * (1.0 + 1e-9),
        case="cost_of_laplace_counts",
    )


def _cost_of_counts(k: float) -> float:
    """Exact epsilon of k counts of level 0.1 that all move."""
    parts: list[AccountedPart] = [_noisy_count(count) for count in _at_least(round(k))]
    pair = visits(0, 40)
    counts = Accountant(parts, 0.1 * k)
    return curve(counts.law(pair.x), counts.law(pair.y)).epsilon(0.0)


# -------------------------------------------------------------------------------- the mean of the loss

#: Levels at which means of the loss are computed: the catalogue's statement is for all, the document's for at most 1.
_LEVELS = (0.01, 0.1, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True)
class LossPlusLevel:
    """Privacy loss of a count with geometric noise, plus its level, so that it is not negative.

    Parameters
    ----------
    mechanism : TwoSidedGeometric
        On a query of sensitivity 1.
    centre, other : int
        True answers on the dataset that is drawn from, and on its neighbour.
    """

    mechanism: TwoSidedGeometric
    centre: int
    other: int

    def __call__(self, outputs: Any) -> FloatArray:
        """Return the losses of n outputs plus epsilon, shape (n,), between 0 and 2 epsilon."""
        steps = np.abs(outputs - self.other) - np.abs(outputs - self.centre)
        return np.asarray(self.mechanism.log_a * steps + self.mechanism.epsilon, dtype=np.float64)


@entry("003/kl_of_dp_mechanism", title="Mean of the privacy loss", source=Source("003", "Claim 2.1.4"))
def expected_privacy_loss() -> Iterator[Draft]:
    """At most eps tanh(eps/2), attained by randomised response and geometric noise; computed, and drawn."""
    pair = _health_changes()
    count = TwoSidedGeometric(_POOR, math.e)
    response = LeakyResponse(RowBit(_POOR), 1.0)
    noisy = LatticeLaplace(_POOR, 1.0)
    for case, mechanism in (("geometric", count), ("response", response), ("laplace", noisy)):
        yield from reference(mechanism, PureDP(1.0), pair, case=case, relation=REPLACE, follows=False)
    yield inequality(
        lambda: [(label, mean(pair), largest_expected_loss(eps)) for label, eps, pair, mean in _means(expected_loss)],
        statement="E[L] <= eps tanh(eps/2) for every eps-DP mechanism",
        case="mean_loss",
        derived=True,
    )
    yield inequality(
        lambda: [(f"eps = {eps:g}", largest_expected_loss(eps), eps**2 / 2) for eps in _LEVELS],
        statement="eps tanh(eps/2) <= eps^2 / 2",
        case="quadratic_bound",
        derived=True,
    )
    yield inequality(
        _expected_loss_rows,
        statement="E[L] = eps tanh(eps/2) for randomised response and for geometric noise at a shift of 1",
        relation="==",
        case="attained",
        derived=True,
    )
    yield inequality(
        _laplace_means,
        statement="E[L] = eps - 1 + e^-eps for Laplace noise at its sensitivity",
        relation="==",
        # Lattice of 1,024 steps for a count: the mean of the loss is that of continuous noise to a thousandth.
        tolerance=1e-3,
        case="laplace_mean",
        derived=True,
    )
    for eps in (0.5, 1.0):
        drawn = TwoSidedGeometric(_POOR, math.exp(eps))
        before, after = int(_POOR(pair.x)), int(_POOR(pair.y))
        mean = largest_expected_loss(eps)
        yield expectation(
            drawn,
            pair.x,
            LossPlusLevel(drawn, before, after),
            at_most=eps + mean,
            exact=eps + mean,
            # Twice the claimed mean of the loss itself.
            detect=eps + 2.0 * mean,
            case=f"drawn_losses_{round(10 * eps)}_tenths",
            derived=True,
            note="the mean of the privacy loss of draws, to which eps is added so that it is not negative",
        )
    yield _slope("mean_loss", expected_loss)
    yield inequality(
        lambda: [(label, 0.0, mean(pair)) for label, _, pair, mean in _means(expected_loss_under_other)],
        statement="0 <= E[L]",
        case="loss_under_other_dataset",
        expected="deviation",
        is_mutant=True,
        note="the loss averaged under the other dataset's distribution, where its mean is not positive",
    )
    yield replace(
        _slope("absolute_loss", expected_absolute_loss, expected="deviation"),
        is_mutant=True,
        note="the mean of the absolute value of the loss is linear in epsilon",
    )


def _pairs_of_level(eps: float) -> dict[str, LossCurve]:
    """Oriented pairs of distributions of exactly that level, on the data."""
    pair = _health_changes()
    found = {}
    for name, mechanism in (
        ("randomised response", LeakyResponse(RowBit(_POOR), eps)),
        ("geometric noise", LatticeLaplace(_POOR, eps, step=1.0)),
        ("Laplace noise", LatticeLaplace(_POOR, eps)),
    ):
        losses = curve(mechanism.law(pair.x), mechanism.law(pair.y))
        if not isinstance(losses, LossCurve):
            raise TypeError(f"{name}: expected finitely many losses, got {losses!r}")
        found[name] = losses
    return found


def _means(mean: Callable[[LossCurve], float]) -> list[tuple[str, float, LossCurve, Callable[[LossCurve], float]]]:
    return [
        (f"{name}, eps = {eps:g}", eps, losses, mean)
        for eps in _LEVELS
        for name, losses in _pairs_of_level(eps).items()
    ]


def _expected_loss_rows() -> list[Row]:
    names = ("randomised response", "geometric noise")
    return [
        (label, mean(losses), largest_expected_loss(eps))
        for label, eps, losses, mean in _means(expected_loss)
        if label.startswith(names)
    ]


def _laplace_means() -> list[Row]:
    return [
        (label, mean(losses), eps - 1.0 + math.exp(-eps))
        for label, eps, losses, mean in _means(expected_loss)
        if label.startswith("Laplace")
    ]


def _slope(case: str, mean: Callable[[LossCurve], float], **options: Any) -> Draft:
    """The mean grows exactly with the square of eps: a slower growth is a larger mean at small eps."""
    return scaling(
        lambda eps: mean(_pairs_of_level(eps)["randomised response"]),
        parameter="eps",
        at=[2.0**-j for j in range(8, 0, -1)],
        exponent=2.0,
        others=[1.0],
        measure=Exactly("mean of the loss"),
        both=True,
        case=case,
        **options,
    )


# ------------------------------------------------------------------------------- advanced composition

#: Draws for outputs of 16 numbers and more, in which events take longer to find; half of the usual, or a quarter.
_LONG_OUTPUTS = {"smoke": 100_000, "standard": 500_000}


@entry(
    "003/advanced_composition",
    title="Advanced composition",
    source=Source("003", "Theorem 2.1.3 and the remark on adaptivity"),
)
def advanced() -> Iterator[Draft]:
    """K randomised responses, the event {at least t of them are 1}, k noisy counts, and an adversary who adapts.

    The theorem with its constants is eps' = e sqrt(2 k ln(1/delta')) + k e tanh(e/2); the responses are the worst case
    of all compositions of their level, so their exact epsilon is what is true.
    """
    pair, bit = _health_changes(), RowBit(_POOR)
    for step, k in ((0.1, 99), (0.01, 9999)):
        many = ManyResponses(bit, step, k, 1e-6)
        yield exact(many, ApproxDP(many.epsilon, 1e-6), pair, case=f"responses_{k}_small_delta", relation=REPLACE)
    # At delta' = 1e-6 no event that tells is seen in a million draws: by draws the same theorem at delta' = 0.01.
    many = ManyResponses(bit, 0.1, 99, 0.01)
    yield from reference(many, ApproxDP(many.epsilon, 0.01), pair, case="responses_99", relation=REPLACE, follows=False)
    sharp = optimal_composition(0.1, 99).epsilon(0.01)
    yield from reference(many, ApproxDP(sharp, 0.01), pair, case="responses_99_sharp", relation=REPLACE, follows=False)
    yield conformity(many, pair, case="responses_99")

    yield from _counts()
    yield from _game(pair, bit)
    yield from _wrong_claims(pair, bit)
    yield inequality(
        _exact_and_bounds,
        statement="exact epsilon of k responses <= e sqrt(2 k ln(1/delta')) + k e tanh(e/2)",
        case="theorem_against_the_worst_case",
        derived=True,
    )
    yield inequality(
        _hidden_constant,
        statement="e sqrt(2 k ln(1/delta')) + k e tanh(e/2) <= c e sqrt(k ln(1/delta')) for k < 1/e^2, with "
        "c = sqrt(2) + 1 / (2 sqrt(ln(1/delta')))",
        case="constant_of_the_theorem",
        derived=True,
    )
    yield inequality(
        _leaky_deltas,
        statement="exact delta of k leaky responses at eps' <= 1 - (1 - delta)^k (1 - delta') <= k delta + delta'",
        case="total_delta",
        derived=True,
    )
    for case, step, at, exponent, others in (
        ("few_steps", 0.001, (256, 1024, 4096, 16_384), 0.5, (0.25, 1.0)),
        ("many_steps", 1.0, (8192, 16_384, 32_768, 65_536), 1.0, (0.5, 2.0)),
    ):
        yield scaling(
            _ExactEpsilon(step),
            parameter="k",
            at=at,
            exponent=exponent,
            others=others,
            measure=Exactly("exact epsilon at delta' = 1e-6"),
            curve=_Theorem(step),
            case=case,
            note=f"steps of level {step:g}, k between {at[0] * step**2:.2g} and {at[-1] * step**2:.2g} times 1/e^2",
        )


def _counts() -> Iterator[Draft]:
    """Noisy counts in the place of responses: how often a person has seen a doctor, asked in many ways."""
    often = visits(0, 40)
    for k, step, slack in ((99, 0.1, 1e-6), (16, 0.25, 0.05)):
        asked = (_at_least(33) * 3)[:k]
        counts = Accountant([_noisy_count(count) for count in asked], k * step)
        claim = ApproxDP(advanced_composition(step, k, slack)[0], slack)
        yield exact(counts, claim, often, case=f"laplace_counts_{k}", relation=REPLACE)
        if k == 16:
            yield privacy(counts, claim, often, case=f"laplace_counts_{k}", relation=REPLACE, draws=_LONG_OUTPUTS)


def _game(pair: Pair, bit: RowBit) -> Iterator[Draft]:
    """An adversary who picks each pair and mechanism after the earlier answers; the same bound has to hold."""
    step, k, slack = 0.25, 12, 0.05
    game = CompositionGame(bit, step, k)
    theorem, sharp = advanced_composition(step, k, slack)[0], optimal_composition(step, k).epsilon(slack)
    quitting, fixed = (ExactDialogue(game, analyst) for analyst in (QuitWhenAhead(k, 3), FixedList([0] * k)))
    for case, dialogue, epsilon in (
        ("adaptive_game", quitting, theorem),
        ("adaptive_game_sharp", quitting, sharp),
        ("fixed_list", fixed, sharp),
    ):
        claim = ApproxDP(epsilon, slack)
        yield from reference(dialogue, claim, pair, case=case, relation=REPLACE, draws=_LONG_OUTPUTS, follows=False)
    yield conformity(quitting, pair, case="adaptive_game", draws=_LONG_OUTPUTS)


def _wrong_claims(pair: Pair, bit: RowBit) -> Iterator[Draft]:
    """Wrong accountants: at the theorem's delta' exactly, at larger ones by draws, which need frequent events."""
    usual, long = ManyResponses(bit, 0.1, 99, 1e-6), ManyResponses(bit, 1.0, 100, 1e-6)
    frequent = ManyResponses(bit, 0.1, 99, 0.01)
    for name, certain, drawn in (
        ("log_dropped", usual, frequent),
        ("second_order_dropped", long, ManyResponses(bit, 0.4, 100, 0.3)),
        # Four responses are often enough all 1: that event costs 2, where the theorem's epsilon is 1.67.
        ("delta_prime_missing", usual, ManyResponses(bit, 0.5, 4, 0.5)),
        ("step_eps_halved", usual, frequent),
    ):
        found = CLAIMS[name]
        wrong: Any = found.build(certain)
        claim = ApproxDP(wrong.epsilon, wrong.delta)
        refuted = exact(wrong, claim, pair, case=name, relation=REPLACE, expected="violation", note=found.note)
        yield replace(refuted, is_mutant=True)
        wrong = found.build(drawn)
        yield broken(found, drawn, pair, guarantee=ApproxDP(wrong.epsilon, wrong.delta), relation=REPLACE)


@dataclass(frozen=True)
class _ExactEpsilon:
    """Exact epsilon at delta' = 1e-6 of k responses of one level."""

    step: float

    def __call__(self, k: float) -> float:
        return optimal_composition(self.step, round(k)).epsilon(1e-6)


@dataclass(frozen=True)
class _Theorem:
    """What the theorem says of them."""

    step: float

    def __call__(self, k: float) -> float:
        return advanced_composition(self.step, round(k), 1e-6)[0]


#: Levels of a step, numbers of steps and delta' for the computed statements; 0.1 and 99, 0.01 and 9999 are the
#: catalogue's.
_GRID = [
    (step, k, slack)
    for step, numbers in ((0.01, (100, 2000, 9999)), (0.1, (5, 20, 99)), (0.5, (1, 3)), (1.0, (10, 1000)))
    for k in numbers
    for slack in (1e-9, 1e-6, 0.01, 0.3)
]


def _exact_and_bounds() -> list[Row]:
    return [
        (
            f"e = {step:g}, k = {k}, delta' = {slack:g}",
            optimal_composition(step, k).epsilon(slack),
            advanced_composition(step, k, slack)[0],
        )
        for step, k, slack in _GRID
    ]


def _hidden_constant() -> list[Row]:
    return [
        (
            f"e = {step:g}, k = {k}, delta' = {slack:g}",
            advanced_composition(step, k, slack)[0],
            (math.sqrt(2.0) + 0.5 / math.sqrt(-math.log(slack))) * step * math.sqrt(k * -math.log(slack)),
        )
        for step, k, slack in _GRID
        if k * step**2 < 1.0
    ]


def _leaky_deltas() -> list[Row]:
    rows: list[Row] = []
    for step, k, slack in _GRID:
        for delta in (1e-8, 1e-3):
            epsilon, total = advanced_composition(step, k, slack, delta)
            label = f"e = {step:g}, k = {k}, delta = {delta:g}, delta' = {slack:g}"
            rows.append((f"{label}: exact", optimal_composition(step, k, delta).delta(epsilon), total))
            rows.append((f"{label}: total", total, k * delta + slack))
    return rows
