"""One claim and one run as a report shows them: parsed numbers, and the verdict in plain words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from auditor.report import words
from auditor.results import (
    ALLOWED,
    describe_carried,
    explain_undecided,
    format_certainty,
    parse_number,
    say_also,
    say_ignored,
    usual_level,
)

#: Words for the facts of a claim of conformity, which has datasets in the place of a pair, and cells in that of events.
_CONFORMITY = {"pair": "datasets", "event": "worst cell"}
#: Facts that a counterexample has as well.
_COUNTEREXAMPLE = ("pair", "event", "evidence")
#: Parameters that a sentence or a table tells.
_SAID = ("comparison", "constant")
PHASE_DIAGRAM = "phase diagram"
#: Notions of claims that are no guarantees of privacy and no conformity.
THEOREMS = ("failure rate", "expected error", "smallest parameter", "exponent", PHASE_DIAGRAM, "inequality")


@dataclass(frozen=True)
class ClaimView:
    """A claim of results.json, read for people.

    Parameters
    ----------
    raw : mapping
        The claim's record.
    anchor : str
        Its anchor in the report.
    line : int
        Its line in results.json.
    """

    raw: Mapping[str, Any]
    anchor: str
    line: int

    def text(self, key: str) -> str:
        """Read a field as text; empty if it is absent or null."""
        return str(self.raw.get(key) or "")

    def number(self, key: str) -> float | None:
        """Read a field as a number, or None.

        None if it is absent, null or not a number.
        """
        value = parse_number(self.raw.get(key))
        return None if value is None or math.isnan(value) else value

    @property
    def id(self) -> str:  # noqa: D102 - the field's name says it, here and below
        return self.text("id")

    @property
    def entry(self) -> str:  # noqa: D102
        return self.text("entry")

    @property
    def verdict(self) -> str:  # noqa: D102
        return self.text("verdict")

    @property
    def expected(self) -> str:  # noqa: D102
        return self.text("expected")

    @property
    def ok(self) -> bool:  # noqa: D102
        return bool(self.raw.get("ok"))

    @property
    def known(self) -> str:
        """Why a baseline holds this finding; empty if none does."""
        return self.text("known")

    @property
    def new(self) -> str:
        """What a baseline's finding of this claim does not cover.

        Empty if there is no finding that might cover it.
        """
        return self.text("new")

    @property
    def ignored(self) -> str:
        """Which kinds of causes were left out; empty for none."""
        return say_ignored(self.raw.get("ignore") or ())

    @property
    def also(self) -> list[str]:
        """Further searches after a violation, a sentence each."""
        texts = [say_also(found, self.symbol, self.alpha) for found in self.raw.get("also") or ()]
        return [f"{text[:1].upper()}{text[1:]}." for text in texts]

    @property
    def undecided(self) -> str:
        """Why nothing is decided, and what to do.

        Empty where something is decided.
        """
        return words.one_line(explain_undecided(self.raw)) if self.verdict else ""

    @property
    def unexpected(self) -> bool:
        """Not as expected, and no known finding."""
        return not self.ok and not self.known

    @property
    def level(self) -> str:  # noqa: D102
        return self.text("level")

    @property
    def draws(self) -> int:  # noqa: D102
        return int(self.raw.get("draws") or 0)

    @property
    def alpha(self) -> float:  # noqa: D102
        return self.number("alpha") or 0.0

    @property
    def counterexample(self) -> Mapping[str, Any] | None:  # noqa: D102
        found: Mapping[str, Any] | None = self.raw.get("counterexample")
        return found

    @property
    def is_game(self) -> bool:
        """Whether an adversary made up the data.

        Then there is no pair.
        """
        return (self.counterexample or {}).get("y") == ALLOWED

    @property
    def conformity(self) -> bool:
        """Whether a stated distribution is claimed, rather than privacy.

        Levels are then log-ratios and divergences in nats.
        """
        return self.text("notion") == "conformity"

    @property
    def found(self) -> Mapping[str, Any]:
        """Finding of an accuracy audit or a computed statement.

        Empty for other claims.
        """
        found: Mapping[str, Any] = self.raw.get("accuracy") or {}
        return found

    @property
    def theorem(self) -> bool:
        """A claim of accuracy, or a computed statement."""
        return self.text("notion") in THEOREMS

    @property
    def refuted(self) -> bool:
        """Refuted, as expected."""
        return self.ok and self.verdict in ("violation", "deviation")

    @property
    def found_wrong(self) -> bool:
        """A violation or deviation was found, whether expected or not."""
        return self.verdict in ("violation", "deviation")

    @property
    def resolves(self) -> float | None:
        """Level that a pass would have found.

        None for a violation or deviation.
        """
        return None if self.found_wrong else self.number("resolves")

    @property
    def ceiling(self) -> float | None:
        """Largest level that a pass could have shown.

        None for a violation or deviation.
        """
        return None if self.found_wrong else self.number("ceiling")

    @property
    def judged(self) -> Mapping[str, Any] | None:
        """Counts and limits of the event in the judging draws.

        None for the method with e-values.
        """
        found: Mapping[str, Any] | None = (self.raw.get("record") or {}).get("judged")
        return found

    @property
    def checked(self) -> str:
        """What the claim was held against: "L1, theorem"."""
        return f"{self.level}, {words.LEVELS.get(self.level, 'other')}"

    @property
    def source(self) -> str:
        """Document and place, in one line."""
        return words.format_place(self.raw.get("source") or {})

    @property
    def symbol(self) -> str:
        """What the level is called: ε, δ, μ, ρ, t."""
        return self.text("symbol") or "level"

    @property
    def reached(self) -> float | None:
        """Part of the claimed level that the lower bound certifies."""
        return self.number("reached")

    @cached_property
    def strength(self) -> str:
        """Strength of a pass: "reached", "loose", "out of reach" or empty.

        "out of reach": so few draws do not find twice the claimed level. "reached": 90 % or more of the claimed level
        is certified, or of the claimed error or failure rate was measured, or is exact. "loose": the exact level is
        half of the claimed one or less, or a bound is 10 times what was measured or more.
        """
        if self.verdict != "consistent" or self.conformity or self.found.get("kind") == PHASE_DIAGRAM:
            return ""
        if self._misses_twice_the_level():
            return "out of reach"
        claimed, exact = self.number("claimed_level"), self.number("exact")
        if self.found:
            share = share_of(self.found)
            known = exact is not None and claimed is not None and exact >= 0.9 * claimed > 0
            loose = share is not None and share <= 0.1
        else:
            share, known = self.reached, False
            loose = exact is not None and claimed is not None and exact <= 0.5 * claimed > 0
        if known or (share is not None and share >= 0.9):
            return "reached"
        return "loose" if loose else ""

    def _misses_twice_the_level(self) -> bool:
        claimed, resolved = self.number("claimed_level"), self.number("resolves")
        if claimed is None or resolved is None or resolved <= usual_level(claimed) * (1 + 1e-9):
            return False
        shown = parse_number(self.found.get("upper"))  # a failure rate may be certified to be as small as it should be
        return shown is None or shown > claimed

    @property
    def said(self) -> str:
        """The verdict, with the strength of a pass."""
        return ", ".join(filter(None, (self.verdict, self.strength)))

    @property
    def confidence(self) -> str:
        """Confidence of the lower bound, as a percentage."""
        return f"{format_certainty(self.alpha, 100)} %"

    @property
    def broken(self) -> bool:
        """A mutant, or a statement that is false as printed."""
        return self.expected in ("violation", "deviation")

    @property
    def log10_shown(self) -> float | None:
        """Evidence of the draws that the counterexample shows.

        They are fresh ones where it was made smaller.
        """
        return parse_number((self.counterexample or {}).get("e_value_log10"))

    @property
    def log10_max(self) -> float | None:
        """Decimal logarithm of the evidence that decides: the running maximum."""
        highest = self.number("log10_max_e_value")
        return self.number("log10_e_value") if highest is None else highest

    @property
    def threshold(self) -> float | None:
        """Decimal logarithm of 1/alpha."""
        return -math.log10(self.alpha) if 0 < self.alpha < 1 else None

    @property
    def check_failed(self) -> bool:
        """Whether the auditor's own check failed.

        The verdict is not to be trusted then.
        """
        return self.text("sandwich").startswith("failed") or (not self.ok and self.verdict == self.expected)

    @property
    def surprise(self) -> str:
        """What is wrong with the result, empty if all is as expected."""
        if self.ok:
            return ""
        check = f"the auditor's own check {self.text('sandwich') or 'failed'}"
        if self.verdict != self.expected:
            new = f", new to the baseline: {self.new}" if self.new else ""
            also = f"; {check}" if self.check_failed else ""
            return f"{self.verdict} where {self.expected} was expected{new}{also}"
        return check

    @property
    def replay(self) -> str:
        """A line that finds it again."""
        found = self.counterexample
        return str((found or {}).get("replay") or self.raw.get("replay") or "dpaudit reproduce results.json")

    @cached_property
    def facts(self) -> list[tuple[str, str]]:
        """Labels and values beside the sentences and the plots."""
        raw = self.raw
        parameters = ", ".join(
            f"{key} = {value}" for key, value in words.flatten_value(raw.get("parameters") or {}) if key not in _SAID
        )
        notion = self.text("notion")
        lines = [
            ("known", self.known),
            ("new to the baseline", self.new),
            ("source", self.source),
            ("mechanism", self.text("mechanism")),
            ("claim", self.text("claimed") + (f" ({notion})" if notion else "")),
            ("parameters", parameters),
            ("checked", self.checked),
            ("not looked at", ", ".join(self.raw.get("ignore") or ())),
            ("pair", self.text("pair")),
            ("event", self.text("event")),
            ("evidence", self._evidence()),
            ("share of alpha", words.format_level(self.number("alpha")) if self.draws else ""),
            ("wanted", self._wanted_resolution()),
            ("draws", self._describe_draws()),
            ("sandwich", self.text("sandwich").partition(":")[0]),
            ("independence", self._independence()),
            ("stated", self._self_reported_checks()),
        ]
        renamed = _CONFORMITY if self.conformity else {}
        return [(renamed.get(key, key), words.one_line(value)) for key, value in lines if value]

    @property
    def facts_beside(self) -> list[tuple[str, str]]:
        """The facts, without those that a counterexample beside them has."""
        if self.counterexample is None:
            return self.facts
        return [(key, value) for key, value in self.facts if key not in _COUNTEREXAMPLE]

    def _self_reported_checks(self) -> str:
        """Checks of what the target states of itself."""
        outcomes = {True: "holds", False: "FAILS", None: "not checked"}
        return "; ".join(
            f"{check['name']} {outcomes[check['passed']]}" + (f": {check['finding']}" if check["finding"] else "")
            for check in self.raw.get("checks") or ()
        )

    def _evidence(self) -> str:
        judged = self.judged
        if judged:
            x, y, n = (int(judged[key]) for key in ("x", "y", "n"))
            return (
                f"{self.text('method')}: the event, chosen on other draws, occurred in {x:,} of {n:,} draws on x and "
                f"in {y:,} on x′, so that {self.limits}"
            )
        if self.log10_max is None:
            return ""
        text = f"e-value {words.format_e_value(self.number('log10_e_value'))} at the stop, running maximum "
        text += words.format_e_value(self.log10_max)
        return text + (f" ({words.format_e_value(self.threshold)} decides)" if self.threshold is not None else "")

    @property
    def limits(self) -> str:
        """Confidence limits of the judged event; empty for the method with e-values."""
        if not self.judged:
            return ""
        low, high = (float(self.judged[key]) for key in ("p_lower", "q_upper"))
        return f"its probability is at least {low:.4g} on x and at most {high:.4g} on x′"

    def _wanted_resolution(self) -> str:
        detect = self.number("detect")
        if detect is None or self.number("resolves") is None:
            return ""
        wanted = f"{self.symbol} {'of' if self.theorem else '='} {words.format_level(detect)}"
        if self.conformity:
            wanted = f"a divergence of {words.format_level(detect)} nats a draw"
        events = ", of events of probability 1 %" if self.raw.get("resolution") else ""
        return f"{wanted} was to be found{events}"

    def _describe_draws(self) -> str:
        if not self.draws:
            computed = self.level == "L0" or self.found
            return "none needed" if computed and self.verdict != "error" else "none"
        return "; ".join(
            filter(None, (f"{self.draws:,}{describe_carried(self.raw.get('ledger') or {})}", self._describe_stop()))
        )

    def _describe_stop(self) -> str:
        """What ended the draws; empty where the record does not tell."""
        if self.raw.get("truncated_by"):
            return f"cut short by {self.text('truncated_by')}"
        if self.found_wrong and self.text("stop") == "verdict":
            return "ended with the verdict"
        asked_again = (self.raw.get("independence") or {}).get("asked")
        searched = self.found.get("kind") in ("smallest parameter", PHASE_DIAGRAM)
        given = "assumes" in (self.raw.get("record") or {})  # scores of canaries are no budget
        if asked_again or searched or given:
            return ""
        if self.found.get("kind") == "failure rate" and self.text("stop") == "verdict":
            upper, claimed = parse_number(self.found.get("upper")), parse_number(self.found.get("claimed"))
            if upper is not None and claimed is not None and upper <= claimed:
                return "ended where the claim was certified"
        return "the whole budget"

    def _independence(self) -> str:
        tested = self.raw.get("independence") or {}
        said = []
        if tested.get("draws"):
            result = "passed" if tested.get("passed") else f"failed: {tested.get('finding', '')}"
            said.append(f"tested on {int(tested['draws']):,} further draws, {result}")
        if tested.get("asked"):
            p = f" (p = {float(tested['asked_p']):.2g})" if float(tested["asked_p"]) < 1 else ""
            how = "in calls like the first ones" if tested.get("in_calls") else "one draw a call"
            said.append(f"a first refutation had to be reached again, {how}: {tested['asked']}{p}")
        if tested.get("still"):
            said.append(f"draws taken one a call look dependent as well: {tested['still']}")
        return "; ".join(said)


def share_of(found: Mapping[str, Any]) -> float | None:
    """Largest part of a bound that was measured.

    Of an error, or of a failure rate; None where there is none.
    """
    slack = found.get("slack")
    known = [parse_number(value) for value in (slack if isinstance(slack, list | tuple) else [slack])]
    shares = [1 / value if value else math.inf for value in known if value is not None and not math.isnan(value)]
    rate, upper, allowed = (parse_number(found.get(key)) for key in ("rate", "upper", "claimed"))
    if found.get("kind") == "failure rate" and rate is not None and upper is not None and allowed:
        # Where most errors are 0 their quantile says nothing of the bound: then the failure rate does.
        shares = [share for share in shares if share] or [min(0.5, upper / allowed)]
        shares.append(rate / allowed if rate >= 0.9 * allowed else 0.0)
    return max(shares, default=None)


@dataclass(frozen=True)
class RunView:
    """The content of results.json, as strings safe to print.

    Parameters
    ----------
    results : mapping
        The parsed content.
    claims : tuple of ClaimView
        Its claims, in the order of the file.
    """

    results: Mapping[str, Any]
    claims: tuple[ClaimView, ...]

    @classmethod
    def of(cls, results: Mapping[str, Any] | RunView) -> RunView:
        """Read the parsed content of results.json.

        A view is returned as it is.
        """
        if isinstance(results, RunView):
            return results
        safe: dict[str, Any] = words.clean_values(results)
        records = safe.get("claims") or []
        anchors = words.make_slugs([str(record.get("id") or "") for record in records])
        # `write_json` puts a brace, each other member and the opening of the claims on a line of their own.
        first = len([key for key in safe if key != "claims"]) + 3
        views = (ClaimView(r, a, first + i) for i, (r, a) in enumerate(zip(records, anchors, strict=True)))
        return cls(safe, tuple(views))

    @property
    def manifest(self) -> Mapping[str, Any]:  # noqa: D102
        manifest: Mapping[str, Any] = self.results.get("manifest") or {}
        return manifest

    @property
    def unexpected(self) -> list[ClaimView]:
        """Claims with an unexpected result, worst first.

        Those that a baseline holds are left out.
        """
        order = {verdict: i for i, verdict in enumerate(words.VERDICTS)}
        found = [claim for claim in self.claims if claim.unexpected]
        return sorted(found, key=lambda claim: order.get(claim.verdict, len(order)))

    @property
    def known(self) -> list[ClaimView]:
        """Findings that a baseline holds."""
        return [claim for claim in self.claims if claim.known]

    @property
    def fine(self) -> bool:
        """Something was audited, and all is as expected."""
        return bool(self.claims) and not self.unexpected and not self.interrupted

    @property
    def caught(self) -> list[tuple[str, str, list[ClaimView]]]:
        """Expected findings: violations, then deviations.

        Each is an anchor, a title and its claims.
        """
        kinds = (("violations", "Violations, as expected"), ("deviations", "Deviations, as expected"))
        found = [(n, t, [c for c in self.claims if c.ok and f"{c.verdict}s" == n]) for n, t in kinds]
        return [part for part in found if part[2]]

    @property
    def strengths(self) -> list[tuple[str, int]]:
        """Strengths of the passes that have one, with their numbers of claims."""
        number_of = Counter(claim.strength for claim in self.claims if claim.strength)
        return [(name, number_of[name]) for name in ("reached", "loose", "out of reach") if number_of[name]]

    @property
    def counts(self) -> list[tuple[str, int, int, int]]:
        """Each verdict with its numbers of claims.

        As expected, unexpected, and known from a baseline.
        """
        number_of = Counter((claim.verdict, claim.unexpected, bool(claim.known)) for claim in self.claims)
        rows = [
            (
                verdict,
                number_of[verdict, False, False],
                number_of[verdict, True, False],
                number_of[verdict, False, True],
            )
            for verdict in words.VERDICTS
        ]
        return [row for row in rows if any(row[1:])]

    @property
    def anchors(self) -> dict[str, str]:
        """Anchor of each claim id."""
        return {claim.id: claim.anchor for claim in reversed(self.claims)}

    @property
    def interrupted(self) -> str:
        """How much of an interrupted run is here; empty if all is."""
        if not self.manifest.get("interrupted"):
            return ""
        selected = self.manifest.get("claims_selected")
        of = f"{selected:,}" if isinstance(selected, int) else "the selected"
        return f"Interrupted: {len(self.claims):,} of {of} claims were finished."

    @property
    def sentence(self) -> str:
        """The run in one sentence."""
        if not self.claims:
            return "No claims were audited."
        fine = [claim for claim in self.claims if claim.ok]
        held = sum(claim.expected in ("consistent", "holds") for claim in fine)
        caught = sum(claim.broken for claim in fine)
        other = len(fine) - held - caught
        parts = []
        if held:
            parts.append(f"{held:,} expected to hold {'was' if held == 1 else 'were'} not refuted")
        if caught:
            parts.append(f"{caught:,} known to be broken {'was' if caught == 1 else 'were'} caught")
        if other:
            parts.append(f"{other:,} ended otherwise, as expected")
        if self.known:
            parts.append(f"{words.number_of(len(self.known), 'known finding')} from a baseline")
        ended = "; ".join([", ".join(parts)] if parts else [])
        tail = self._surprises()
        return f"{words.number_of(len(self.claims), 'claim')}: {ended + '; ' if ended else ''}{tail}."

    def _surprises(self) -> str:
        if not self.unexpected:
            return "nothing unexpected"
        kinds = Counter(c.verdict if c.verdict != c.expected else "failed check" for c in self.unexpected)
        listed = words.join_texts(f"{count:,} {kind}" for kind, count in kinds.items())
        return f"{len(self.unexpected):,} unexpected ({listed})"
