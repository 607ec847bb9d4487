"""Fingerprinting codes and pirates: the codes themselves, exact distributions against enumeration, and what mutants do.

Every statistical check fails for a correct program with probability at most 1e-6, whatever the seed.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from auditor.audits.adversaries.fingerprints import (
    BiasCodebook,
    BlockCodebook,
    BonehShaw,
    Tardos,
    innocent_tail,
    smallest_block,
    sufficient_block,
    traced_distribution,
)
from auditor.errors import SpecificationError
from experiments.document_003_bellairs_lectures.fingerprints import _guilty_means, guilty_mean, ones_of_all_ones
from mechanisms.lower_bounds.code_mutants import MUTANTS
from mechanisms.lower_bounds.pirates import (
    AllOnesPirate,
    CoalitionView,
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
    coalition_of,
)

FALSE_ALARM = 1e-6
PIRATES: list[PirateStrategy] = [
    MajorityPirate(),
    MinorityPirate(),
    AllOnesPirate(),
    CoinPirate(),
    ProportionalPirate(),
    StratifiedPirate(),
    FramingPirate(2),
    ScoreAwarePirate(),
]


def rng(seed: int = 20261122) -> np.random.Generator:
    return np.random.default_rng(seed)


def without(user: int, users: int) -> Any:
    return np.setdiff1d(np.arange(1, users + 1), [user])


def within(count: int, n: int, p: float, tests: int = 1) -> bool:
    """Whether a count is no rarer than `FALSE_ALARM` for its distribution."""
    low, high = stats.binom.cdf(count, n, p), stats.binom.sf(count - 1, n, p)
    return bool(min(low, high) >= FALSE_ALARM / 2 / tests)


# ------------------------------------------------------------------------------- blocks and permutation


def test_a_user_has_ones_from_his_block_on() -> None:
    code = BonehShaw(4, 3)
    book = code.generate(5, rng())
    users = np.tile(np.arange(1, 5), (5, 1))
    rows = book.rows(users)
    assert rows.shape == (5, 4, code.length) == (5, 4, 15)
    for trial in range(5):
        assert Counter(book.labels[trial].tolist()) == dict.fromkeys(range(5), 3)
        for user, row in zip(users[trial], rows[trial], strict=True):
            assert (row == (book.labels[trial] >= user)).all()
    # Users 2 and 4 in another order, and counted.
    assert (book.rows(np.tile([4, 2], (5, 1))) == rows[:, [3, 1]]).all()
    assert (book.ones(np.array([2, 4])) == rows[:, [1, 3]].sum(axis=1)).all()


def test_the_order_of_columns_is_uniform() -> None:
    draws = 12_000
    book = BonehShaw(2, 1).generate(draws, rng())
    seen = Counter(map(tuple, book.labels.tolist()))
    assert len(seen) == 6
    assert all(within(count, draws, 1 / 6, tests=6) for count in seen.values())


def test_sums_and_statistic_are_those_of_the_blocks() -> None:
    book = BonehShaw(3, 5).generate(7, rng())
    values = rng(1).random((7, 20))
    sums = np.array([[v[lab == b].sum() for b in range(4)] for v, lab in zip(values, book.labels, strict=True)])
    assert book.sums(values) == pytest.approx(sums)
    users = np.array([1, 2, 3, 1, 2, 3, 1])
    rises = [(sums[k, u] - sums[k, u - 1]) / 5 for k, u in enumerate(users)]
    assert book.statistic(values, users) == pytest.approx(rises)


@pytest.mark.parametrize(("users", "block"), [(2, 3), (3, 2), (3, 4), (4, 3)])
def test_the_first_sufficient_rise_is_traced_and_a_feasible_word_has_one(users: int, block: int) -> None:
    code = BonehShaw(users, block)
    every = np.array(list(itertools.product(range(block + 1), repeat=users + 1)))
    traced = code.trace(every)
    for sums, found in zip(every.tolist(), traced.tolist(), strict=True):
        rises = [i for i in range(1, users + 1) if users * (sums[i] - sums[i - 1]) >= block]
        assert found == (rises[0] if rises else 0)
    feasible = (every[:, 0] == 0) & (every[:, -1] == block)
    assert feasible.any()
    assert (traced[feasible] > 0).all()


@pytest.mark.parametrize("pirate", PIRATES, ids=lambda pirate: type(pirate).__name__)
@pytest.mark.parametrize("members", [[1, 3, 4], [1, 2, 3, 4], [2], [3, 4]])
def test_pirates_write_what_some_member_has(pirate: PirateStrategy, members: list[int]) -> None:
    book = BonehShaw(4, 6).generate(40, rng())
    coalition = np.array(members)
    rows = book.rows(np.tile(coalition, (40, 1))) == 1
    word = pirate(CoalitionView(4, coalition, book.ones(coalition)), rng(1))
    assert word.shape == (40, 30)
    assert (rows == word[:, None, :]).any(axis=1).all()


def test_silence_is_infeasible() -> None:
    view = CoalitionView(4, np.array([1, 2]), np.array([[0, 1, 2]]))
    assert not SilentPirate()(view, rng()).any()


def test_pirates_do_what_they_are_called() -> None:
    ones = np.array([[0, 1, 2, 3, 4]])
    view = CoalitionView(5, np.array([1, 2, 3, 4]), ones)
    words: dict[PirateStrategy, list[int]] = {
        MajorityPirate(): [0, 0, 0, 1, 1],
        MinorityPirate(): [0, 1, 0, 0, 1],
        AllOnesPirate(): [0, 1, 1, 1, 1],
        ScoreAwarePirate(): [0, 1, 0, 0, 1],
    }
    for pirate, word in words.items():
        assert pirate(view, rng())[0].astype(int).tolist() == word
    # With biases: a one where fewer members have one than the bias says.
    knowing = CoalitionView(5, np.array([1, 2, 3, 4]), ones, biases=np.array([[0.9, 0.2, 0.6, 0.9, 0.9]]))
    assert ScoreAwarePirate()(knowing, rng())[0].astype(int).tolist() == [0, 0, 1, 1, 1]
    n = 20_000
    many = CoalitionView(5, np.array([1, 2, 3, 4]), np.tile(ones, (n, 1)))
    for count, p in zip(ProportionalPirate()(many, rng()).sum(axis=0), (0, 0.25, 0.5, 0.75, 1), strict=True):
        assert within(int(count), n, p, tests=8)
    assert all(within(int(count), n, 0.5, tests=8) for count in CoinPirate()(many, rng()).sum(axis=0)[1:4])


def test_stratified_pirates_write_the_exact_share() -> None:
    ones = rng().integers(0, 6, (30, 200))
    word = StratifiedPirate()(CoalitionView(9, np.arange(1, 6), ones), rng())
    for row, found in zip(ones, word, strict=True):
        for s in range(6):
            assert found[row == s].sum() == (row == s).sum() * s // 5


def test_coalitions_are_refused_that_are_none() -> None:
    assert coalition_of([3, 1], 3).tolist() == [1, 3]
    for data in ([], [1, 1], [0, 1], [4]):
        with pytest.raises(ValueError, match="member"):
            coalition_of(data, 3)
    with pytest.raises(ValueError, match="all but one of 3 users, got"):
        InnocentRise(BonehShaw(3, 2)).law([1])


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda: BonehShaw(1, 5), "users must be an integer of at least 2, got 1"),
        (lambda: BonehShaw(3, 0), "block must be an integer of at least 1, got 0"),
        (lambda: BonehShaw(3, True), "got True"),
        (lambda: Tardos(3, 0), "coalition must be an integer of at least 1, got 0"),
        (lambda: Tardos(3, 2, 1.0), r"xi must be a number in \(0, 1\), got 1.0"),
        (lambda: Tardos(3, 2, 0.1, 0), "columns must be an integer of at least 1, got 0"),
        (lambda: sufficient_block(3, 0.0), r"xi must be a number in \(0, 1\), got 0.0"),
    ],
)
def test_bad_codes_are_refused(build: Any, match: str) -> None:
    with pytest.raises(SpecificationError, match=match):
        build()


# --------------------------------------------------------------------------------------- exact distributions


def test_an_innocent_rise_is_hypergeometric_by_enumeration() -> None:
    code = BonehShaw(3, 2)
    mechanism = InnocentRise(code)
    orders = np.array(sorted(set(itertools.permutations([0, 0, 1, 1, 2, 2, 3, 3]))), dtype=np.int16)
    for missing in (1, 2, 3):
        members = without(missing, 3)
        book = BlockCodebook(code, orders)
        word = StratifiedPirate()(CoalitionView(3, members, book.ones(members)), rng())
        seen = Counter(mechanism.read(book, members, word).tolist())
        law = mechanism.law(members)
        assert set(seen) <= set(law.outcomes)
        for outcome, probability in zip(law.outcomes, law.probabilities, strict=True):
            assert seen[outcome] / len(orders) == pytest.approx(probability, abs=1e-12)


def test_the_tail_near_the_middle_is_the_largest() -> None:
    for users, block in ((2, 7), (5, 106), (5, 110), (7, 150)):
        least = -(-block // users)
        tails = []
        for m in range(2 * block + 1):
            h = np.arange(max(0, m - block), min(m, block) + 1)
            tails.append(stats.hypergeom.pmf(h, 2 * block, m, block)[2 * h - m >= least].sum())
        assert innocent_tail(users, block) == pytest.approx(max(tails), rel=1e-9)
        assert innocent_tail(users, block) <= math.exp(-block / (2 * users**2))


@pytest.mark.parametrize(("users", "first", "always"), [(5, 106, 111), (10, 481, 491)])
def test_the_smallest_block_is_the_first_that_works(users: int, first: int, always: int) -> None:
    """What the catalogue lists is the first from which on all work: by trying blocks up to half as long again."""
    works = [users * innocent_tail(users, block) <= 0.01 for block in range(1, always * 3 // 2)]
    assert 1 + works.index(True) == smallest_block(users, 0.01) == first
    assert 1 + len(works) - works[::-1].index(False) == always


def test_smallest_blocks_of_the_catalogue() -> None:
    assert [smallest_block(n, 0.01) for n in (20, 40, 80)] == [2181, 9721, 42_961]
    assert [users * innocent_tail(users, b) <= 0.01 for users, b in ((20, 2200), (40, 9760), (80, 43_040))] == [
        False
    ] * 3
    assert [sufficient_block(n, 0.01) for n in (5, 10, 20)] == [311, 1382, 6081]


def test_the_traced_law_by_enumeration() -> None:
    code = BonehShaw(2, 2)
    p = np.array([0.2, 0.5, 0.9])
    expected = np.zeros(3)
    for word in itertools.product((0, 1), repeat=6):
        bits = np.array(word)
        sums = bits.reshape(3, 2).sum(axis=1)
        chance = np.where(bits == 1, p.repeat(2), 1 - p.repeat(2)).prod()
        expected[code.trace(sums[None])[0]] += chance
    assert traced_distribution(2, 2, p) == pytest.approx(expected)
    both = traced_distribution(2, 2, np.array([p, [0.0, 0.5, 1.0]]))
    assert both[0] == pytest.approx(expected)
    assert both.sum(axis=1) == pytest.approx(1.0)
    assert both[1, 0] == 0.0  # a feasible word


def test_traced_users_follow_the_exact_law() -> None:
    # All but user 3 of 4 toss coins: blocks have ones with probability 0, 1/2, 1/2, 1/2 and 1.
    code, n = BonehShaw(4, 12), 20_000
    law = traced_distribution(4, 12, np.array([0.0, 0.5, 0.5, 0.5, 1.0]))
    counts = np.bincount(PiracyGame(code, CoinPirate())(without(3, 4), n, rng()), minlength=5)
    assert all(within(int(count), n, p, tests=5) for count, p in zip(counts, law, strict=True))


# ------------------------------------------------------------------------------------ mutants of blocks


def test_pirates_frame_where_they_can_tell_columns() -> None:
    code = BonehShaw(5, sufficient_block(5, FALSE_ALARM))
    assert 120 * innocent_tail(5, code.block) <= FALSE_ALARM  # 20 draws, 3 users, 2 ways of asking
    for user in (2, 3, 4):
        framed = PiracyGame(code, FramingPirate(user))
        assert user not in framed(without(user, 5), 20, rng())
        assert set(MUTANTS["permutation_omitted"].build(framed)(without(user, 5), 20, rng())) == {user}
        later = SecondRelease(code, FramingPirate(user))
        assert user not in later(without(user, 5), 20, rng())
        assert set(MUTANTS["code_reused"].build(later)(without(user, 5), 20, rng())) == {user}
    # The first and the last user cannot be framed: their columns are as all members have them.
    for user in (1, 5):
        assert user not in MUTANTS["permutation_omitted"].build(PiracyGame(code, FramingPirate(user)))(
            without(user, 5), 5, rng()
        )


def test_floats_miss_ties_and_elimination_needs_no_evidence() -> None:
    everybody = PiracyGame(BonehShaw(8, 16), StratifiedPirate())
    assert set(everybody(np.arange(1, 9), 10, rng())) == {1}
    assert set(MUTANTS["float_comparison"].build(everybody)(np.arange(1, 9), 10, rng())) == {0}
    silent = PiracyGame(BonehShaw(5, 106), SilentPirate())
    assert set(silent(without(5, 5), 10, rng())) == {0}
    assert set(MUTANTS["infeasible_word_as_proof"].build(silent)(without(5, 5), 10, rng())) == {5}


def test_forty_users() -> None:
    code = BonehShaw(40, sufficient_block(40, FALSE_ALARM))
    assert code.length == 41 * code.block > 2_000_000
    assert int(PiracyGame(code, CoinPirate())(without(20, 40), 1, rng())[0]) not in (0, 20)


# --------------------------------------------------------------------------------------------- Tardos


def test_the_constants_are_those_of_tardos() -> None:
    for users, coalition, xi, length in ((6, 5, 0.01, 12_500), (100, 99, 0.01, 4_900_500), (4, 3, 0.1, 2700)):
        code = Tardos(users, coalition, xi)
        logarithm = math.ceil(math.log(1 / xi))
        assert code.length == 100 * coalition**2 * logarithm == length
        assert code.threshold == pytest.approx(20 * coalition * logarithm)
        assert code.cutoff == pytest.approx(1 / (300 * coalition))


def test_biases_have_the_stated_law() -> None:
    code, columns = Tardos(2, 4), 40_000
    p = 1 / (1 + code.part(1, columns, rng()).tangents[0] ** -2)
    assert p.min() >= code.cutoff * (1 - 1e-12)
    assert p.max() <= 1 - code.cutoff * (1 - 1e-12)
    # Arc sine distribution between both ends; the inequality of Dvoretzky, Kiefer and Wolfowitz.
    end = math.asin(math.sqrt(code.cutoff))
    r = (np.arcsin(np.sqrt(np.sort(p))) - end) / (math.pi / 2 - 2 * end)
    distance = np.abs(r - (np.arange(columns) + 0.5) / columns).max() - 0.5 / columns
    assert distance <= math.sqrt(math.log(2 / FALSE_ALARM) / (2 * columns))


def test_scores_are_those_of_the_definition() -> None:
    code = Tardos(3, 2, columns=50)
    book = code.generate(4, rng())
    word = rng(1).random((4, 50)) < 0.5
    p = 1 / (1 + book.tangents**-2)
    expected = np.zeros((4, 3))
    for k, u, j in itertools.product(range(4), range(3), range(50)):
        if word[k, j]:
            q = p[k, j]
            expected[k, u] += math.sqrt((1 - q) / q) if book.bits[k, u, j] else -math.sqrt(q / (1 - q))
    assert book.scores(word) == pytest.approx(expected)
    users = np.array([1, 2, 3, 2])
    chosen = expected[np.arange(4), users - 1]
    assert book.statistic(word.astype(float), users) == pytest.approx(chosen / code.threshold)
    assert (book.accuses(word, users) == (chosen > code.threshold)).all()
    assert (book.rows(users[:, None])[:, 0] == book.bits[np.arange(4), users - 1]).all()
    assert (book.ones(np.array([1, 3])) == book.bits[:, [0, 2]].sum(axis=1)).all()


def test_columns_in_parts_are_columns_of_one_code(monkeypatch: pytest.MonkeyPatch) -> None:
    scoring = PirateScores(Tardos(4, 3, columns=1000), AllOnesPirate())
    whole = scoring(np.arange(1, 4), 300, rng())
    monkeypatch.setattr("mechanisms.lower_bounds.pirates._ENTRIES", 4 * 64)  # 64 columns of one code at a time
    parts = scoring(np.arange(1, 4), 300, rng(1))
    assert whole.shape == parts.shape == (300, 4)
    # Two samples of one distribution: each within half of what separates them by the same inequality.
    for user in (0, 3):
        limit = 2 * math.sqrt(math.log(8 / FALSE_ALARM) / (2 * 300))
        assert stats.ks_2samp(whole[:, user], parts[:, user]).statistic <= limit


def moments(code: Tardos, power: float) -> float:
    """E of 1[w = 1] |term|^power for an innocent user and proportional pirates, a column."""
    end = math.asin(math.sqrt(code.cutoff))

    def integrand(r: float) -> float:
        p = math.sin(r) ** 2
        return float(p * (p * math.tan(r) ** -power + (1 - p) * math.tan(r) ** power))

    value, _ = integrate.quad(integrand, end, math.pi / 2 - end, limit=200)
    return float(value) / (math.pi / 2 - 2 * end)


def test_innocent_scores_are_nearly_normal() -> None:
    code, n = Tardos(4, 3), 1_500
    assert moments(code, 2) == pytest.approx(0.5)
    scores = PirateScores(code, ProportionalPirate())(np.arange(1, 4), n, rng())[:, -1]
    sigma = math.sqrt(code.length / 2) / code.threshold
    # Terms are independent and identically distributed over columns: Berry and Esseen, with the constant 0.4748.
    normal = 0.4748 * moments(code, 3) / (moments(code, 2) ** 1.5 * math.sqrt(code.length))
    limit = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n)) + normal
    assert limit < 0.12
    assert stats.kstest(scores / sigma, "norm").statistic <= limit


def test_all_ones_have_more_ones() -> None:
    code, n = Tardos(6, 5), 40
    book = code.generate(n, rng())
    count = int(AllOnesPirate()(CoalitionView(6, np.arange(1, 6), book.ones(np.arange(1, 6))), rng()).sum())
    assert within(count, n * code.length, ones_of_all_ones(code, 5))
    # The standard deviation of an innocent score: 0.158 of the threshold, and 0.195 where the catalogue has 0.20.
    assert math.sqrt(0.5 * code.length) / code.threshold == pytest.approx(0.158, abs=5e-4)
    assert math.sqrt(ones_of_all_ones(code, 5) * code.length) / code.threshold == pytest.approx(0.195, abs=5e-4)


def rare(code: Tardos, guilty: int) -> float:
    """Chernoff bounds of a false accusation and of a miss, proportional pirates: the larger one."""
    end = math.asin(math.sqrt(code.cutoff))
    x, w = np.polynomial.legendre.leggauss(400)
    r = end + (x + 1) / 2 * (math.pi / 2 - 2 * end)
    p, plus, minus = np.sin(r) ** 2, 1 / np.tan(r), np.tan(r)
    k = np.arange(guilty + 1)[:, None]
    ones = stats.binom.pmf(k, guilty, p)

    def false(s: float) -> float:
        grown = w / 2 @ (p * (p * np.expm1(s * plus) + (1 - p) * np.expm1(-s * minus)))
        return float(code.length * np.log1p(grown) - s * code.threshold)

    def missed(s: float) -> float:
        shrunk = w / 2 @ (ones * k / guilty * np.expm1(-s * (k * plus - (guilty - k) * minus) / guilty)).sum(axis=0)
        return float(code.length * np.log1p(shrunk) + s * code.threshold)

    top = 2 / math.sqrt(300 * code.coalition)
    found = [optimize.minimize_scalar(f, bounds=(1e-9, top), method="bounded").fun for f in (false, missed)]
    return math.exp(max(found))


@pytest.mark.parametrize(("users", "runs"), [(6, 1), (12, 20), (20, 10), (100, 1)])
def test_everybody_is_told_from_the_one_innocent_user(users: int, runs: int) -> None:
    """False alarm: 2 runs times `rare`. A hundred users have 4.9 million columns: a second or two."""
    code, guilty = Tardos(users, users - 1), users - 1
    assert 2 * runs * rare(code, guilty) <= FALSE_ALARM
    scores = PirateScores(code, ProportionalPirate())(np.arange(1, users), runs, rng())
    assert (scores[:, -1] < 1).all()
    assert (scores[:, :-1].max(axis=1) > 1).all()


def test_without_the_cutoff_weights_are_unbounded() -> None:
    code = Tardos(6, 5)
    assert LargestCodeWeight(code)((0,), 50, rng()).max() <= math.sqrt(300 * 5)
    broken: Any = MUTANTS["no_bias_cutoff"].build(PirateScores(code, ProportionalPirate()))
    # A column is beyond the cut-off with probability 0.033: all 12,500 are within it with probability 1e-182.
    assert LargestCodeWeight(broken.code)((0,), 50, rng()).min() > math.sqrt(300 * 5)


def test_mutants_keep_their_parameters() -> None:
    base = PirateScores(Tardos(6, 5, 0.02, 777), CoinPirate())
    for name in ("no_bias_cutoff", "weights_swapped", "biases_published", "zero_columns_scored"):
        built: Any = MUTANTS[name].build(base)
        assert (built.code.users, built.code.coalition, built.code.xi, built.code.columns) == (6, 5, 0.02, 777)
        assert built.pirate == CoinPirate()
        assert isinstance(built.code, Tardos)
        assert isinstance(built.code.generate(1, rng()), BiasCodebook)


# ------------------------------------------------------------------------------------ innocent scores


@pytest.mark.parametrize("pirate", [ProportionalPirate(), AllOnesPirate()], ids=lambda pirate: type(pirate).__name__)
def test_the_law_of_an_innocent_score_does_not_depend_on_the_nodes(pirate: PirateStrategy) -> None:
    score, members = InnocentScore(PirateScores(Tardos(6, 5), pirate)), np.arange(1, 6)
    at = np.array([-0.4, -0.1, 0.0, 0.05, 0.3])
    assert score.below(members, at) == pytest.approx(score.below(members, at, nodes=300), abs=1e-11)
    ones = 0.5 if isinstance(pirate, ProportionalPirate) else ones_of_all_ones(score.scoring.code, 5)
    assert score.deviation(members) == pytest.approx(math.sqrt(12_500 * ones) / 500)


def test_innocent_scores_follow_their_law() -> None:
    """A short code against one pirate, whose scores are far from normal."""
    score = InnocentScore(PirateScores(Tardos(2, 1, columns=400), ProportionalPirate()))
    drawn = score.scoring(np.array([1]), 20_000, rng())[:, -1]
    for at in (-0.2, 0.0, 0.1):
        assert within(int((drawn <= at).sum()), drawn.size, float(score.below(np.array([1]), np.array([at]))[0]), 3)


def test_an_innocent_score_is_the_last_users() -> None:
    score = InnocentScore(PirateScores(Tardos(4, 3), ProportionalPirate()))
    with pytest.raises(ValueError, match="without the last user"):
        score.law(np.arange(1, 5))
    with pytest.raises(ValueError, match="known by the bias"):
        InnocentScore(PirateScores(Tardos(4, 3), MajorityPirate())).law(np.arange(1, 4))


def test_mean_scores_of_pirates_are_told_from_other_weights() -> None:
    """The closed form is the quadrature's for the code's cut-off, and not for another."""
    assert all(left == pytest.approx(right, rel=1e-9) for _, left, right in _guilty_means())
    other = replace(Tardos(6, 5), coalition=6, columns=12_500)
    assert guilty_mean(PirateScores(other, ProportionalPirate())) != pytest.approx(_guilty_means()[0][2], rel=1e-4)
