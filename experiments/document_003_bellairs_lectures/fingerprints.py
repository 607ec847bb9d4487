"""Document 003, section 5.2: fingerprinting codes.

What the experiments found beside the catalogue:

* It lists 111, 491, 2181, 9761 and 42,961 as smallest blocks for n = 5 .. 80 and xi = 0.01. The probability of a false
  accusation is no monotone function of B: it takes ceil(B/n) ones more, so it falls where B passes a multiple of n and
  rises up to the next. The smallest B that keep it are 106, 481, 2181, 9721 and 42,961; all B keep it from 111, 491,
  2201, 9761 and 43,041 on. The list has some of either.
* The proof of the Tardos code bounds the weights of columns by the cut-off. Without it nothing that can be simulated
  goes wrong at these lengths: innocent scores keep their variance. What fails is that premise, which is claimed here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import integrate, special

from auditor.audits.accuracy import Exactly, Figure, Setting, Smallest
from auditor.audits.adversaries.fingerprints import BonehShaw, Tardos, smallest_block, sufficient_block
from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, accuracy, conformity, entry, expectation, inequality, scaling
from mechanisms.base.mechanism import FloatArray, IntArray, Mechanism
from mechanisms.lower_bounds.code_mutants import MUTANTS
from mechanisms.lower_bounds.pirates import (
    AllOnesPirate,
    CoinPirate,
    FramingPirate,
    InnocentRise,
    InnocentScore,
    LargestCodeWeight,
    MajorityPirate,
    MinorityPirate,
    PiracyGame,
    PirateScores,
    PirateStrategy,
    ProportionalPirate,
    ScoreAwarePirate,
    SecondRelease,
    SilentPirate,
    StratifiedPirate,
    missing_user,
)

_XI = 0.01
#: Where lengths are compared: errors so frequent that few draws tell them apart; arbitrary.
_ERROR = 0.2
#: Draws that decide a failure rate of at most 1 % with none, or two in a thousand, failing.
_DECIDE = {"smoke": 8_000, "standard": 12_000}
#: For what always or never happens.
_FEW = {"smoke": 80, "standard": 400}


def _figure(curve: str) -> Figure:
    return Figure("Fingerprinting codes", curve, "users", f"columns for an error of {_ERROR:g}")


def _all_users_but(user: int, users: int) -> IntArray:
    """Everybody but one user."""
    return np.setdiff1d(np.arange(1, users + 1), [user])


def _mutant(name: str, base: PiracyGame | PirateScores) -> Any:
    return MUTANTS[name].build(base)


# ------------------------------------------------------------------------------------ Boneh and Shaw


@dataclass(frozen=True)
class _IsOutsiderTraced:
    """1 where somebody is traced who is not in the coalition."""

    coalition: tuple[int, ...]

    def __call__(self, traced: Any) -> FloatArray:
        return np.asarray((np.asarray(traced) > 0) & ~np.isin(traced, self.coalition), dtype=np.float64)


def _is_nobody_traced(traced: Any) -> FloatArray:
    """1 where nobody is traced."""
    return np.asarray(np.asarray(traced) == 0, dtype=np.float64)


def _claim_innocent_spared(mechanism: Any, coalition: IntArray, **options: Any) -> Draft:
    """Claim that nobody outside a coalition is traced, with probability 1 - xi."""
    outside, code = _IsOutsiderTraced(tuple(coalition.tolist())), mechanism.code
    known = _mutant("permutation_omitted", PiracyGame(code, FramingPirate(missing_user(coalition, code.users))))
    options.setdefault("controls", {"pirates who frame him, as the order of the columns is no secret": known})
    return accuracy(
        mechanism,
        coalition,
        outside,
        at_most=0,
        beta=_XI,
        draws=_DECIDE,
        derived=True,
        **options,
    )


def _claim_guilty_traced(mechanism: Mechanism, coalition: IntArray, **options: Any) -> Draft:
    """Claim that a feasible word always traces somebody."""
    return accuracy(mechanism, coalition, _is_nobody_traced, at_most=0, beta=0, draws=_FEW, **options)


@entry(
    "003/boneh_shaw_code",
    title="Fingerprinting code with blocks",
    source=Source("003", "section 5.2, Claim 5.2.1"),
)
def boneh_shaw_code() -> Iterator[Draft]:
    """All but one user collude; whoever they are and whatever they do, nobody else is traced, and somebody is.

    The length that the document writes as O~(n^2) columns a block is ``ceil(2 n^2 ln(n / xi))`` here. In the displayed
    matrix the last user's row has zeros below the last block, where ones are meant.
    """
    code, smallest = BonehShaw(5, sufficient_block(5, _XI)), BonehShaw(5, smallest_block(5, _XI))
    most = _all_users_but(3, 5)
    pirates: dict[str, PirateStrategy] = {
        "majority": MajorityPirate(),
        "coin": CoinPirate(),
        "proportional": ProportionalPirate(),
        "all_ones": AllOnesPirate(),
        "minority": MinorityPirate(),
    }
    for name, pirate in pirates.items():
        yield _claim_innocent_spared(
            PiracyGame(smallest, pirate),
            most,
            case=name,
            independence=name == "coin",
            note="five users, 106 columns a block: the fewest that are enough",
        )
    yield _claim_innocent_spared(
        PiracyGame(code, ProportionalPirate()),
        most,
        case="block_of_the_claim",
        independence=False,
        note="five users, 311 columns a block",
    )
    ten = PiracyGame(BonehShaw(10, smallest_block(10, _XI)), CoinPirate())
    yield _claim_innocent_spared(
        ten,
        _all_users_but(5, 10),
        case="ten_users",
        independence=False,
        note="481 columns a block; the claim has 1,382",
    )
    for name, user in (("first_innocent", 1), ("middle_innocent", 3), ("last_innocent", 5)):
        yield _claim_guilty_traced(
            PiracyGame(code, MinorityPirate()), _all_users_but(user, 5), case=f"somebody_{name}", independence=False
        )
    # The premise of both claims: the secret order alone splits the columns.
    rise = InnocentRise(smallest)
    yield conformity(
        rise, most, case="innocent_rise", draws={"smoke": 7_000, "standard": 30_000}, note="hypergeometric"
    )
    yield from _block_mutants(smallest, most)
    yield from _block_growth()


def _block_mutants(code: BonehShaw, most: IntArray) -> Iterator[Draft]:
    """Each mutant beside the reference, on the same pirates."""
    cases: list[tuple[str, PiracyGame, IntArray]] = [
        ("permutation_omitted", PiracyGame(code, FramingPirate(3)), most),
        ("code_reused", SecondRelease(code, FramingPirate(3)), most),
        ("infeasible_word_as_proof", PiracyGame(code, SilentPirate()), _all_users_but(5, 5)),
    ]
    for name, base, coalition in cases:
        found = MUTANTS[name]
        broken = found.build(base)
        yield _claim_innocent_spared(
            base, coalition, case=f"reference_{name}", independence=False, controls={name: broken}
        )
        yield _claim_innocent_spared(
            broken, coalition, case=name, expected="deviation", is_mutant=True, note=found.note
        )
    # Everybody colludes, and the word rises by exactly 1/8 from each block to the next.
    everybody = PiracyGame(BonehShaw(8, 8 * math.ceil(sufficient_block(8, _XI) / 8)), StratifiedPirate())
    yield _claim_guilty_traced(everybody, np.arange(1, 9), case="reference_float_comparison", independence=False)
    found = MUTANTS["float_comparison"]
    yield _claim_guilty_traced(
        found.build(everybody),
        np.arange(1, 9),
        case=found.name,
        expected="deviation",
        is_mutant=True,
        independence=False,
        note=found.note,
    )


def _block_growth() -> Iterator[Draft]:
    at = (5, 10, 20, 40, 80)
    yield scaling(
        lambda n: smallest_block(int(n), _XI),
        parameter="n",
        at=at,
        exponent=2.0,
        others=(1.5, 2.5, 3.0),
        log_factor=lambda n: math.log(n / _XI),
        measure=Exactly("smallest block"),
        curve=lambda n: sufficient_block(int(n), _XI),
        case="block",
        derived=True,
    )
    yield scaling(
        lambda n: BonehShaw(int(n), smallest_block(int(n), _ERROR)).length,
        parameter="n",
        at=at,
        exponent=3.0,
        others=(2.0, 4.0),
        log_factor=lambda n: math.log(n / _ERROR),
        # (n + 1) / n has not settled at 5.
        within=0.15,
        measure=Exactly("smallest number of columns"),
        curve=lambda n: BonehShaw(int(n), sufficient_block(int(n), _ERROR)).length,
        case="length",
        derived=True,
        figure=_figure("Boneh and Shaw, exact"),
    )


# -------------------------------------------------------------------------------------------- Tardos


@dataclass(frozen=True)
class _InnocentAccused:
    """1 where a user beyond the first so many, the coalition, is accused."""

    guilty: int

    def __call__(self, scores: Any) -> FloatArray:
        return np.asarray((np.asarray(scores)[:, self.guilty :] > 1).any(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class _NobodyAccused:
    """1 where none of the coalition is accused."""

    guilty: int

    def __call__(self, scores: Any) -> FloatArray:
        return np.asarray((np.asarray(scores)[:, : self.guilty] <= 1).all(axis=1), dtype=np.float64)


@dataclass(frozen=True)
class _IsWrongAccusation:
    """1 where an innocent user is accused, or none of the coalition."""

    guilty: int

    def __call__(self, scores: Any) -> FloatArray:
        return np.maximum(_InnocentAccused(self.guilty)(scores), _NobodyAccused(self.guilty)(scores))


def _innocent_square(scores: Any) -> FloatArray:
    """Square of the last user's score, over that of the threshold."""
    return np.asarray(np.asarray(scores)[:, -1] ** 2, dtype=np.float64)


