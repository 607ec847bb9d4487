"""Frozen records of what was audited and found, and how they become JSON."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from auditor.errors import SpecificationError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMA = "dpaudit-results/2"
#: Properties of a result that its record has besides the fields.
DERIVED = ("ok", "reached")
#: Fields that a record leaves out where they are empty.
ABSENT = ("ledger", "places", "new", "ignore", "also")
#: The control of a theorem that every mechanism has, in words: see `auditor.audits.accuracy.controls`.
ANSWER_ZERO = "the answer 0, whatever the data"


#: Methods of a certificate, of a trace that rests on no draws, and of an audit that judges half of its draws once.
ENUMERATION = "enumeration"
REPLAY = "replay"
FIXED_SIZE = "clopper-pearson"
#: Stands for the other dataset in an adversary's game. The count there is the mean that the claim allows, rounded up.
ALLOWED = "what the claim allows"
#: Beginning of what a pass says of outputs that could not be read.
ONLY_TEXTS = "only the texts of"


class Verdict(StrEnum):
    """Outcome of one claim."""

    VIOLATION = "violation"
    DEVIATION = "deviation"
    CONSISTENT = "consistent"
    HOLDS = "holds"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"


#: Verdicts that flag a claim.
FLAGGED = (Verdict.VIOLATION, Verdict.DEVIATION)
#: Digits that a certainty may have: the smallest alpha is 5e-324.
_DIGITS = 400
#: Text shown for a private dataset.
NOT_SHOWN = "(not shown)"


@dataclass(frozen=True)
class Counterexample:
    """Evidence against a claim, as a maintainer gets to see it.

    Parameters
    ----------
    pair : str
        The pair, in words.
    x : str
        The dataset on which the event is more probable than the claim allows, shortened; redacted where it is private.
    y : str
        The other dataset, likewise; "what the claim allows" in an adversary's game.
    event : str
        The event, in words.
    x_count : int
        Draws in the event on ``x``.
    y_count : int
        Draws in the event on ``y``; in an adversary's game the mean that is allowed, rounded up.
    n : int
        Draws on each dataset.
    e_value_log10 : float or None
        Decimal logarithm of the evidence against the claim; None for a method without e-values.
    lower_bound : float
        Certified level.
    replay : str
        A line that finds it again.
    cause : str
        What tells the datasets apart, in a standard phrase; holds no values of data or outputs.
    shrunk : str
        What was made smaller, and on how many fresh draws it was confirmed; empty if this is what was found first.
    code : str
        Lines of Python that show it; empty where the datasets are not shown or are too large.
    again : mapping or None
        What `dpaudit replay` needs to draw it again, see `auditor.audits.counterexamples.replay`.
    """

    pair: str
    x: str
    y: str
    event: str
    x_count: int
    y_count: int
    n: int
    e_value_log10: float | None
    lower_bound: float
    replay: str
    cause: str = ""
    shrunk: str = ""
    code: str = ""
    again: Mapping[str, Any] | None = None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _are_equal(vars(self), vars(other))


def say_counts(found: Mapping[str, Any]) -> tuple[str, str]:
    """Say how often a counterexample's event occurred.

    On x, and on x', or what is allowed there.

    Parameters
    ----------
    found : mapping
        A `Counterexample`, as its record has it.
    """
    x, y = (f"{int(found[name]):,} of {int(found['n']):,}" for name in ("x_count", "y_count"))
    return (x, f"at most {y} on average") if found["y"] == ALLOWED else (f"{x} draws", f"{y} draws")


@dataclass(frozen=True)
class AuditResult:
    """Result of the audit of one claim.

    Levels are in the notion's own unit (epsilon, mu). `auditor.report.results_schema` makes the schema of results.json
    from these fields.

    Parameters
    ----------
    id : str
        ``entry/level/notion/case``.
    entry : str
        The entry that declares the claim.
    source : mapping of str to str
        ``document`` and ``place`` of the statement.
    level : str
        What the claim is held against: L0 exact distribution, L1 theorem, L2 component, L3 conformity, L4 accuracy.
    notion : str
        What is claimed: a notion of privacy, conformity, or a kind of accuracy claim.
    claimed : str
        The claim in words.
    claimed_level : float
        The claimed level.
    parameters : mapping
        Parameters of the claim.
    alpha : float
        This claim's share of the run's alpha.
    verdict : Verdict
        What was found.
    expected : Verdict
        What was expected.
    draws : int
        Outputs drawn for the evidence, both sides together.
    lower_bound : float or None
        Certified level, at confidence 1 - alpha; None for L0.
    exact : float or None
        Exact level on the audited pairs, where the distribution is known.
    ceiling : float or None
        Largest level that so many draws could have rejected, were the outputs fully distinguishable.
    resolution : mapping of str to float
        For a claim that is audited through events and not refuted: by probability, the smallest level that an event of
        that probability is flagged at with probability 0.9, see `auditor.evidence.power.find_resolution`. It depends on
        the claim and on how many draws the pair with the most had, not on what these showed.
    resolves : float or None
        What is held against ``detect``: the resolution at probability 0.01; for an adversary's game the smallest level,
        for accuracy the failure rate or expectation, for conformity the divergence in nats a draw, that is flagged with
        probability 0.9.
    detect : float or None
        Level that was to be found: where ``resolves`` is larger and nothing was refuted, the verdict is "inconclusive".
    log10_e_value : float or None
        Decimal logarithm of the evidence against the claim when the run stopped.
    log10_max_e_value : float or None
        Running maximum of ``log10_e_value``, which decides.
    pair : str or None
        Pair that speaks most against the claim; for a game the adversary, for conformity all datasets.
    event : str or None
        Event that speaks most against the claim.
    counterexample : Counterexample or None
        Evidence that refutes a claim of privacy.
    message : str
        Reason of the verdict, in words; may be empty.
    replay : str
        A line that runs this claim again.
    title : str
        Title of the entry, with the note of the claim if it has one.
    mechanism : str
        Name of what was audited; "computed" for a statement about numbers.
    source_hash : str
        Hash of the source text of what was audited; empty where there is none.
    stop : str
        "verdict": the audit stops as soon as the claim is refuted; "budget": it makes all its draws.
    truncated_by : str or None
        "time" if that cut the audit short.
    unseeded : bool
        The target's outputs do not follow from the generator that it is given.
    independence : mapping
        Tests that draws are independent, see `auditor.audits.independence.Independence`; empty where there were none.
    sandwich : str
        Check of the lower bound against the exact level: "holds", "failed: " or "loose: " with the figures; empty where
        no exact level is known. A failed check is a fault of the auditor or of the stated distribution.
    tradeoff : mapping
        The trade-off plot: on the grid ``q``, the ``claimed`` cap and the ``exact`` curve; ``points`` are (q, p) of
        events found, and ``draws`` those a side in which each was counted.
    wealth : mapping
        Evidence after each chunk: ``draws`` so far, and ``log10_e_value``.
    record : mapping
        All bets and counts: enough to compute wealth, verdict and bound again. A chunk is [pair, n, stakes], a stake
        [events, p, q, counts on x, counts on x']. Of conformity, a chunk is [draws so far, log wealth], and counts are
        those when the evidence was largest, by dataset, view and cell. Of a claim that could not be audited for another
        reason than its target: ``failed``, which is "run".
    cells : mapping
        For a claim of conformity, what a plot shows: ``view`` and ``dataset`` in words, and for each cell its label,
        stated probability and count.
    symbol : str
        What the notion's level is called.
    caveat : str
        What has to be known about levels found through events.
    event_level : float or None
        Largest level that a single event can show on the audited pairs, where the notion says more than its cap and
        the distribution is known.
    accuracy : mapping
        For a claim of accuracy and a computed statement: ``kind``, and what that kind of claim measures.
    known : str
        Where a baseline holds this finding: the reason given there. Such a finding does not make a run fail.
    new : str
        Where a baseline has a finding of this claim and verdict that does not cover this one: what differs, the cause
        or the level. Absent from a record where it is empty.
    method : str
        "e-process", "clopper-pearson" for the fixed-size method, which has no e-values, "enumeration" for a
        certificate, see `auditor.audits.certificates`, or "replay" where the same variates were drawn on both datasets,
        see `auditor.audits.replayed_draws`.
    checks : sequence of mapping
        Checks of what the target states of itself: ``name``, ``passed`` (None if it could not be checked) and
        ``finding``.
    ledger : mapping
        Where evidence is carried from run to run: ``file`` and ``identity`` of the ledger, ``series`` and ``night`` in
        it, ``own_draws`` of this run, ``draws`` of all, ``first_chunk`` and number of ``chunks`` of this run, and why
        it started ``afresh``. All other members are about all runs, but for ``record``, which has this run's chunks.
        Absent from a record where it is empty.
    places : mapping
        ``file`` and ``line`` of the audited ``mechanism`` and of the entry that declares the ``claim``, relative to the
        folder in which the run was started; what is not known or stands elsewhere is left out. See
        `auditor.runs.source_locations`. Absent from a record where it is empty.
    ignore : sequence of str
        Kinds of causes that nothing was bet on, see `auditor.events.cause_kinds`: a pass says nothing of them. Absent
        from a record where it is empty.
    also : sequence of mapping
        After a violation, further searches without the kinds of causes found before, see
        `auditor.audits.further_causes`. Each is a statement by itself, at level ``alpha``. Absent from a record where
        it is empty.
    """

    id: str
    entry: str
    source: Mapping[str, str]
    level: str
    notion: str
    claimed: str
    claimed_level: float
    parameters: Mapping[str, Any]
    alpha: float
    verdict: Verdict
    expected: Verdict
    draws: int = 0
    lower_bound: float | None = None
    exact: float | None = None
    ceiling: float | None = None
    resolution: Mapping[str, float] = field(default_factory=dict)
    resolves: float | None = None
    detect: float | None = None
    log10_e_value: float | None = None
    log10_max_e_value: float | None = None
    pair: str | None = None
    event: str | None = None
    counterexample: Counterexample | None = None
    message: str = ""
    replay: str = ""
    title: str = ""
    mechanism: str = ""
    source_hash: str = ""
    stop: str = "verdict"
    truncated_by: str | None = None
    unseeded: bool = False
    independence: Mapping[str, Any] = field(default_factory=dict)
    sandwich: str = ""
    tradeoff: Mapping[str, Any] = field(default_factory=dict)
    wealth: Mapping[str, Any] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    cells: Mapping[str, Any] = field(default_factory=dict)
    symbol: str = ""
    caveat: str = ""
    event_level: float | None = None
    accuracy: Mapping[str, Any] = field(default_factory=dict)
    known: str = ""
    new: str = ""
    method: str = "e-process"
    checks: Sequence[Mapping[str, Any]] = ()
    ledger: Mapping[str, Any] = field(default_factory=dict)
    places: Mapping[str, Any] = field(default_factory=dict)
    ignore: Sequence[str] = ()
    also: Sequence[Mapping[str, Any]] = ()

    @property
    def ok(self) -> bool:
        """The verdict is the expected one, and no check of ours failed."""
        return self.verdict == self.expected and not self.sandwich.startswith("failed")

    @property
    def reached(self) -> float | None:
        """Part of the claimed level that the lower bound certifies.

        None where there is no level, or it is 0.
        """
        return part_reached(self.level, self.lower_bound, self.claimed_level)

    @property
    def undecided(self) -> str:
        """Why nothing is decided, and what to do.

        Empty where something is decided, see `explain_undecided`.
        """
        return explain_undecided(vars(self))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _are_equal(vars(self), vars(other))

    def __bool__(self) -> bool:
        return self.verdict in (Verdict.CONSISTENT, Verdict.HOLDS)

    def __repr__(self) -> str:
        """The claim and what was found; all members are in `to_json`."""
        found = f"verdict={str(self.verdict)!r}, claimed={self.claimed!r}, lower_bound={self.lower_bound!r}"
        return f"AuditResult(id={self.id!r}, {found}, ...)"

    def __str__(self) -> str:
        if self.verdict == Verdict.ERROR:
            return f"{self.id}: error: {self.undecided}"
        text = f"{self.id}: {self.verdict}: claimed {self.claimed}"
        if self.method == ENUMERATION and self.verdict != Verdict.INCONCLUSIVE:
            text += f"; {self.message}"
        if self.lower_bound is not None:
            text += f"; lower bound {self.lower_bound:.4g} at confidence {format_certainty(self.alpha)}"
        if self.reached is not None:
            text += f", {100 * self.reached:.3g} % of the claim"
        if self.resolution and self.resolves is not None:
            text += f"; {say_resolution(self.symbol, self.resolves, len(self.record.get('pairs', [''])))}"
        if self.ignore:
            text += f"; {say_ignored(self.ignore)}"
        return f"{text}. {self.undecided}" if self.undecided else text

    def _repr_html_(self) -> str | None:
        """The claim's card, for a notebook; None where nothing can render it."""
        # Reports import results; this one import the other way is made when a notebook asks for it.
        card: str | None = importlib.import_module("auditor.report.notebook").render_card(self)
        return card

    def plot(self) -> Figure:
        """Plot levels, scores, trade-off curve and evidence, by matplotlib.

        Returns
        -------
        matplotlib.figure.Figure
            With a panel for each that there is; no window is opened.

        Raises
        ------
        MissingLibraryError
            If matplotlib is not installed: it comes with the extra "plot".
        """
        figure: Figure = importlib.import_module("auditor.report.notebook").plot_result(self)
        return figure

    def to_json(self) -> dict[str, Any]:
        """Plain data with `DERIVED`, without `ABSENT` members that are empty; see `make_plain`."""
        record: dict[str, Any] = make_plain(self)
        for name in ABSENT:
            if not record[name]:
                del record[name]
        record |= {name: make_plain(getattr(self, name)) for name in DERIVED}
        return dict(sorted(record.items()))


def wealth_fields(path: Sequence[tuple[int, float]], highest: float, sides: int = 1) -> dict[str, Any]:
    """Compute fields of a result from the path of its wealth.

    Parameters
    ----------
    path : sequence of (int, float)
        Draws a side so far and natural logarithm of the wealth, after each chunk.
    highest : float
        Its running maximum, which decides.
    sides : int
        How many sides the draws have.
    """
    log10 = 1 / math.log(10)
    return {
        "log10_e_value": (path[-1][1] if path else 0.0) * log10,
        "log10_max_e_value": highest * log10,
        "wealth": {"draws": [sides * n for n, _ in path], "log10_e_value": [log * log10 for _, log in path]},
    }


def usual_level(claimed: float) -> float:
    """Choose the level to find where a claim names none.

    Twice the claimed one, 0.1 next to 0.
    """
    return 2 * claimed if claimed > 0 else 0.1


def part_reached(level: str, lower_bound: float | None, claimed_level: float | None) -> float | None:
    """Compute the part of a claimed level that a bound certifies.

    None where no level of privacy is claimed, or it is 0.

    It is computed from both as they are written, so that it is the same for a result that was read.

    Parameters
    ----------
    level : str
        L0 to L4; only L1 and L2 certify a level of privacy.
    lower_bound : float or None
        The certified level.
    claimed_level : float or None
        The claimed level.
    """
    if level not in ("L1", "L2") or lower_bound is None or claimed_level is None or not 0 < claimed_level < math.inf:
        return None
    return float(_round_number(lower_bound)) / float(_round_number(claimed_level))


def say_resolution(symbol: str, level: float, pairs: int = 1) -> str:
    """Describe what events of probability 0.01 would have shown.

    It is all that a pass states of its power.

    Parameters
    ----------
    symbol : str
        What the notion's level is called.
    level : float
        The resolution at probability 0.01; may be infinite.
    pairs : int
        Pairs that were audited; with several, it is that of the pair with the most draws.

    Examples
    --------
    >>> say_resolution("ε", 1.76)
    '9 of 10 audits would find an event of probability 1 % that shows ε = 1.76 (of the kinds that are learned)'
    """
    if not math.isfinite(level):
        return "there are too few draws to find an event of probability 1 % in 9 of 10 audits, whatever it shows"
    most = "" if pairs == 1 else "; on the pair with the most draws"
    return (
        f"9 of 10 audits would find an event of probability 1 % that shows {symbol} = {level:.4g} "
        f"(of the kinds that are learned{most})"
    )


def say_ignored(kinds: Sequence[str]) -> str:
    """Describe which kinds of causes an audit left out; empty for none.

    Examples
    --------
    >>> say_ignored(["floating-point"])
    'not looked at: floating-point'
    """
    return f"not looked at: {', '.join(kinds)}" if kinds else ""


def say_also(found: Mapping[str, Any], symbol: str, alpha: float) -> str:
    """Describe a further search after a violation, in one sentence.

    Parameters
    ----------
    found : mapping
        One of ``AuditResult.also``, or of its record.
    symbol : str
        What the notion's level is called.
    alpha : float
        Level of the audit.
    """
    without = f"without {' and '.join(found['ignore'])}"
    draws = f"{int(found['draws']):,} further draws"
    if found["verdict"] == Verdict.VIOLATION:
        return (
            f"also violated {without}: {found['cause'] or found['event']}; lower bound {symbol} = "
            f"{float(found['lower_bound']):.4g}, by {draws}, a statement by itself at confidence "
            f"{format_certainty(alpha)}"
        )
    if found["verdict"] in (Verdict.CONSISTENT, Verdict.INCONCLUSIVE):
        bound = float(found["lower_bound"] or 0.0)
        return f"{without} not refuted by {draws}, which certify {symbol} = {bound:.4g}; a longer audit may find more"
    return f"{without}: {found['message'] or 'nothing could be found out'}"


def explain_undecided(result: Mapping[str, Any]) -> str:
    """Explain why an audit decides nothing, and what to do.

    One sentence, the same wherever it is shown.

    Parameters
    ----------
    result : mapping
        Members of an `AuditResult`, or its record.

    Returns
    -------
    str
        Empty unless the verdict is "error" or "inconclusive".
    """
    why = str(result.get("message") or "no reason was given").strip()
    why += "" if why.endswith((".", "!", "?")) else "."
    if result["verdict"] == Verdict.ERROR:
        rest = "run it again" if (result.get("record") or {}).get("failed") == RUN_FAILED else _CHECK
        return f"Could not be audited: {why} To do: mend what failed; {rest}."
    if result["verdict"] == Verdict.INCONCLUSIVE:
        return f"Nothing is decided: {why} To do: {_remedy(result)}."
    return ""


#: What a record has where the run failed, not the target: a library is missing, too few draws, a worker was lost.
RUN_FAILED = "run"
#: What shows how a target answers, on the command line and in Python.
_CHECK = "`dpaudit check TARGET` shows how a target answers, and --limit (limit=) gives its calls more time"
#: What makes draws independent.
SEPARATE = (
    "make each output draw noise of its own, without caches, batches or generators that outputs share "
    "(`dpaudit check TARGET` looks for that)"
)
#: What decides where the verdict does not hang on draws alone, by the notion.
_REMEDIES = {
    "exponent": "fit it over a wider range, or over more values",
    "smallest parameter": "take more draws (--draws, draws=); if that does not help, the failure rate is not monotone",
}
#: What an audit of training is to be given more of, by what it assumes.
_MORE = {
    "nothing": "canaries",
    "independent-canaries": "canaries",
    "independent-runs": "runs (runs=)",
    "claim-about-steps": "recorded steps",
}


def _remedy(result: Mapping[str, Any]) -> str:
    """What would decide an inconclusive audit."""
    if (result.get("independence") or {}).get("asked"):
        return f"{SEPARATE}, and audit again, also with another --seed (seed=)"
    if result.get("method") == ENUMERATION:
        return "take a smaller domain (--domain, --rows), discrete noise or more time (--max-seconds), or audit draws"
    if result.get("method") == REPLAY:
        return "let it draw all random numbers in the call, from sources that are replaced, or audit draws"
    if result.get("level") == "L0":
        return "state distributions whose exact curve is known more precisely, or audit draws (L1)"
    if result.get("notion") in _REMEDIES:
        return _REMEDIES[result["notion"]]
    most = "time (--max-seconds, seconds=)" if result.get("truncated_by") == "time" else "draws (--draws, draws=)"
    most = _MORE.get(str((result.get("record") or {}).get("assumes")), most)
    weaker = " or ask for less (--detect, detect=)" if result.get("detect") is not None else ""
    return f"give it more {most}{weaker}"


def format_certainty(alpha: float, whole: int = 1) -> str:
    """Format ``1 - alpha`` with enough digits to tell it from 1.

    Rounded down.

    Parameters
    ----------
    alpha : float
        Probability of an error, above 0.
    whole : int
        1, or 100 for a percentage.

    Examples
    --------
    >>> format_certainty(0.01), format_certainty(1.07e-5, 100)
    ('0.99', '99.9989')
    """
    with localcontext(Context(prec=_DIGITS)):  # also where a target has set another precision
        error = Decimal(whole) * Decimal(repr(float(alpha)))
        step = Decimal(1).scaleb(error.adjusted() - 1)
        return f"{(whole - error).quantize(step, rounding=ROUND_FLOOR).normalize():f}"


def describe_carried(ledger: Mapping[str, Any]) -> str:
    """Describe the part of the draws that this run made.

    Evidence may be carried from run to run; empty where it is not.
    """
    if not ledger:
        return ""
    afresh = ledger.get("afresh")
    why = f", started afresh ({afresh})" if afresh else ""
    return f", of which {int(ledger['own_draws']):,} in this run, number {int(ledger['night']):,} of its ledger{why}"


def _are_equal(a: Any, b: Any) -> bool:
    """Whether members of results are equal: arrays by their elements, and NaN is NaN."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and _are_equal(a.tolist(), b.tolist())
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_are_equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and type(a) is type(b):
        return len(a) == len(b) and all(map(_are_equal, a, b))
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return bool(a == b)


def make_plain(value: Any) -> Any:
    """Convert data for strict JSON.

    Floats are rounded to 8 significant digits; infinities are "inf" and "-inf", NaN is "nan".
    """
    kind = type(value)  # most of a result are lists of numbers: these first
    if kind is float:
        return _round_number(value)
    if kind in _AS_IT_IS:
        return value
    if kind is list or kind is tuple:
        return [_round_number(v) if type(v) is float else make_plain(v) for v in value]
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, str | int):
        return value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return _round_number(float(value))
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: make_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): make_plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return make_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [make_plain(v) for v in value]
    raise TypeError(f"no JSON for {value!r}")


#: Types of what JSON has.
_AS_IT_IS = frozenset((int, str, bool, type(None)))


def _round_number(value: float) -> float | str:
    if math.isfinite(value):
        return float(f"{value:.8g}") or 0.0  # no -0.0
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def parse_number(value: Any) -> float | None:
    """Read a level from JSON; the inverse of `make_plain` for floats."""
    return None if value is None else float(value)


def result_from(record: Mapping[str, Any]) -> AuditResult:
    """Invert `AuditResult.to_json`.

    What is read from the record of a result gives the same record again.

    Numbers are those of the record, of 8 digits. Nested members stay as JSON has them.

    Raises
    ------
    ValueError
        If a member is missing, unknown, or not what `AuditResult.to_json` writes.
    """
    try:
        values = _fields(AuditResult, {name: value for name, value in record.items() if name not in DERIVED})
        if values["counterexample"] is not None:
            values["counterexample"] = Counterexample(**_fields(Counterexample, values["counterexample"]))
        return AuditResult(**values)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError(f"not the record of a result: {type(error).__name__}: {error}") from error


def find_wrong_number(record: Mapping[str, Any]) -> str:
    """Find a member of a result's record that should be a number.

    Returns
    -------
    str
        Its name; empty if all are numbers, or none.
    """
    for part in fields(AuditResult):
        value = record.get(part.name)
        if part.type not in ("float", "float | None") or value in (None, "inf", "-inf", "nan"):
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            return part.name
    return ""


def _fields(kind: type, record: Mapping[str, Any]) -> dict[str, Any]:
    """Members of a record as the fields of a dataclass hold them: infinities as floats, verdicts as `Verdict`."""
    kinds = {part.name: part.type for part in fields(kind)}
    values = dict(record)
    for name, value in record.items():
        if kinds.get(name) in ("float", "float | None") and value in ("inf", "-inf", "nan"):
            values[name] = float(value)
        elif kinds.get(name) == "Verdict":
            values[name] = Verdict(value)
    return values


def make_document(
    manifest: Mapping[str, Any],
    claims: Sequence[AuditResult],
    errata: Sequence[Mapping[str, Any]],
    documents: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Make the content of results.json.

    Parameters
    ----------
    manifest : mapping
        What was run with what; written as it is.
    claims : sequence of AuditResult
        Results, in the order of the file.
    errata : sequence of mapping
        Records of errata.
    documents : mapping of str to str, optional
        Titles of the source documents, by name.
    """
    return {
        "schema": SCHEMA,
        "manifest": dict(manifest),  # what was asked for is written as it was given
        **({"documents": dict(documents)} if documents else {}),
        "claims": [claim.to_json() for claim in claims],
        "errata": make_plain(list(errata)),
    }


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write strict JSON with one claim a line, atomically.

    Parameters
    ----------
    path : Path
        File to write; it is replaced once all is written.
    content : mapping
        As `make_document` gives it; the claims are written last.

    Raises
    ------
    ValueError
        If a number is infinite or NaN, which `make_plain` turns into a text.
    """
    lines = [f"{_dump(key)}: {_dump(value)}" for key, value in content.items() if key != "claims"]
    claims = ",\n".join(_dump(claim) for claim in content.get("claims", []))
    lines.append(f'"claims": [\n{claims}\n]')
    # UTF-8 has no half of a surrogate pair, as in names of files: an escape of JSON, which reads as it was.
    write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n")


def write_whole(path: Path, text: str) -> None:
    """Write a file in UTF-8, whole or not at all.

    Line ends are the same everywhere.

    Parameters
    ----------
    path : Path
        File to write; it is replaced once all is written. Nothing else stays, also where the disk is full.
    text : str
        Its content; half of a surrogate pair is written as an escape.
    """
    partial = path.with_name(path.name + ".part")
    try:
        partial.write_bytes(text.encode("utf-8", "backslashreplace"))
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def choose_id(ids: Sequence[str], part: str | None, what: str) -> str:
    """Choose the id that is, or alone contains, a text.

    Parameters
    ----------
    ids : sequence of str
        Ids to choose from.
    part : str or None
        An id, or a part of it; None for the only one there is.
    what : str
        What the ids are of, in the plural, for errors.

    Raises
    ------
    SpecificationError
        If there is none, or several.
    """
    found = [one for one in ids if one == part] or [one for one in ids if part is None or part in one]
    if len(found) == 1:
        return found[0]
    if not ids:
        raise SpecificationError(f"the results have no {what}")
    if found:
        asked = ": name one of" if part is None else f" whose id contains {part!r}:"
        shown = ", ".join(found[:5]) + ", ..." * (len(found) > 5)
        raise SpecificationError(f"the results have {len(found):,} {what}{asked} {shown}")
    close = get_close_matches(str(part), ids, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]}?" if close else f"; ids are {', '.join(ids[:5])}" + ", ..." * (len(ids) > 5)
    raise SpecificationError(f"none of the {what} has {part!r} in its id{hint}")
