"""Certificates of the reference mechanisms and their mutants: `python -m benchmarks.house_certificates`.

Every claim of privacy of the catalogue that is audited by draws (L1, L2) is tried: its mechanism is walked on both
datasets of each pair. The samplers of integer noise are taken as their stated distributions, which tests of their own
hold them against. A walk is compared with the claim's expected verdict, and with the stated distribution of the
mechanism where it has one.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from auditor.audits.certificates import bound_level
from auditor.audits.exact import allow_rounding
from auditor.claims import registry
from auditor.privacy.guarantees import Guarantee
from auditor.privacy.laws import FiniteLaw
from auditor.targets.randomness.calls import ControlledSource
from auditor.targets.randomness.distributions import TAIL, MassTable, categories
from auditor.targets.randomness.enumeration import Budget, Outcomes, enumerate_outputs, freeze_output
from auditor.targets.randomness.generators import as_numpy_type
from auditor.targets.randomness.signals import Uncontrolled
from auditor.targets.randomness.variates import draw_number
from mechanisms.base import integer_noise, noise

#: Probability that may be left out.
SPARE = 1e-9
#: Paths of one dataset at most.
PATHS = 4_000
#: Pairs of a claim at most, the first ones.
MOST_PAIRS = 8
#: Claims of one piece of work; arbitrary.
_PART = 50
#: Stated and walked probabilities agree to within this.
WITHIN = 1e-8
#: Names of numpy's types of numbers, which keys of outputs have.
_NUMPY_TYPES = frozenset(np.dtype(code).name for code in np.typecodes["AllInteger"] + np.typecodes["Float"])


@dataclass(frozen=True)
class HouseRow:
    """What walking the mechanism of a claim gave.

    Parameters
    ----------
    id : str
        The claim.
    expected : str
        Its expected verdict.
    verdict : str
        "holds", "violation" or "inconclusive", on the claim's pairs.
    low, high : float
        Bounds on the level.
    paths : int
        Paths walked.
    law : str
        "agrees" or "differs" where a finite distribution is stated; else empty.
    reason : str
        Why it is inconclusive.
    """

    id: str
    expected: str
    verdict: str
    low: float
    high: float
    paths: int
    law: str
    reason: str

    @property
    def contradicts(self) -> bool:
        """The walk and the catalogue cannot both be right."""
        wrong = self.verdict == "violation" and self.expected == "consistent"
        return wrong or (self.verdict == "holds" and self.expected == "violation") or self.law == "differs"


def replace_samplers(source: ControlledSource) -> None:
    """Take the samplers of integer noise as their stated distributions.

    Parameters
    ----------
    source : ControlledSource
        Replaces them.
    """

    def fill(table: MassTable, size: Any) -> Any:
        out = np.empty(size, dtype=object)
        flat = out.reshape(-1)
        for k in range(out.size):
            flat[k] = draw_number(source.current(), table)
        return as_numpy_type(out, np.int64)

    def draw_geometric(a: float, size: Any, _rng: Any) -> Any:
        return fill(geometric_table(float(a)), size)

    def two_sided_geometric(a: float, size: Any, _rng: Any) -> Any:
        return fill(two_sided_table(float(a)), size)

    def discrete_gaussian(sigma: float, size: Any, _rng: Any, **_: Any) -> Any:
        return fill(gaussian_table(float(sigma)), size)

    def draw_index(probabilities: Any, n: int, _rng: Any) -> Any:
        return fill(categories(tuple(np.asarray(probabilities, dtype=float).tolist())), n)

    source.units += [
        (integer_noise.draw_geometric, draw_geometric),
        (integer_noise.two_sided_geometric, two_sided_geometric),
        (integer_noise.discrete_gaussian, discrete_gaussian),
        (noise.draw_index, draw_index),
    ]


def _cut(ratio: float) -> int:
    most = math.ceil(math.log(TAIL) / math.log(ratio)) + 1
    if most > 100_000:
        raise Uncontrolled(f"integer noise has too many values, {most:.3g}")
    return most


def geometric_table(a: float) -> MassTable:
    """P[k] = (1 - 1/a) a^-k for k from 0 on.

    Parameters
    ----------
    a : float
        Base.
    """
    k = np.arange(_cut(1 / a))
    return MassTable(k, (1 - 1 / a) * a ** -k.astype(np.float64), whole=False)


def two_sided_table(a: float) -> MassTable:
    """P[k] = a^-|k| (a - 1) / (a + 1).

    Parameters
    ----------
    a : float
        Base.
    """
    most = _cut(1 / a)
    k = np.arange(-most, most + 1)
    return MassTable(k, (a - 1) / (a + 1) * a ** -np.abs(k).astype(np.float64), whole=False)


def gaussian_table(sigma: float) -> MassTable:
    """P[k] proportional to exp(-k^2 / (2 sigma^2)).

    Parameters
    ----------
    sigma : float
        Width.
    """
    most = math.ceil(sigma * 9) + 2
    if most > 100_000:
        raise Uncontrolled(f"integer noise has too many values, {most:.3g}")
    k = np.arange(-most, most + 1)
    weights = np.exp(-(k.astype(np.float64) ** 2) / (2 * sigma**2))
    return MassTable(k, weights / weights.sum(), whole=False)


def walk_claim(claim: Any, source: ControlledSource, seconds: float) -> HouseRow:
    """Walk the mechanism of a claim on its pairs.

    Parameters
    ----------
    claim : Claim
        A claim of privacy.
    source : ControlledSource
        Has replaced the sources of randomness.
    seconds : float
        Time for the claim.
    """
    draft = claim.draft
    end = time.monotonic() + seconds
    low, high, paths, agreed, reason = 0.0, 0.0, 0, "", ""
    for pair in draft.pairs[:MOST_PAIRS]:
        try:
            x, y = (
                enumerate_outputs(draft.mechanism, data, source, Budget(PATHS, end, SPARE / 4))
                for data in (pair.x, pair.y)
            )
        except Uncontrolled as signal:
            reason = signal.reason
            break
        paths += x.paths + y.paths
        if x.only_raises or y.only_raises:
            reason = "it only raises exceptions"
            break
        if max(x.lost, y.lost) > SPARE / 2:
            reason = f"probability {max(x.lost, y.lost):.2g} is left after {x.paths + y.paths:,} paths"
            break
        level = bound_level(x, y, draft.guarantee, SPARE)
        low, high = max(low, level.low), max(high, level.low, level.high)
        for data, walked in ((pair.x, x), (pair.y, y)):
            found = compare_law(draft.mechanism, data, walked)
            agreed = "differs" if "differs" in (found, agreed) else found or agreed
    if not reason and len(draft.pairs) > MOST_PAIRS:
        reason = f"{len(draft.pairs)} pairs"
    within = allow_rounding(draft.guarantee)
    verdict = "violation" if low > within else "holds" if not reason and high <= within else "inconclusive"
    if verdict == "inconclusive" and not reason:
        reason = "tails are cut, which only claims of epsilon and delta allow for"
    if verdict != "inconclusive":
        reason = ""
    return HouseRow(claim.id, str(draft.expected), verdict, low, high, paths, agreed, reason)


def compare_law(mechanism: Any, data: Any, walked: Outcomes) -> str:
    """Compare walked probabilities with a stated finite distribution; empty where none is stated.

    Parameters
    ----------
    mechanism : callable
        May have a method ``law``.
    data : dataset
        The dataset.
    walked : Outcomes
        What was walked.
    """
    state = getattr(mechanism, "law", None)
    if state is None:
        return ""
    try:
        law = state(data)
    except Exception:  # noqa: BLE001 - a distribution that is stated elsewhere only
        return ""
    if not isinstance(law, FiniteLaw):
        return ""
    stated: dict[Hashable, float] = {}
    for outcome, mass in zip(law.outcomes, law.probabilities.tolist(), strict=True):
        key = _loosen(freeze_output(outcome))
        stated[key] = stated.get(key, 0.0) + mass
    found: dict[Hashable, float] = {}
    for key, mass in walked.masses.items():
        found[_loosen(key)] = found.get(_loosen(key), 0.0) + mass
    gap = max(abs(stated.get(key, 0.0) - found.get(key, 0.0)) for key in stated | found)
    return "agrees" if gap <= WITHIN else "differs"


def _loosen(key: Hashable) -> Hashable:
    """A key that does not tell 1 from 1.0, True and numbers of numpy's other types."""
    if isinstance(key, tuple) and len(key) == 2 and key[0] in ("bool", "int", "float"):
        value = float.fromhex(key[1]) if key[0] == "float" else float(key[1])
        return "nan" if math.isnan(value) else value
    if isinstance(key, tuple) and len(key) == 2 and key[0] in _NUMPY_TYPES:
        return _loosen(key[1])
    return tuple(map(_loosen, key)) if isinstance(key, tuple) else key