def _identity(weights: Any) -> FloatArray:
    return np.asarray(weights, dtype=np.float64)


def ones_of_all_ones(code: Tardos, pirates: int) -> float:
    """Probability that one of so many pirates has a one in a column: 1 - E[(1 - p)^k], by quadrature over r."""
    end = math.asin(math.sqrt(code.cutoff))
    value, _ = integrate.quad(lambda r: math.cos(r) ** (2 * pirates), end, math.pi / 2 - end, epsabs=1e-13)
    return 1 - float(value) / (math.pi / 2 - 2 * end)


# --------------------------------------------------------------------------------- how scores are spread

#: Constant of the bound of Berry and Esseen for sums of equal terms (Shevtsova 2011).
_BERRY_ESSEEN = 0.4748
#: Where distribution functions are compared, in standard deviations; arbitrary, fine.
_AT = np.linspace(-4.0, 4.0, 401)
#: Users of the codes that the catalogue ran, and draws of each: an entry of a code is the cost.
_SOME: dict[int, dict[str, int]] = {
    6: {"smoke": 250, "standard": 2_500},
    12: {"smoke": 120, "standard": 1_000},
    20: {"smoke": 100, "standard": 400},
}


def guilty_mean(scoring: PirateScores) -> float:
    """Mean score of a pirate over the threshold, in closed form, for a coalition of the code's own size.

    Proportional pirates: a column adds ``p sqrt((1-p)/p)`` to the score of the one whose entry is taken, and nothing to
    the others on average. All ones: it adds to each ``sqrt(p (1-p))`` where no other pirate has a one. Both have an
    elementary integral over r; without the cut-off it is 5/pi for all pirates.
    """
    end, c = math.asin(math.sqrt(scoring.code.cutoff)), scoring.code.coalition
    power = 2 if isinstance(scoring.pirate, ProportionalPirate) else 2 * c
    return 5.0 * (math.cos(end) ** power - math.sin(end) ** power) / (math.pi - 4.0 * end)


