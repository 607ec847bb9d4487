"""An adversary against a target: games, evidence, and a certified lower bound on the level."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from auditor.audits.adversaries.base import Adversary, Ask, FloatArray, Stack
from auditor.audits.adversaries.releases import Unit, check_unit, release_tables
from auditor.audits.context import Question
from auditor.audits.dependence import Trace, confirm_refutation, look_again, looked_at
from auditor.audits.finish import Conclusion, finish_audit, labels_of
from auditor.audits.given_numbers import read_numbers
from auditor.audits.independence import UNTESTED, Independence, check_independence
from auditor.audits.loop import ChunkLoop, ChunkRule
from auditor.audits.privacy_loop import Settings
from auditor.audits.verdict import decide_verdict, describe_missed
from auditor.errors import SpecificationError, StrategyError
from auditor.evidence.lower_bound import level_grid
from auditor.evidence.mean import MeanWealth, detectable_mean
from auditor.privacy.guarantees import ApproxDP, Guarantee
from auditor.results import ALLOWED, AuditResult, Counterexample, Verdict, wealth_fields
from auditor.targets import Mechanism
from auditor.targets.process_settings import call_target, keep_apart
from auditor.targets.raises import ask_strategy, catch_exits
from auditor.targets.sampler import GuardedCall, Place, Sampler

#: Chunks of games, of which one may take seconds. Evidence does not depend on chunks, so they only bound how late a
#: verdict is.
CHUNKS = ChunkRule(4, growth=0.25)
#: Parts of the wealth that are bet. Scores are at most 1, so a bound near 1 is beaten slowly, and best by those who bet
#: nearly all. Equal masses; arbitrary, any are valid.
STAKES: FloatArray = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 0.99, 0.999])
#: Levels between those of the engine's grid that are left out: 1 % near the claim is finer than games can tell.
COARSER = 4
#: Halvings of the interval in which a level is sought: 50 leave nothing that a reader could see.
_HALVINGS = 50
#: By how much a score may miss a part of the bits, or the bound of a larger level be smaller, by rounding.
_WHOLE = 1e-6
#: Levels beyond this are reported as infinite.
_HIGHEST = 40.0


@dataclass(frozen=True)
class Game:
    """A target and an adversary, as one mechanism.

    It has no data, and its outputs are scores.

    Parameters
    ----------
    target : Mechanism
        Releases the column counts, or means, of a table of zeros and ones, shape (rows, columns), int64. If it has a
        method ``each(stack, rng)``, that is asked for one release for each of several tables.
    adversary : Adversary
        Makes up the tables.
    unit : {"counts", "means"}
        What is released: sums of columns, or sums over the number of rows.
    limit : float or None
        Seconds that one call of the target may take.
    steps : int
        Neighbouring steps that replacing a row takes: 1, or 2 where the claim is about rows that are added or removed.
    """

    target: Mechanism
    adversary: Adversary
    unit: Unit = "counts"
    limit: float | None = None
    steps: int = 1

    def __post_init__(self) -> None:
        check_unit(self.unit)

    @keep_apart()
    def __call__(self, data: object, n: int, rng: np.random.Generator) -> FloatArray:  # noqa: ARG002 - it makes up data
        """Scores of n games, shape (n,).

        Raises
        ------
        StrategyError
            If the adversary raises, asks about more than n tables, or about others than of zeros and ones, or if its
            scores are not n numbers in [0, 1], which are parts of its bits where it names some.

        Notes
        -----
        Valid because: a guarantee bounds what one release of a table of zeros and ones tells. Two releases of a secret,
        or an entry of 5, tell more than it speaks of, and a score that is no part of the bits has no number of right
        ones; each would refute what holds.
        """
        played = self._play(self.asking(rng, n), n, rng)
        try:
            scores = read_numbers(f"{self.adversary}: scores must be numbers", played)
        except SpecificationError as error:
            raise StrategyError(str(error)) from error
        if scores.shape != (n,) or not ((scores >= 0) & (scores <= 1)).all():
            raise StrategyError(f"{self.adversary}: expected {n} scores in [0, 1], got {scores!r}")
        bits = self.adversary.bits
        if bits:
            wrong = np.flatnonzero(np.abs(scores * bits - np.rint(scores * bits)) > _WHOLE)
            if len(wrong):
                raise StrategyError(
                    f"{self.adversary}: expected parts of {bits} bits as scores, got {scores[wrong[0]]:.6g}; a score "
                    "of another kind has bits = 0"
                )
        return scores

    def _play(self, ask: Ask, n: int, rng: np.random.Generator) -> Any:
        """What the adversary says its scores are."""
        return ask_strategy(f"the adversary ({self.adversary})", lambda: self.adversary.play(ask, n, rng))

    def asking(self, rng: np.random.Generator, games: int) -> Ask:
        """Function that the adversary asks with, once a game."""
        asked = 0

        def ask(stack: Stack) -> FloatArray:
            nonlocal asked
            asked += self._check_tables(stack)
            if asked > games:
                raise StrategyError(
                    f"{self.adversary}: expected one question a game, got {asked} tables in {games} games"
                )
            with GuardedCall("the target", f"releases of {len(stack)} tables", self.limit):
                found: FloatArray = call_target(release_tables, self.target, stack, rng)
            rows = stack.shape[1]
            counts = found * rows if self.unit == "means" else found
            # A function of the output, so that it changes nothing of what a guarantee allows: what is outside of
            # [0, rows], or no number, is put inside.
            return np.clip(np.nan_to_num(counts, nan=rows / 2, posinf=rows, neginf=0.0), 0.0, rows)

        return ask

    def _check_tables(self, stack: Stack) -> int:
        """Number of tables, which are of zeros and ones."""
        if not isinstance(stack, np.ndarray) or stack.ndim != 3 or stack.dtype.kind not in "biu":
            raise StrategyError(
                f"{self.adversary}: expected tables as integers of shape (trials, rows, columns), got {stack!r:.200}"
            )
        if stack.size and not (stack.min() >= 0 and stack.max() <= 1):
            raise StrategyError(
                f"{self.adversary}: expected tables of zeros and ones, got entries from {stack.min()} to {stack.max()}"
            )
        return len(stack)

    def most(self, guarantee: Guarantee, level: float) -> float:
        """Largest expected score that a level of the guarantee allows.

        Parameters
        ----------
        guarantee : Guarantee
            The notion of privacy, for one neighbouring step.
        level : float
            Its level, at least 0.

        Returns
        -------
        float
            In [0, 1].
        """
        if self.steps == 1:
            return self.adversary.most(guarantee, level)
        if _is_pure(guarantee):
            return self.adversary.most(guarantee, self.steps * level)
        return self.adversary.most(Repeated(guarantee, self.steps), level)

    def table(self, rng: np.random.Generator) -> Stack:
        """One of the tables that the adversary makes up, shape (rows, columns)."""
        seen: list[Stack] = []

        def ask(stack: Stack) -> FloatArray:
            self._check_tables(stack)
            seen.append(stack)
            return np.zeros((stack.shape[0], stack.shape[2]))

        with catch_exits():
            self._play(ask, 1, rng)
        if not seen or not len(seen[0]):
            raise StrategyError(f"{self.adversary}: expected one question a game, got none")
        table: Stack = seen[0][0]
        return table


@dataclass(frozen=True)
class Repeated(Guarantee):
    """A guarantee over several neighbouring steps.

    Valid because: along the steps an event's probability grows to at most the cap, applied once a step; a cap of a cap
    is concave and increasing as they are.
    """

    one: Guarantee
    steps: int

    notion: ClassVar[str] = "repeated"
    symbol: ClassVar[str] = "level"

    @property
    def level(self) -> float:
        """That of a step."""
        return self.one.level

    def cap(self, q: FloatArray, level: FloatArray | float) -> FloatArray:
        """The cap, applied once for each step.

        See `Guarantee.cap`.
        """
        for _ in range(self.steps):
            q = self.one.cap(q, level)
        return q


def _is_pure(guarantee: Guarantee) -> bool:
    return isinstance(guarantee, ApproxDP) and guarantee.delta == 0


def bits_of(adversary: Adversary, guarantee: Guarantee) -> int:
    """Number of bets of a game.

    One for each bit that is guessed if the claim is pure, see `run_game`; 0 for one.

    Parameters
    ----------
    adversary : Adversary
        Plays the games.
    guarantee : Guarantee
        The claim.
    """
    return adversary.bits if _is_pure(guarantee) else 0


def run_game(game: Game, guarantee: Guarantee, settings: Settings, question: Question) -> AuditResult:
    """Audit a claim by the games of an adversary.

    It never raises for what the target does.

    Parameters
    ----------
    game : Game
        The target and its adversary.
    guarantee : Guarantee
        The claim.
    settings : Settings
        Budget, level and seed.
    question : Question
        Labels of the result.

    Notes
    -----
    Valid because: under the claim a game's score has an expectation of at most m = `Adversary.most`, whatever the games
    before it were, so the wealth of `MeanWealth` reaches 1/alpha with probability at most alpha. Where a score is the
    part of n secret uniform bits that is right, and the claim is pure, each bit is a bet: given the output and the
    other bits, the odds of a bit are within e^epsilon of even ones, by Bayes, so whatever is guessed from the output is
    right with probability at most m, given whether those before it were (Steinke, Nasr and Jagielski 2023, for
    delta = 0). The number that is right says how often the factor for a right and for a wrong bit is played. Levels
    are rejected from below: `most` increases with the level, so the largest one that is rejected with all smaller ones
    exceeds the truth with probability at most alpha.
    """
    labels = labels_of(
        game.target, guarantee, "L1", settings, question, exact=question.exact, detect=settings.wanted(guarantee.level)
    )
    sampler = Sampler(game, settings.seed, question.id)

    def play(sampler: Sampler, settings: Settings = settings) -> tuple[_PlayedGames, Sampler]:
        return _play(game, sampler, guarantee, settings), sampler

    def refuted(made: tuple[_PlayedGames, Sampler]) -> bool:
        return made[0].refuted(settings.alpha)

    def traces(made: tuple[_PlayedGames, Sampler]) -> list[Trace]:
        played, sampler = made
        for i, n in enumerate(played.trace.missing(looked_at(settings.comparisons))):
            played.trace.add("score", 0, *_scores(sampler, n, f"look {i}"))
        return [played.trace]

    def afresh() -> tuple[tuple[_PlayedGames, Sampler], list[Independence]]:
        other = sampler.afresh()
        return play(other, settings.of_second_opinion), [_test_independence(game, settings, other.key)]

    def collect() -> tuple[_PlayedGames, Independence | None]:
        if not settings.independence:
            return play(sampler)[0], None
        tested = _test_independence(game, settings, sampler.key)
        if not tested.passed:
            second = play(sampler.alone())
            return second[0], look_again(second, tested, refuted, traces)
        (played, _), tested = confirm_refutation(
            play(sampler),
            [tested],
            refuted,
            traces,
            lambda: play(sampler.alone(), settings.of_second_opinion),
            afresh,
        )
        return played, tested

    return finish_audit(
        labels,
        question.private,
        collect,
        lambda made: _conclude(game, guarantee, settings, labels["exact"], question.replay, *made),
    )


def _test_independence(game: Game, settings: Settings, key: str) -> Independence:
    """Tests on one table that the adversary makes up: of ``each``, where that is played, else of draws of one call."""
    table = game.table(np.random.default_rng(settings.seed))

    def repeated(data: Stack, n: int, rng: np.random.Generator) -> FloatArray:
        return release_tables(game.target, np.repeat(data[None], n, axis=0), rng)

    played = hasattr(game.target, "each")
    sampler = Sampler(repeated if played else game.target, settings.seed, key, game.limit)
    data = table if played else table.astype(np.int64)
    return check_independence(sampler, data, "game", comparisons=settings.comparisons)


@dataclass
class _PlayedGames:
    """The games of one audit, and what they are worth against each level.

    Attributes
    ----------
    levels : ndarray of shape (n_levels,)
        Claimed level first, then the grid.
    means : ndarray of shape (n_levels,)
        Largest expected score at each.
    path : list of (int, float)
        Games and natural logarithm of the wealth, after each chunk.
    trace : Trace
        Scores in the order of the games.
    """

    levels: FloatArray
    means: FloatArray
    wealth: MeanWealth
    bits: int
    scores: FloatArray = field(default_factory=lambda: np.zeros(0))
    path: list[tuple[int, float]] = field(default_factory=list)
    truncated_by: str | None = None
    trace: Trace = field(default_factory=Trace)

    def refuted(self, alpha: float) -> bool:
        """Whether the claim is, with all smaller levels, see `auditor.evidence.lower_bound.rejects_below`."""
        return bool(self.wealth.best[0] >= -math.log(alpha)) and self.bound(self.wealth, alpha) >= self.levels[0]

    def add(self, scores: FloatArray) -> None:
        """Bet on a chunk of games."""
        self.scores = np.concatenate([self.scores, scores])
        self.wealth.bet(*_bets(scores, self.bits))
        self.path.append((len(self.scores), float(self.wealth.current[0])))

    def bound(self, wealth: MeanWealth, alpha: float) -> float:
        """Largest level that is rejected with all smaller ones."""
        count = wealth.rejected(alpha)
        return float(self.levels[count]) if count else 0.0


def _play(game: Game, sampler: Sampler, guarantee: Guarantee, settings: Settings) -> _PlayedGames:
    grid = level_grid(guarantee.level, guarantee.highest, guarantee.unit)[::COARSER]
    if guarantee.level > 0:
        grid = np.union1d(grid, guarantee.level)
    levels = np.concatenate([[guarantee.level], grid])
    means = _find_allowed(game, guarantee, levels)
    played = _PlayedGames(levels, means, MeanWealth(means, STAKES), bits_of(game.adversary, guarantee))
    loop = ChunkLoop(CHUNKS, settings.draws, settings.seconds, settings.chunks)
    for chunk in loop:
        place, scores = _scores(sampler, loop.take(), chunk)
        played.trace.add("score", 0, place, scores)
        played.add(scores)
        if settings.stop == "verdict" and played.refuted(settings.alpha):
            break
    played.truncated_by = loop.truncated_by
    return played


def _find_allowed(game: Game, guarantee: Guarantee, levels: FloatArray) -> FloatArray:
    """Largest expected score at the claimed level and then at others, which increase."""
    who = f"the bound of the adversary ({game.adversary})"
    found = ask_strategy(who, lambda: [game.most(guarantee, float(level)) for level in levels])
    means = read_numbers(f"{game.adversary}: its largest expected score must be a number", found)
    wrong = np.flatnonzero(~((means > 0) & (means <= 1)))
    if len(wrong):
        i = int(wrong[0])
        raise SpecificationError(
            f"{game.adversary}: its largest expected score must be in (0, 1], got {means[i]:.6g} at {levels[i]:.6g}"
        )
    less = np.flatnonzero(np.diff(means[1:]) < -_WHOLE)
    if len(less):
        i = int(less[0]) + 1
        raise SpecificationError(
            f"{game.adversary}: its largest expected score must grow with the level, got {means[i]:.6g} at "
            f"{levels[i]:.6g} and {means[i + 1]:.6g} at {levels[i + 1]:.6g}"
        )
    return means


def _scores(sampler: Sampler, n: int, chunk: str | int) -> tuple[Place, FloatArray]:
    scores = np.asarray(sampler.draw(None, n, "game", chunk), dtype=np.float64)
    return sampler.place, scores


def _bets(scores: FloatArray, bits: int) -> tuple[FloatArray, FloatArray]:
    """What is bet on, and how often: bits that are right and wrong, or scores, of which many are the same."""
    if bits:
        right = float(np.rint(scores * bits).sum())
        return np.array([1.0, 0.0]), np.array([right, bits * len(scores) - right])
    values, times = np.unique(scores, return_counts=True)
    return values, times.astype(np.float64)


def _conclude(
    game: Game,
    guarantee: Guarantee,
    settings: Settings,
    exact: float | None,
    replay: str,
    played: _PlayedGames,
    tested: Independence | None,
) -> Conclusion:
    adversary, alpha = game.adversary, settings.alpha
    n, mean, allowed = len(played.scores), float(played.scores.mean()), float(played.means[0])
    bound, bets = played.bound(played.wealth, alpha), n * (played.bits or 1)
    perfect = MeanWealth(played.means, STAKES)
    perfect.bet(*_bets(np.ones(n), played.bits))
    # Bits that are right with the probability that is allowed; how far scores spread is known from the games alone.
    deviation = math.sqrt(allowed * (1 - allowed)) if played.bits else float(played.scores.std())
    resolves = _level_at(game, guarantee, detectable_mean(allowed, bets, deviation, alpha, STAKES))
    missed = describe_missed("a level below {}", resolves, settings.wanted(guarantee.level))
    if math.isinf(resolves):
        missed = "this adversary could not have refuted any level with so many games"
    decided = decide_verdict(
        Verdict.VIOLATION, played.refuted(alpha), missed=lambda: missed, independence=tested or UNTESTED
    )
    found = wealth_fields(played.path, max(0.0, max(log for _, log in played.path)))
    seen = None
    if decided[0] == Verdict.VIOLATION:
        seen = Counterexample(
            pair=str(adversary),
            x=f"tables that the adversary makes up, {game.unit} of their columns",
            y=ALLOWED,
            event="right guesses of secret bits" if adversary.bits else "games won",
            x_count=round(mean * n * (adversary.bits or 1)),
            y_count=math.ceil(allowed * n * (adversary.bits or 1)),
            n=n * (adversary.bits or 1),
            e_value_log10=found["log10_max_e_value"],
            lower_bound=bound,
            replay=replay,
            cause=f"an adversary: {adversary.name}",
        )
    sandwich = ""
    if exact is not None:
        sandwich = (
            "holds" if bound <= exact * (1 + 1e-8) + 1e-9 else f"failed: lower bound {bound:.6g} is above {exact:.6g}"
        )
    fields = {
        "draws": n,
        "lower_bound": bound,
        "ceiling": played.bound(perfect, alpha),
        "resolves": None if decided[0] == Verdict.VIOLATION else resolves,
        **found,
        "pair": str(adversary),
        "event": f"mean score {mean:.4g} in {n:,} games, {allowed:.4g} is allowed",
        "counterexample": seen,
        "truncated_by": played.truncated_by,
        "sandwich": sandwich,
        "record": {
            "adversary": {"name": adversary.name, **adversary.parameters()},
            "scores": [[float(value), int(times)] for value, times in zip(*_bets(played.scores, 0), strict=True)],
            "chunks": [[k, log] for k, log in played.path],
        },
    }
    return Conclusion(decided, fields, tested)


def _level_at(game: Game, guarantee: Guarantee, score: float) -> float:
    """Smallest level that allows an expected score, infinite if none does."""
    low, high = 0.0, min(_HIGHEST, guarantee.highest)
    if score > game.most(guarantee, high):
        return math.inf
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if game.most(guarantee, middle) < score else (low, middle)
    return high