def list_house_claims(only: str = "", path: str = "experiments") -> list[Any]:
    """Claims of privacy that are audited by draws.

    Parameters
    ----------
    only : str
        Text that the id has to hold.
    path : str
        File or folder that declares them.
    """
    claims = registry.load_claims((path,))
    return [
        claim
        for claim in claims
        if claim.draft.level in ("L1", "L2")
        and claim.draft.subject is None
        and isinstance(claim.draft.guarantee, Guarantee)
        and claim.draft.mechanism is not None
        and claim.draft.pairs
        and only in claim.id
    ]


def count_computed(path: str = "experiments") -> Counter[str]:
    """Number of claims of privacy whose level is computed from a stated distribution, by entry.

    Parameters
    ----------
    path : str
        File or folder that declares them.
    """
    claims = registry.load_claims((path,))
    return Counter(c.entry for c in claims if c.draft.level == "L0" and isinstance(c.draft.guarantee, Guarantee))


def walk_claims(ids: Sequence[str], seconds: float) -> list[HouseRow]:
    """Walk the mechanisms of claims.

    Parameters
    ----------
    ids : sequence of str
        The claims.
    seconds : float
        Time for each.
    """
    claims = {claim.id: claim for claim in list_house_claims()}
    source = ControlledSource()
    replace_samplers(source)
    with source.replacing():
        return [walk_claim(claims[one], source, seconds) for one in ids]