def _guilty_by_quadrature(scoring: PirateScores) -> float:
    """The same from the distribution of how many pirates have a one in a column, by quadrature over r."""
    code, c = scoring.code, scoring.code.coalition
    end, s = math.asin(math.sqrt(code.cutoff)), np.arange(c + 1)
    word = s / c if isinstance(scoring.pirate, ProportionalPirate) else (s > 0).astype(np.float64)
    log_binomial = special.gammaln(c + 1) - special.gammaln(s + 1) - special.gammaln(c - s + 1)

    def column(r: float) -> float:
        mass = np.exp(log_binomial + 2 * s * math.log(math.sin(r)) + 2 * (c - s) * math.log(math.cos(r)))
        return float(mass @ (word * (s / math.tan(r) - (c - s) * math.tan(r)))) / c

    value, _ = integrate.quad(column, end, math.pi / 2 - end, epsabs=1e-13)
    return code.length / code.threshold * value / (math.pi / 2 - 2 * end)


@dataclass(frozen=True)
class DoubledScores:
    """Scores of twice the size."""

    scoring: PirateScores

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw the scores of `n` runs."""
        return 2.0 * self.scoring(data, n, rng)


@dataclass(frozen=True)
class _GuiltyMean:
    """By how much the mean score of the first so many users, the coalition, is above a number, or below it.

    What is on the other side counts as 0; the number is to be ten deviations away, so that the mean is the same.
    """

    guilty: int
    base: float
    sign: float = 1.0

    def __call__(self, scores: Any) -> FloatArray:
        mean = np.asarray(scores)[:, : self.guilty].mean(axis=1)
        return np.asarray(np.maximum(self.sign * (mean - self.base), 0.0))


def _normal_distances() -> list[Row]:
    """Largest distance of the innocent score's distribution function from the normal one, and its bound."""
    rows = []
    for scoring in _scorings():
        score, members = InnocentScore(scoring), _all_users_but(scoring.code.users, scoring.code.users)
        deviation = score.deviation(members)
        apart = np.abs(score.below(members, _AT * deviation) - special.ndtr(_AT)).max()
        sums = (deviation * scoring.code.threshold) ** 3 / scoring.code.length
        limit = _BERRY_ESSEEN * score.third_moment(members) / sums
        rows.append((_name(scoring), float(apart), limit))
    return rows


