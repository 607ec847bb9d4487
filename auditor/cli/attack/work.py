"""Attack on one target: pairs, audit, a smaller counterexample, checks of its self-reported parameters."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from importlib import metadata
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from auditor.audits.adversaries.game import Game, run_game
from auditor.audits.adversaries.named import Asked, adversary_named
from auditor.audits.context import Question
from auditor.audits.counterexamples.confirm import EventCounts
from auditor.audits.counterexamples.shrink import Shrunk, shrink_counterexample
from auditor.audits.counterexamples.snippet import write_snippet
from auditor.audits.independence import FEW
from auditor.audits.pair_search import keep_affordable
from auditor.audits.privacy import error_result, run_audit
from auditor.audits.privacy_loop import Settings
from auditor.audits.self_reported.checks import Check, check_statements, states_of
from auditor.audits.size_thresholds import sizes_of_interest
from auditor.cli.attack.options import ADD_REMOVE, Attack
from auditor.cli.check import repeats_after_restart
from auditor.cli.commands import hide_prints
from auditor.cli.one_result import name_result
from auditor.datasets import AddRemoveOne, AnswersWithin, Pair, Relation, ReplaceOne, check_pairs, relation_named
from auditor.datasets.crafted_pairs import hard_pairs
from auditor.datasets.files import parse_domain, read_pair
from auditor.datasets.pandas_types import is_frame
from auditor.datasets.query_answers import read_answers
from auditor.datasets.rows import count_rows, describe_kind, has_rows
from auditor.errors import SpecificationError, TargetError
from auditor.events.event_learner import Chain
from auditor.privacy.guarantees import Guarantee, parse_claim
from auditor.results import AuditResult, Verdict
from auditor.runs.source_locations import find_places
from auditor.targets import Mechanism
from auditor.targets.environments import environment_of, list_installed
from auditor.targets.http import HttpTarget
from auditor.targets.prefetch import POSSIBLE, Ahead
from auditor.targets.prefetch_worker import hire_partner
from auditor.targets.process import ProcessTarget
from auditor.targets.process_settings import keep_apart
from auditor.targets.sampler import Sampler
from auditor.targets.signatures import parse_arguments, takes_randomness
from auditor.targets.target_names import closing_target, is_remote, show_target, source_of, target_named
from auditor.targets.threads import one_thread

if TYPE_CHECKING:
    from auditor.runs.ledger import Ledger

#: Seconds that an audit gets at least, however long the search for sizes took; arbitrary.
LEAST_SECONDS = 5.0
#: Seconds that shrinking may take: what is left of the budget, but so many at least and at most. Arbitrary, as long as
#: one looks at a screen.
SHRINK_LEAST, SHRINK_MOST = 5.0, 15.0
#: Draws that shrinking may take at least: obvious defects need up to 3,000, a quarter above the claim 50,000.
SHRINK_DRAWS = 50_000
#: Draws that the tests of independence take, and the part of the seconds that they may take before fewer comparisons
#: are made.
TESTED, SLOW = 1_000, 0.2
#: Draws that the checks of determinism and of restarts may take; they are left out where no time is left for them.
CHECKED = 1_200
#: Pairs of made-up rows that are tried when the data are private; arbitrary.
MADE_UP = 10


def given_pair(data: Path, neighbor: Path, relation: Relation | None) -> Pair:
    """Read the pair that two files hold.

    Parameters
    ----------
    data, neighbor : Path
        Files of the two datasets, see `auditor.datasets.files.read_pair`.
    relation : Relation or None
        What the datasets have to satisfy, where they have what it is about, see `explain_unchecked`; None checks
        nothing.

    Raises
    ------
    SpecificationError
        If a file cannot be read, or the datasets are not neighbours. Their values are not shown.
    """
    pair = Pair(*read_pair(data, neighbor), f"{data.name} against {neighbor.name}")
    kinds = f"{describe_kind(pair.x)} and {describe_kind(pair.y)}"
    alike = has_rows(pair.x) == has_rows(pair.y) and isinstance(pair.x, dict) == isinstance(pair.y, dict)
    if not alike and (relation is not None or (pair.x is not None and pair.y is not None)):
        raise SpecificationError(f"{pair.name}: the datasets are of different kinds: {kinds}")
    if isinstance(relation, AnswersWithin):
        try:
            read_answers(pair.x), read_answers(pair.y)
        except (TypeError, ValueError, KeyError):
            raise SpecificationError(f"{pair.name}: query answers must be numbers, got {kinds}") from None
    try:
        check_pairs([pair], None if explain_unchecked(pair, relation) else relation)
    except SpecificationError as error:
        raise SpecificationError(str(error) if pair.name in str(error) else f"{pair.name}: {error}") from error
    return pair


def explain_unchecked(pair: Pair, relation: Relation | None) -> str:
    """Explain why a relation cannot be checked on a pair.

    Empty if it can, or there is none.

    Parameters
    ----------
    pair : Pair
        The pair.
    relation : Relation or None
        What it should satisfy.
    """
    if relation is None or isinstance(relation, AnswersWithin) or (has_rows(pair.x) and has_rows(pair.y)):
        return ""
    return f'the relation "{relation.name}" is not checked: {describe_kind(pair.x)} has no rows'


def attack_once(
    attack: Attack, tell: Callable[[str], None] = lambda _: None, jobs: int | None = 1
) -> tuple[dict[str, Any], AuditResult, float]:
    """Audit a named target; return manifest, result and seconds.

    Parameters
    ----------
    attack : Attack
    tell : callable
        Takes lines about what is being done.
    jobs : int or None
        Processes that draw: a second one makes half of the calls, if they take long; results do not depend on it.
        None is as many as there are cores for a Python function, which `dpaudit run` would load in each of them too,
        and one for commands, of which nobody may have meant to start two. A service has one.

    Raises
    ------
    SpecificationError
        If the claim, the datasets or the target cannot be read. What the target does wrong is a verdict, "error".
    """
    guarantee = parse_claim(attack.claim)
    values = parse_domain(attack.domain) if attack.domain is not None else None
    relation = relation_named(attack.relation) if attack.relation is not None else None
    if isinstance(relation, AnswersWithin) and not all(isinstance(v, int | float) for v in values or ()):
        raise SpecificationError(f"domain {attack.domain!r}: query answers must be numbers")
    given = given_pair(attack.data, attack.neighbor, relation) if attack.data and attack.neighbor else None
    if given is not None:
        _check_size(given, attack.least)
        if unchecked := explain_unchecked(given, relation):
            tell(unchecked)
    with (
        hide_prints(tell, attack.private) as tell_as_before,
        closing_target(_target(attack)) as target,
        _partner(target, jobs) as partner,
    ):
        if not takes_randomness(target):
            tell_as_before("the target takes neither a generator nor a seed: results differ from run to run")
        return attack_on(target, attack, guarantee, relation, values, given, tell_as_before, partner)


def _check_size(given: Pair, least: int) -> None:
    """Refuse given datasets of fewer rows than the claim is about."""
    for data in (given.x, given.y):
        if least and has_rows(data) and count_rows(data) < least:
            raise SpecificationError(
                f"--min-rows {least}: the claim is not about {given.name}, as one of these has fewer rows"
            )


def _target(attack: Attack) -> Mechanism:
    given = parse_arguments(attack.arguments)
    return target_named(attack.target, limit=attack.limit, one_draw=attack.one_draw, given=given)


def _partner(target: Mechanism, jobs: int | None) -> AbstractContextManager[Callable[[], Connection | None] | None]:
    if jobs is None:
        jobs = 1 if is_remote(target) else os.cpu_count() or 1
    if jobs == 1 or isinstance(target, HttpTarget) or not POSSIBLE:
        return nullcontext()
    return hire_partner(_target)


def attack_on(
    target: Mechanism,
    attack: Attack,
    guarantee: Guarantee,
    relation: Relation | None,
    values: Sequence[Any] | None,
    given: Pair | None = None,
    tell: Callable[[str], None] = lambda _: None,
    partner: Callable[[], Connection | None] | None = None,
) -> tuple[dict[str, Any], AuditResult, float]:
    """Audit a target with the options of the command line.

    It does what `attack_once` does.

    Parameters
    ----------
    target : Mechanism
    attack : Attack
        The options; its names of target, claim, relation and domain are for the record only.
    guarantee : Guarantee
        The claim.
    relation, values
        What pairs are made of.
    given : Pair, optional
        The pair instead.
    tell : callable
        Takes lines about what is being done.
    partner : callable, optional
        Gives a connection to a process that draws from the same target, see `Ahead`.
    """
    work = _Work(attack, target, guarantee, relation, values, tell, partner)
    question = work.question
    with one_thread(), keep_apart():
        try:
            if attack.adversary is not None:
                result = work.with_adversary(adversary_named(attack.adversary))
            else:
                pairs = [given] if given is not None else work.crafted_pairs()
                work.measure(pairs[0].x)
                result = run_audit(target, guarantee, pairs, work.settings(), question)
                result = work.with_checks(result, pairs)
        except TargetError as error:
            result = error_result(target, guarantee, work.settings(), question, error)
    result = replace(result, places=find_places(target))
    return work.manifest(), result, time.monotonic() - work.begun


@dataclass
class _Work:
    """One attack under way."""

    attack: Attack
    target: Mechanism
    guarantee: Guarantee
    relation: Relation | None
    values: Sequence[Any] | None
    tell: Callable[[str], None]
    partner: Callable[[], Connection | None] | None
    begun: float = field(default_factory=time.monotonic)
    each: float = 0.0  # seconds a draw, once measured

    def settings(self) -> Settings:
        """How the target is audited in the time that is left."""
        settings = replace(self.attack.settings(), even=True)
        if is_remote(self.target):
            settings = replace(settings, limit=None)
        if settings.seconds is None:
            return settings
        slow = self.each * TESTED > SLOW * settings.seconds
        return replace(
            settings,
            seconds=max(settings.seconds - (time.monotonic() - self.begun), LEAST_SECONDS),
            comparisons=FEW if slow else settings.comparisons,
        )

    @cached_property
    def question(self) -> Question:
        """Labels of the result, and what follows a violation."""
        name = show_target(self.attack.target)
        title = " ".join([name, *self.attack.arguments])
        labels = {"entry": "attack", "source": {"document": "command line", "place": name}, "title": title}
        if is_remote(self.target):
            labels |= {"mechanism": name, "source_hash": source_of(self.attack.target, self.attack.arguments)}
        return Question(
            name_result("attack", "L1", self.guarantee, name),
            labels=labels,
            replay=self.attack.replay(),
            private=self.attack.private,
            shrink=self.shrink if self.attack.shrink else None,
            snippet=self.snippet,
            ledger=self.ledger(),
            ahead=None if self.partner is None else partial(Ahead, self.partner, self.attack),
        )

    def ledger(self) -> Ledger | None:
        """Where evidence is carried from run to run, if it is."""
        if self.attack.ledger is None:
            return None
        from auditor.runs.ledger import Ledger

        named = " ".join([self.attack.target, *map(shlex.quote, self.attack.arguments)])
        return Ledger(self.attack.ledger.absolute(), self.attack.ledger_key, named)

    @cached_property
    def sampler(self) -> Sampler:
        """Draws that are no evidence."""
        settings = self.settings()
        return Sampler(self.target, settings.seed, self.question.id, settings.limit, catching=True)

    def crafted_pairs(self) -> list[Pair]:
        """Pairs made of a domain's values, most promising first.

        There are as many as the budget can look at.

        Draws that are made here are no evidence: they are keyed apart from those of the audit.
        """
        attack = self.attack
        assert self.relation is not None  # `Attack` has checked that both are given where there are no files
        assert self.values is not None
        settings = self.settings()
        sizes: tuple[int, ...] = ()
        if isinstance(self.relation, ReplaceOne | AddRemoveOne):
            sizes = sizes_of_interest(self.sampler, self.values, attack.rows, least=attack.least)
        if sizes:
            rows = f"{', '.join(map(str, sizes))} row{'s' * (sizes != (1,))}"
            self.tell(f"the target behaves differently with {rows} than with one row fewer")
        pairs = hard_pairs(
            self.relation,
            self.values,
            attack.rows,
            least=attack.least,
            outside=attack.outside,
            arithmetic=attack.arithmetic,
            sizes=sizes,
        )
        draws = settings.draws
        # With a ledger the pairs are the same every night, whatever the speed: later nights come to those left.
        if settings.seconds is not None and attack.ledger is None:
            self.measure(pairs[0].x)
            draws = max(1, min(draws, int(settings.seconds / self.each)))
        kept = keep_affordable(pairs, draws)
        more = f" of {len(pairs)}, which is what the budget allows" if len(kept) < len(pairs) else ""
        self.tell(f"trying {len(kept)} pair{'s' * (len(kept) != 1)} of neighbouring datasets{more}")
        return kept

    def measure(self, data: Any) -> None:
        """Measure the time of a draw.

        A call of 16 is timed after a first one that may have had to start something.

        Once, and only if there is a budget in seconds, which is all that it bears on.
        """
        if self.each or self.attack.settings().seconds is None:
            return
        data = deepcopy(data)  # a target may change it, which the audit has to see
        self.sampler.draw_either_way(data, 16, "search", "speed", 0)
        begun = time.perf_counter()
        self.sampler.draw_either_way(data, 16, "search", "speed", 1)
        self.each = max((time.perf_counter() - begun) / 16, 1e-7)

    def shrink(self, sampler: Sampler, found: Sequence[tuple[Pair, Sequence[Chain]]]) -> Shrunk | None:
        """A smaller counterexample, in a part of what the attack may take."""
        attack, settings = self.attack, self.settings()
        self.tell("violated; looking for a smaller counterexample")
        seconds = None if settings.seconds is None else min(max(settings.seconds, SHRINK_LEAST), SHRINK_MOST)
        made_up: list[Pair] = []
        pair = found[0][0]
        relation = self.relation
        if explain_unchecked(pair, relation) or (attack.private and not has_rows(pair.x)):
            relation = None  # what has no rows could not be drawn again from the files if it were another one
        rows = isinstance(pair.x, np.ndarray | list | tuple) or is_frame(pair.x)  # what a domain's values are rows of
        if attack.data is not None and rows and relation is not None and self.values is not None:
            made_up = hard_pairs(relation, self.values, attack.rows, least=attack.least)[:MADE_UP]
        return shrink_counterexample(
            sampler,
            self.guarantee,
            relation,
            *found[0],
            alpha=settings.alpha,
            draws=max(settings.draws, SHRINK_DRAWS),
            seconds=seconds,
            others=found[1:],
            synthetic=made_up,
            values=self.values,
            least=attack.least,
            ignore=settings.ignore,
        )

    def snippet(self, pair: Pair, event: str, counts: EventCounts) -> str:
        """Lines of Python that show a counterexample."""
        attack = self.attack
        name = show_target(attack.target)
        return write_snippet(
            name,
            attack.claim,
            pair,
            event,
            counts,
            alpha=attack.alpha,
            one_draw=attack.one_draw,
            ignore=self.settings().ignore,
            given=parse_arguments(attack.arguments),
        )

    def with_adversary(self, asked: Asked) -> AuditResult:
        """What an adversary finds that makes up the data."""
        steps = 2 if self.attack.relation == ADD_REMOVE else 1
        if asked.adversary is not None:
            game = Game(self.target, asked.adversary, asked.unit, self.settings().limit, steps=steps)
            self.tell(f"{asked.adversary}; the target releases {asked.unit} of columns")
            return run_game(game, self.guarantee, self.settings(), self.question)
        assert asked.tracing is not None  # it is the one or the other
        if steps != 1:
            raise SpecificationError(f"tracing replaces a row: --relation {ADD_REMOVE} is for other adversaries")
        tracing = asked.tracing(self.target, asked.unit)
        self.tell(f"{tracing}; the target releases {asked.unit} of columns")
        question = replace(self.question, shrink=None, snippet=None)
        return run_audit(tracing, self.guarantee, [tracing.pair()], self.settings(), question)

    def with_checks(self, result: AuditResult, pairs: Sequence[Pair]) -> AuditResult:
        """Add checks of the target's own statements to a result.

        A failed one is a deviation.
        """
        if result.verdict == Verdict.ERROR:
            return result
        settings = self.settings()
        late = (
            settings.seconds is not None and settings.seconds <= LEAST_SECONDS and self.each * CHECKED > LEAST_SECONDS
        )
        hello = getattr(self.target, "hello", None)
        states = states_of(self.target) if hello is None else hello.states
        sampler = None if late else self.sampler
        checks = check_statements(states, self.guarantee, pairs, sampler, private=self.attack.private)
        if late:
            checks.append(Check("determinism", None, "not checked: no time was left"))
        elif isinstance(self.target, ProcessTarget) and result.verdict != Verdict.VIOLATION:
            checks.append(check_restart(self.target, pairs[0].x))
        failed = [f"{check.name}: {check.finding}" for check in checks if check.passed is False]
        if unchecked := explain_unchecked(pairs[0], self.relation):
            checks.append(Check("relation", None, unchecked))
        result = replace(result, checks=tuple(asdict(check) for check in checks))
        if not failed or result.verdict not in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE):
            return result
        message = "; ".join([*failed, *([result.message] if result.message else [])])
        return replace(result, verdict=Verdict.DEVIATION, message=message)

    def manifest(self) -> dict[str, Any]:
        """Record how the attack was made."""
        attack, settings = self.attack, self.attack.settings()
        folder = environment_of(self.target)
        return {
            "dpaudit": metadata.version("dpaudit"),
            "libraries": {"numpy": np.__version__},
            "target": show_target(attack.target),
            "one_draw": attack.one_draw,
            **({"relation": attack.relation} if attack.relation is not None else {}),
            **({"outside": True} if attack.outside else {}),
            **({"arithmetic": True} if attack.arithmetic else {}),
            **({"arguments": list(attack.arguments)} if attack.arguments else {}),
            **({"environment": list_installed(folder)} if folder is not None else {}),
            "seed": attack.seed,
            "alpha": attack.alpha,
            "draws": settings.draws,
            "seconds": settings.seconds,
            "detect": attack.detect,
            "method": attack.method,
            **({"ignore": list(settings.ignore)} if settings.ignore else {}),
            **({"ledger": str(attack.ledger)} if attack.ledger is not None else {}),
            **({"ledger_key": attack.ledger_key} if attack.ledger_key else {}),
        }


def check_restart(target: ProcessTarget, data: Any) -> Check:
    """Check that two fresh starts draw differently, see `repeats_after_restart`.

    Parameters
    ----------
    target : ProcessTarget
        The target, of which further processes are started.
    data : dataset
        What is drawn on.
    """
    try:
        repeats = repeats_after_restart(target, data)
    except TargetError as error:
        return Check("restart", None, f"not checked: {error.public}")
    if repeats is None:
        return Check("restart", None, "not checked: its outputs vary too little to tell a constant seed from luck")
    return Check("restart", not repeats, "restarted, it repeats its outputs: its seed is constant" if repeats else "")