def tabulate_entries(rows: Sequence[HouseRow], computed: Mapping[str, int]) -> list[str]:
    """Lines of the table of what is proved, sampled, and computed, by entry of the catalogue.

    Parameters
    ----------
    rows : sequence of HouseRow
        What was found.
    computed : mapping of str to int
        See `count_computed`.
    """
    counts = Counter((row.id.partition("/L")[0], row.verdict) for row in rows)
    entries = sorted({entry for entry, _ in counts} | set(computed))
    lines = ["| entry | proved to hold | refuted | sampled only | computed |", "|---|---:|---:|---:|---:|"]
    for entry in entries:
        of = [counts[entry, verdict] for verdict in ("holds", "violation", "inconclusive")]
        lines.append("| " + " | ".join([entry, *(f"{n or ''}" for n in [*of, computed.get(entry, 0)])]) + " |")
    return lines


def write_document(rows: Sequence[HouseRow], seconds: float, computed: Mapping[str, int]) -> str:
    """Write the report.

    Parameters
    ----------
    rows : sequence of HouseRow
        What was found.
    seconds : float
        In all.
    computed : mapping of str to int
        See `count_computed`.
    """
    counts = Counter((row.expected, row.verdict) for row in rows)
    wrong = [row.id for row in rows if row.contradicts]
    laws = Counter(row.law for row in rows)
    lines = [
        "# Certificates of the house",
        "",
        f"All {len(rows):,} claims of privacy of the catalogue that are audited by draws, with their mechanisms walked "
        f"on up to {MOST_PAIRS} of their pairs instead. The samplers of integer noise are taken as their stated "
        "distributions. "
        + (f"Contradictions: {', '.join(wrong)}. " if wrong else "No walk contradicts the catalogue. ")
        + "Walked probabilities were compared with a stated finite distribution for "
        f"{laws['agrees'] + laws['differs']:,} claims, and agree to 1e-8 for {laws['agrees']:,}. "
        f"{seconds:.0f} s in all.",
        "",
        "| expected | claims | proved to hold | refuted | sampled only |",
        "|---|---|---|---|---|",
    ]
    for expected in sorted({row.expected for row in rows}):
        of = [counts[expected, verdict] for verdict in ("holds", "violation", "inconclusive")]
        lines.append(f"| {expected} | {sum(of):,} | {of[0]:,} | {of[1]:,} | {of[2]:,} |")
    lines += ["", "## Why the others are sampled only", "", "| reason | claims |", "|---|---|"]
    reasons = Counter(_kind_of_reason(row.reason) for row in rows if row.verdict == "inconclusive")
    lines += [f"| {reason} | {count:,} |" for reason, count in reasons.most_common()]
    lines += [
        "",
        "## By entry",
        "",
        "Claims of privacy of each entry: proved or refuted by walking the code, or sampled only; and, beside these, "
        "claims whose level is computed from a stated distribution. Conformity audits hold draws against that.",
        "",
        *tabulate_entries(rows, computed),
        "",
        "## Proved and refuted",
        "",
        "| claim | verdict | level | distribution | paths |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        if row.verdict != "inconclusive":
            level = row.low if row.verdict == "violation" else row.high
            lines.append(f"| {row.id} | {row.verdict} | {level:.6g} | {row.law or '-'} | {row.paths:,} |")
    return "\n".join([*lines, ""])


def _kind_of_reason(reason: str) -> str:
    kinds: Mapping[str, str] = {
        "is left after": "too many paths",
        "continuous": "continuous noise that is released or added up",
        "too many values": "a random number with too many values",
        "values are needed": "a random number with too many values",
        "values is needed": "a random number with too many values",
        "pairs": f"more than {MOST_PAIRS} pairs",
        "is not followed": "a source or a use of random numbers that is not followed",
        "cannot be followed": "a source or a use of random numbers that is not followed",
    }
    return next((kind for text, kind in kinds.items() if text in reason), reason)


def main() -> int:
    """Walk all claims, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house_certificates", description=__doc__)
    parser.add_argument("--only", default="", help="claims whose id holds this text")
    parser.add_argument("--seconds", type=float, default=4.0, help="time of a claim")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument(
        "--out", type=Path, default=Path("reports/house_certificates.md"), help="Markdown file to write"
    )
    options = parser.parse_args()
    claims = list_house_claims(options.only)
    if not claims:
        parser.error(f"no claim has {options.only!r} in its id")
    begun, rows = time.perf_counter(), []
    ids = [claim.id for claim in claims]
    parts = [ids[at : at + _PART] for at in range(0, len(ids), _PART)]
    parallel = Parallel(n_jobs=options.jobs, return_as="generator")
    for found in parallel(delayed(walk_claims)(part, options.seconds) for part in parts):
        for row in found:
            rows.append(row)
            mark = " CONTRADICTION" if row.contradicts else ""
            print(f"{row.id}: {row.verdict} {row.reason}{mark}", flush=True)
    page = write_document(rows, time.perf_counter() - begun, count_computed())
    options.out.write_text(page, encoding="utf-8")
    return 1 if any(row.contradicts for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