def _scorings() -> list[PirateScores]:
    return [PirateScores(Tardos(n, n - 1), pirate) for n in _SOME for pirate in (ProportionalPirate(), AllOnesPirate())]


def _name(scoring: PirateScores) -> str:
    return (
        f"n = {scoring.code.users}, {'proportional' if isinstance(scoring.pirate, ProportionalPirate) else 'all ones'}"
    )


def _guilty_means() -> list[Row]:
    return [(_name(s), guilty_mean(s), _guilty_by_quadrature(s)) for s in _scorings()]


def _guilty_range() -> list[Row]:
    """The catalogue's 1.6 to 1.7 thresholds, against the quadrature."""
    found = [(_name(s), _guilty_by_quadrature(s)) for s in _scorings()]
    return [row for name, mean in found for row in ((f"{name}, from below", 1.6, mean), (f"{name}", mean, 1.7))]


def _scores() -> Iterator[Draft]:
    """Mean scores of pirates from both sides, the distribution of innocent scores, and whole runs, at three sizes."""
    yield inequality(
        _guilty_means,
        relation="==",
        statement="mean scores of pirates in closed form and by the distribution of the ones in a column",
        level="L4",
        case="guilty_mean",
        derived=True,
    )
    yield inequality(
        _guilty_range,
        statement="a pirate's mean score is 1.6 to 1.7 thresholds",
        level="L4",
        case="guilty_mean_range",
        derived=True,
    )
    yield inequality(
        _normal_distances,
        statement="innocent scores are as near to the normal distribution of variance d P[w = 1] as Berry and Esseen "
        "have it",
        level="L4",
        case="innocent_normal",
        derived=True,
        note="largest distance of the exact distribution function from the normal one, and its bound",
    )
    draft = conformity(
        InnocentScore(PirateScores(Tardos(6, 5), ProportionalPirate())),
        np.arange(1, 6),
        case="innocent_score",
        draws={"smoke": 4_600, "standard": 10_000},
        note="in eighths of the normal distribution, by the characteristic function",
    )
    yield replace(draft, independence=False)
    for users, draws in _SOME.items():
        scoring, members = PirateScores(Tardos(users, users - 1), ProportionalPirate()), np.arange(1, users)
        mean, guilty = guilty_mean(scoring), users - 1
        for side, sign in (("", 1.0), ("_from_below", -1.0)):
            draft = expectation(
                scoring,
                members,
                _GuiltyMean(guilty, (1 - 0.5 * sign) * mean, sign),
                at_most=0.5 * mean * (1 + 1e-9),
                exact=0.5 * mean,
                case=f"guilty_mean_of_{users}{side}",
                draws=draws,
                # A mean that is 15 % off.
                detect=0.65 * mean,
                derived=True,
                controls={"scores of twice the size": DoubledScores(scoring)},
                note="in thresholds, " + ("above half of the mean" if sign > 0 else "below 1.5 times the mean"),
            )
            yield replace(draft, independence=False)
        if users == 6:
            continue
        # As many runs as can be had; what is stated is far below what so few tell.
        yield accuracy(
            scoring,
            members,
            _IsWrongAccusation(guilty),
            at_most=0,
            beta=_XI + _XI ** (guilty / 4),
            case=f"whole_run_of_{users}",
            draws=draws,
            detect=0.5 if users == 20 else 0.3,
            independence=False,
            derived=True,
            note="an error is the innocent user accused, or none of the pirates",
        )


