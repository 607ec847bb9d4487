"""Options of the commands that take one target."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from auditor.audits.defaults import DRAWS, METHODS
from auditor.audits.privacy_loop import Settings
from auditor.datasets import relation_named
from auditor.datasets.files import MOST
from auditor.errors import SpecificationError
from auditor.targets.sampler import check_seed
from auditor.targets.signatures import parse_arguments
from auditor.targets.target_names import show_target

#: Budget in seconds where none is given: a person waits that long. Targets of 3 microseconds a draw spend their draws
#: first, those of 20 milliseconds have 3,000.
SECONDS = 60.0
#: Relation under which replacing a row is two steps.
ADD_REMOVE = "add-remove-one"
#: Seconds that one call may take, unless told otherwise.
LIMIT = 60.0


@dataclass(frozen=True)
class Attack:
    """What the command line asks of one target.

    Parameters
    ----------
    target : str
        What `auditor.targets.target_names.target_named` takes.
    claim : str
        What is claimed, as `parse_claim` reads it.
    data, neighbor : Path or None
        Files with the two datasets; their values are private and not shown.
    relation, domain : str or None
        Instead of files: the name of a relation and the values of a row, see `parse_domain`. With files the domain
        is what the rows of a shrunk example are made of.
    adversary : str or None
        Instead of both: an adversary that makes up the data, see `auditor.audits.adversaries.named.adversary_named`.
    rows : int
        Most rows of the datasets made from the domain, at least 1.
    least : int
        Fewest rows of a dataset that the claim is about.
    outside : bool
        Try values outside the domain as well: for claims that do not assume it.
    arithmetic : bool
        Try numbers between the domain's ends as well, and many rows, at which sums overflow or round.
    show_data : bool
        Datasets from files are shown.
    one_draw : bool
        The target draws once, see `auditor.targets.signatures`.
    arguments : tuple of str
        Values of its further parameters, each NAME=JSON.
    shrink : bool
        Look for a smaller counterexample after a violation.
    stop : str
        "verdict" or "budget", see `Settings`.
    alpha : float
        Probability of a false alarm, in (0, 1).
    seed : int
        At least 0.
    draws : int or None
        Budget in outputs, both sides together; by default `DRAWS`, or what `SECONDS` allow if that is less.
    seconds : float or None
        Budget in seconds.
    limit : float
        Seconds that one call of the target may take.
    detect : float or None
        Level that an event of probability 0.01 is to be found at; default twice the claimed one.
    method : str
        How the claim is judged, see `Settings`.
    ledger, ledger_key : Path or None, str
        File in which evidence is carried from run to run, see `auditor.runs.ledger`, and what else has to stay the same
        for it to add up.
    ignore : str or sequence of str
        Kinds of causes that nothing is bet on, see `Settings`.
    also : bool
        After a violation of such a kind, search on without it, see `Settings`. Not with a ledger, which carries
        evidence of one search.

    Raises
    ------
    SpecificationError
        If an option is out of its range.
    """

    target: str
    claim: str
    data: Path | None = None
    neighbor: Path | None = None
    relation: str | None = None
    domain: str | None = None
    adversary: str | None = None
    rows: int = 10
    least: int = 0
    outside: bool = False
    arithmetic: bool = False
    show_data: bool = False
    one_draw: bool = False
    shrink: bool = True
    stop: str = "verdict"
    alpha: float = 0.01
    seed: int = 0
    draws: int | None = None
    seconds: float | None = None
    limit: float = LIMIT
    detect: float | None = None
    method: str = METHODS[0]
    ledger: Path | None = None
    ledger_key: str = ""
    ignore: str | Sequence[str] = ()
    also: bool = True
    arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_seed(self.seed)
        parse_arguments(self.arguments)
        object.__setattr__(self, "ignore", self.settings().ignore)  # the settings check the others too
        if self.relation is not None:
            relation_named(self.relation)
        if (self.data is None) != (self.neighbor is None):
            raise SpecificationError("--data and --neighbor need each other: give both or none")
        if self.adversary is not None:
            self._check_adversary()
        elif self.data is None and (self.relation is None or self.domain is None):
            raise SpecificationError("give --data and --neighbor, or --relation and --domain, or --adversary")
        if not 1 <= self.rows <= MOST:
            raise SpecificationError(f"rows must be at least 1 and at most {MOST:,}, got {self.rows}")
        if self.least < 0 or (self.data is None and self.least > self.rows):
            raise SpecificationError(f"min-rows must be from 0 to rows={self.rows}, got {self.least}")
        self._check_made_up()

        if self.ledger_key and self.ledger is None:
            raise SpecificationError(f"--ledger-key needs --ledger, got {self.ledger_key!r} without it")

    def _check_made_up(self) -> None:
        """Refuse what says how datasets are made where none are: a pass would seem to have tried it."""
        if self.adversary is None and self.data is None:
            return
        other = "--data" if self.adversary is None else "--adversary"
        asked = {"--outside": self.outside, "--arithmetic": self.arithmetic}
        if self.adversary is not None:
            asked["--min-rows"] = self.least > 0
        for name in (name for name, given in asked.items() if given):
            raise SpecificationError(
                f"{name} is about datasets that the attack makes from --domain: it has no effect with {other}"
            )

    def _check_adversary(self) -> None:
        if self.ignore:
            raise SpecificationError(
                f"an adversary bets on a score of its own: --adversary cannot be used with --ignore {self.ignored}"
            )
        if self.ledger is not None:
            raise SpecificationError(
                f"a ledger does not carry evidence of games: --adversary cannot be used with --ledger {self.ledger}"
            )
        if self.data is not None or self.domain is not None:
            raise SpecificationError("--adversary makes up its data: it cannot be used with --data or --domain")
        if self.relation not in (None, "replace-one", ADD_REMOVE):
            raise SpecificationError(
                f"an adversary needs --relation replace-one or {ADD_REMOVE}, got --relation {self.relation}"
            )

    def settings(self) -> Settings:
        """How the target is audited."""
        return Settings(
            alpha=self.alpha,
            draws=DRAWS if self.draws is None else self.draws,
            seconds=SECONDS if self.draws is None and self.seconds is None else self.seconds,
            stop=self.stop,
            seed=self.seed,
            detect=self.detect,
            limit=self.limit,
            method=self.method,
            ignore=self.ignore,
            also=self.also and self.adversary is None and self.ledger is None,
        )

    @property
    def ignored(self) -> str:
        """Kinds of causes that are ignored, as one text."""
        return ",".join(self.ignore)

    @property
    def private(self) -> bool:
        """The datasets come from files, and are not to be shown."""
        return self.data is not None and not self.show_data

    def replay(self) -> str:
        """The command that makes the same attack again."""
        words = ["dpaudit", "attack", show_target(self.target), "--claim", self.claim]
        for name, value in (
            ("--data", self.data),
            ("--neighbor", self.neighbor),
            ("--relation", self.relation),
            ("--domain", self.domain),
            ("--adversary", self.adversary),
            ("--rows", self.rows if self.domain is not None else None),
            ("--min-rows", self.least or None),
            ("--alpha", repr(self.alpha)),
            ("--draws", self.draws),
            ("--max-seconds", self.seconds),
            ("--seed", self.seed),
            ("--stop", self.stop),
            ("--limit", self.limit if self.limit != LIMIT else None),
            ("--detect", self.detect),
            ("--method", self.method if self.method != METHODS[0] else None),
            ("--ignore", self.ignored or None),
            ("--ledger", self.ledger),
            ("--ledger-key", self.ledger_key or None),
        ):
            words += [] if value is None else [name, str(value)]
        for text in self.arguments:
            words += ["--arg", text]
        flags = {
            "--outside": self.outside,
            "--arithmetic": self.arithmetic,
            "--show-data": self.show_data,
            "--one-draw": self.one_draw,
            "--no-shrink": not self.shrink,
            "--no-also": not self.also,
        }
        return shlex.join([*words, *(flag for flag, given in flags.items() if given)])
