"""One claim and one run as a report shows them: parsed numbers, and the verdict in plain words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from auditor.exact import GaussianLaw, curve
from auditor.report import words
from auditor.results import number

#: Delta at which a bound on mu is also shown as an epsilon: the usual one for datasets of some thousand rows.
DELTA = 1e-5


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
        """A field as text; empty if it is absent or null."""
        return str(self.raw.get(key) or "")

    def number(self, key: str) -> float | None:
        """A field as a number; None if it is absent, null or not a number."""
        value = number(self.raw.get(key))
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
    def source(self) -> str:
        """Document and place, in one line."""
        return words.place(self.raw.get("source") or {})

    @property
    def symbol(self) -> str:
        """What the level is called: ε, μ, ρ."""
        return words.symbol(self.text("notion"))

    @property
    def confidence(self) -> str:
        """Confidence of the lower bound, as a percentage."""
        return words.percent(1 - self.alpha)

    @property
    def broken(self) -> bool:
        """A mutant, or a statement that is false as printed."""
        return self.expected in ("violation", "deviation")

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
    def surprise(self) -> str:
        """What is wrong with the result, empty if all is as expected."""
        if self.ok:
            return ""
        if self.verdict != self.expected:
            return f"{self.verdict} where {self.expected} was expected"
        return f"the auditor's own check {self.text('sandwich') or 'failed'}"

    @property
    def replay(self) -> str:
        """A line that finds it again."""
        found = self.counterexample
        return str((found or {}).get("replay") or self.raw.get("replay") or "dpaudit reproduce results.json")

    @cached_property
    def explanation(self) -> list[str]:
        """The verdict in plain words, one paragraph each, with what the audit could have caught."""
        return [words.one_line(part) for part in self._explain() if part]

    def _explain(self) -> Iterator[str]:
        yield self._verdict()
        if self.verdict != "error":
            yield self._bound()
        if self.verdict not in ("error", "violation"):
            yield self._reach()
        yield from self._notes()

    def _verdict(self) -> str:
        message = self.text("message").strip()
        if message and not message.endswith((".", "!", "?")):
            message += "."
        claimed = self.text("claimed")
        match self.verdict:
            case "violation" if self.counterexample is not None:
                return f"Refuted. {self.counterexample_sentence} {message}"
            case "violation":
                exact = self.number("exact")
                if not message and exact is not None:
                    message = f"The stated law has {self.symbol} = {words.level(exact)}."
                return f"Refuted: {claimed} does not hold. {message[:1].upper()}{message[1:]}"
            case "deviation":
                return f"Wrong, but by itself no violation of the guarantee: {message or 'see below.'}"
            case "error":
                return f"Could not be audited: {message or 'no reason was given.'}"
            case "inconclusive":
                return f"Nothing was found, but the audit was too weak to say much: {message or 'see below.'}"
        if not self.draws:
            return f"Not refuted. The stated law was computed exactly and is within the claim. {message}"
        against = claimed or "the claim"
        return f"Not refuted: {self.draws:,} draws gave no sufficient evidence against {against}. {message}"

    def _bound(self) -> str:
        bound = self.number("lower_bound")
        if bound is None:
            return ""
        if bound <= 0:
            return f"No level above 0 could be certified at confidence {self.confidence}."
        text = f"Certified at confidence {self.confidence}: {self.symbol} ≥ {words.level(bound)} on these pairs."
        if self.symbol == "μ" and bound < math.inf:
            epsilon = curve(GaussianLaw(0.0, 1.0), GaussianLaw(bound, 1.0)).epsilon(DELTA)
            text += f" If the curve is Gaussian, that is ε = {words.level(epsilon)} at δ = {DELTA:g}."
        return text

    def _reach(self) -> str:
        ceiling, detectable = self.number("ceiling"), self.number("detectable_level")
        parts = []
        if detectable is not None and math.isfinite(detectable):
            parts.append(
                f"A true {self.symbol} of {words.level(detectable)} would have been flagged with probability 0.9, "
                "through the best event found."
            )
        elif detectable is not None:
            parts.append("No level was sure to be flagged through the best event found.")
        if ceiling is not None:
            parts.append(
                f"Even outputs that give the dataset away could not have shown more than {self.symbol} = "
                f"{words.level(ceiling)} with {self.draws:,} draws."
            )
        if parts and self.verdict in ("consistent", "inconclusive"):
            parts.append("A pass never means private.")
        return " ".join(parts)

    def _notes(self) -> Iterator[str]:
        notion = self.text("notion").lower()
        if self.verdict == "violation" and self.level == "L2":
            yield "A part breaks its own, tight, bound; the theorem's looser claim may still stand."
        if self.symbol == "ρ" or "renyi" in notion or "rényi" in notion:
            yield (
                "The claim implies the cap on one event that is tested here, but is not equivalent to it: "
                "one event reaches about 70 % to 90 % of the true level of Gaussian noise."
            )
        sandwich, _, why = self.text("sandwich").partition(": ")
        if sandwich == "failed":
            yield f"The auditor's own check against the exact level failed: {why}."
        elif sandwich == "loose":
            yield f"The audit is not tight: {why}, the smaller of exact level and ceiling."
        if self.raw.get("truncated_by"):
            chunks = len((self.raw.get("record") or {}).get("chunks") or [])
            yield f"Cut short by {self.text('truncated_by')}, after {words.number_of(chunks, 'chunk')} of draws."
        if self.raw.get("unseeded"):
            yield "The target takes its randomness from elsewhere: a replay recomputes the verdict from the record."

    @property
    def counterexample_sentence(self) -> str:
        """Event, counts and evidence in one or two sentences; empty without a counterexample."""
        found = self.counterexample
        if found is None:
            return ""
        x, y, n = (int(found[key]) for key in ("x_count", "y_count", "n"))
        text = f"The event “{found['event']}” occurred in {x:,} of {n:,} draws on x"
        text += f" and in {y:,} of {n:,} on x′"
        cap = self._cap(y / n) if n else None
        if cap == 0:
            text += f", where {self.text('claimed')} does not allow it on x either"
        elif cap is not None and cap < 1:
            text += f"; at the latter rate, {self.text('claimed')} allows about {words.percent(cap)} on x at most"
        text += f". The evidence reached {words.power(number(found['e_value_log10']))}"
        if self.threshold is not None:
            text += f"; {words.power(self.threshold)} decides"
        return text + "."

    def _cap(self, q: float) -> float | None:
        """The claimed cap at ``q``, on the line between its neighbours: never above the cap, which is concave."""
        tradeoff = self.raw.get("tradeoff") or {}
        grid, cap = tradeoff.get("q") or [], tradeoff.get("claimed") or []
        for i in range(1, min(len(grid), len(cap))):
            if grid[i - 1] <= q <= grid[i] and grid[i] > grid[i - 1]:
                share = (q - grid[i - 1]) / (grid[i] - grid[i - 1])
                return float(cap[i - 1] + share * (cap[i] - cap[i - 1]))
        return None

    @cached_property
    def facts(self) -> list[tuple[str, str]]:
        """Label and value of what is not in the sentences or the plots."""
        raw = self.raw
        parameters = ", ".join(f"{key} = {value}" for key, value in words.flat(raw.get("parameters") or {}))
        notion = self.text("notion")
        lines = [
            ("source", self.source),
            ("mechanism", self.text("mechanism")),
            ("claim", self.text("claimed") + (f" ({notion})" if notion else "")),
            ("parameters", parameters),
            ("checked", f"{self.level}, {words.LEVELS.get(self.level, 'other')}"),
            ("pair", self.text("pair")),
            ("event", self.text("event")),
            ("evidence", self._evidence()),
            ("share of alpha", words.level(self.number("alpha")) if self.draws else ""),
            ("wanted", self._wanted()),
            ("draws", self._drawn()),
            ("sandwich", self.text("sandwich").partition(":")[0]),
            ("independence", self._independence()),
            ("source hash", self.text("source_hash")),
        ]
        return [(key, words.one_line(value)) for key, value in lines if value]

    @cached_property
    def accuracy(self) -> list[tuple[str, str]]:
        """Label and value of everything an accuracy audit found."""
        return words.flat(self.raw.get("accuracy") or {})

    def _evidence(self) -> str:
        if self.log10_max is None:
            return ""
        text = f"e-value {words.power(self.number('log10_e_value'))} at the stop, running maximum "
        text += words.power(self.log10_max)
        return text + (f" ({words.power(self.threshold)} decides)" if self.threshold is not None else "")

    def _wanted(self) -> str:
        detect = self.number("detect")
        if detect is None or self.number("detectable_level") is None:
            return ""
        return f"{self.symbol} = {words.level(detect)} was to be detectable"

    def _drawn(self) -> str:
        if not self.draws:
            return "none" if self.verdict == "error" else "none needed"
        stop = "stops as soon as the claim is refuted" if self.text("stop") == "verdict" else "runs its whole budget"
        return f"{self.draws:,}; {stop}"

    def _independence(self) -> str:
        tested = self.raw.get("independence") or {}
        if not tested.get("draws"):
            return ""
        drawn = f"tested on {int(tested['draws']):,} further draws"
        return f"{drawn}, passed" if tested.get("passed") else f"{drawn}, failed: {tested.get('finding', '')}"


@dataclass(frozen=True)
class RunView:
    """The content of results.json, read for people: all strings made safe to print."""

    results: Mapping[str, Any]
    claims: tuple[ClaimView, ...]

    @classmethod
    def of(cls, results: Mapping[str, Any]) -> RunView:
        """Read the parsed content of results.json."""
        safe: dict[str, Any] = words.cleaned(results)
        records = safe.get("claims") or []
        anchors = words.slugs([str(record.get("id") or "") for record in records])
        # `write_json` puts a brace, each other member and the opening of the claims on a line of their own.
        first = len([key for key in safe if key != "claims"]) + 3
        views = (ClaimView(r, a, first + i) for i, (r, a) in enumerate(zip(records, anchors, strict=True)))
        return cls(safe, tuple(views))

    @property
    def manifest(self) -> Mapping[str, Any]:  # noqa: D102
        manifest: Mapping[str, Any] = self.results.get("manifest") or {}
        return manifest

    @property
    def errata(self) -> list[Mapping[str, Any]]:  # noqa: D102
        errata: list[Mapping[str, Any]] = self.results.get("errata") or []
        return errata

    @property
    def unexpected(self) -> list[ClaimView]:
        """Claims whose result is not the expected one, worst first."""
        order = {verdict: i for i, verdict in enumerate(words.VERDICTS)}
        found = [claim for claim in self.claims if not claim.ok]
        return sorted(found, key=lambda claim: order.get(claim.verdict, len(order)))

    @property
    def fine(self) -> bool:
        """Something was audited, and all is as expected."""
        return bool(self.claims) and not self.unexpected and not self.interrupted

    @property
    def caught(self) -> list[ClaimView]:
        """Violations that were expected."""
        return [claim for claim in self.claims if claim.ok and claim.verdict == "violation"]

    @property
    def counts(self) -> list[tuple[str, int, int]]:
        """Each verdict that occurs, with the number of claims as expected and otherwise."""
        number_of = Counter((claim.verdict, claim.ok) for claim in self.claims)
        present = [v for v in words.VERDICTS if number_of[v, True] or number_of[v, False]]
        return [(verdict, number_of[verdict, True], number_of[verdict, False]) for verdict in present]

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
        return f"Interrupted: {len(self.claims):,} of {selected or 'the selected'} claims were finished."

    @property
    def sentence(self) -> str:
        """The run in one sentence."""
        if not self.claims:
            return "No claims were audited."
        fine = [claim for claim in self.claims if claim.ok]
        held = sum(claim.expected == "consistent" for claim in fine)
        caught = sum(claim.broken for claim in fine)
        other = len(fine) - held - caught
        parts = []
        if held:
            parts.append(f"{held:,} expected to hold {'was' if held == 1 else 'were'} not refuted")
        if caught:
            parts.append(f"{caught:,} known to be broken {'was' if caught == 1 else 'were'} caught")
        if other:
            parts.append(f"{other:,} ended otherwise, as expected")
        ended = "; ".join([", ".join(parts)] if parts else [])
        tail = self._surprises()
        return f"{words.number_of(len(self.claims), 'claim')}: {ended + '; ' if ended else ''}{tail}."

    def _surprises(self) -> str:
        if not self.unexpected:
            return "nothing unexpected"
        kinds = Counter(c.verdict if c.verdict != c.expected else "failed check" for c in self.unexpected)
        listed = words.enumeration(f"{count:,} {kind}" for kind, count in kinds.items())
        return f"{len(self.unexpected):,} unexpected ({listed})"