def _claim_not_missed(scoring: PirateScores, guilty: int, **options: Any) -> Draft:
    """Claim that a coalition is not missed, with probability 1 - xi^(c/4) of the code's own c."""
    beta = scoring.code.xi ** (scoring.code.coalition / 4)
    data = np.arange(1, guilty + 1)
    return accuracy(scoring, data, _NobodyAccused(guilty), at_most=0, beta=beta, derived=True, **options)


@entry(
    "003/tardos_code",
    title="Fingerprinting code with hidden column biases",
    source=Source("003", "section 5.2"),
)
def tardos_code() -> Iterator[Draft]:
    """A coalition of all users but one: he is not accused, somebody else is.

    The document gives the idea; the constants are those of Tardos (2003). Given the word and the biases, columns add
    independent terms of mean 0 and variance 1 to an innocent score, so that its variance is the number of ones of the
    word. The probability ``xi^(c/4)`` of a miss is decided for small coalitions only.
    """
    six = Tardos(6, 5)
    five = np.arange(1, 6)
    proportional, all_ones = PirateScores(six, ProportionalPirate()), PirateScores(six, AllOnesPirate())
    yield accuracy(
        proportional,
        five,
        _InnocentAccused(5),
        at_most=0,
        beta=_XI,
        case="innocent",
        controls={"weights_swapped": _mutant("weights_swapped", proportional)},
        draws={"smoke": 3_000, "standard": 8_000},
        independence=False,
        derived=True,
    )
    # Per threshold: d P[w = 1] / Z^2; a standard deviation of 0.158 Z, and of 0.20 Z.
    for name, scoring, ones in (
        ("proportional", proportional, 0.5),
        ("all_ones", all_ones, ones_of_all_ones(six, 5)),
    ):
        variance = six.length * ones / six.threshold**2
        draft = expectation(
            scoring,
            five,
            _innocent_square,
            at_most=variance,
            exact=variance,
            case=f"innocent_variance_{name}",
            controls={"scores of twice the size": DoubledScores(scoring)},
            draws={"smoke": 250, "standard": 2_500},
            derived=True,
            note="in units of the squared threshold",
        )
        yield replace(draft, independence=False)
    draws = {"smoke": 1_200, "standard": 10_000}
    yield _claim_not_missed(PirateScores(Tardos(3, 2), ProportionalPirate()), 2, case="guilty_of_two", draws=draws)
    yield _claim_not_missed(
        PirateScores(Tardos(4, 3), ProportionalPirate()), 3, case="guilty_of_three", draws=draws, independence=False
    )
    yield _claim_not_missed(
        PirateScores(Tardos(4, 3), AllOnesPirate()), 3, case="guilty_all_ones", draws=draws, independence=False
    )
    yield from _scores()
    yield from _bias_mutants(six, five)
    # d / (5 c) is the threshold at any length: what is shorter errs more often.
    yield scaling(
        _at_length,
        parameter="n",
        at=(3, 6, 12),
        exponent=2.0,
        others=(1.0, 3.0),
        measure=Smallest(beta=_ERROR, low=8, high=8_000, resolution=1.15),
        curve=lambda n: Tardos(int(n) + 1, int(n), _ERROR).length,
        within=0.15,
        case="length",
        draws={"smoke": 5_400, "standard": 30_000},
        derived=True,
        figure=_figure("Tardos, measured"),
        note="n pirates of n + 1 users; an error is an innocent user accused, or none of the pirates",
    )


def _at_length(n: float) -> Any:
    pirates = int(n)
    code = Tardos(pirates + 1, pirates, _ERROR)

    def build(columns: int) -> Setting:
        scoring = PirateScores(replace(code, columns=columns), ProportionalPirate())
        return Setting(scoring, np.arange(1, pirates + 1), _IsWrongAccusation(pirates), at_most=0)

    return build


def _bias_mutants(code: Tardos, coalition: IntArray) -> Iterator[Draft]:
    """Mutants, each at a statement that holds for the code."""
    few = {"smoke": 200, "standard": 500}
    proportional = PirateScores(code, ProportionalPirate())
    bound = math.sqrt(300 * code.coalition)  # sqrt((1 - t) / t) is smaller
    uncut, swapped = MUTANTS["no_bias_cutoff"], MUTANTS["weights_swapped"]
    yield accuracy(
        LargestCodeWeight(code),
        (0,),
        _identity,
        at_most=bound,
        beta=0,
        case="largest_weight",
        controls={uncut.name: LargestCodeWeight(_mutant(uncut.name, proportional).code)},
        draws=few,
        independence=False,
        derived=True,
    )
    yield accuracy(
        LargestCodeWeight(_mutant(uncut.name, proportional).code),
        (0,),
        _identity,
        at_most=bound,
        beta=0,
        case=uncut.name,
        draws=few,
        expected="deviation",
        independence=False,
        is_mutant=True,
        derived=True,
        note=uncut.note,
    )
    yield accuracy(
        swapped.build(proportional),
        coalition,
        _InnocentAccused(5),
        at_most=0,
        beta=_XI,
        case=swapped.name,
        draws=few,
        expected="deviation",
        independence=False,
        is_mutant=True,
        derived=True,
        note=swapped.note,
    )
    for name, scoring, guilty, note in (
        ("biases_published", _mutant("biases_published", PirateScores(code, ScoreAwarePirate())), 5, None),
        ("zero_columns_scored", _mutant("zero_columns_scored", proportional), 5, None),
        # A score falls in proportion to the pirates, to 0.4 of the threshold.
        (
            "coalition_too_large",
            PirateScores(replace(code, users=21), ProportionalPirate()),
            20,
            "a code against 5, 20 pirates",
        ),
    ):
        yield _claim_not_missed(
            scoring,
            guilty,
            case=name,
            draws=few,
            expected="deviation",
            independence=False,
            is_mutant=True,
            note=note or MUTANTS[name].note,
        )
