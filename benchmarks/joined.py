"""Plant defects that only joint values of several places show, and count how often and how soon they are found.

Every place of an output has the same distribution under both datasets. Each kind is a family with one parameter, the
probability of a joint event: at the lower one the mechanism is exactly at its claim, without any margin, and is not to
be flagged; at the higher one it is at about twice the claim. Event learners were made with seeds below 1,000; what is
published has others.

Run ``python -m benchmarks.joined`` from the repository's root.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats

from auditor import audit
from auditor.datasets import Pair
from auditor.privacy.guarantees import PureDP
from auditor.results import Verdict
from benchmarks.options import parser_of

Bits: TypeAlias = NDArray[np.bool_]
Joint: TypeAlias = Callable[[Bits, np.random.Generator], Any]
"""Outputs in whose joint event each draw lies, or does not, as the first argument says."""

#: The claim, and the pair.
CLAIM, PAIR = PureDP(1.0), Pair(np.array([0]), np.array([1]), "0 against 1")
#: Draws of an audit, both sides together, its level, that of the audits of mechanisms at their claim, and the least
#: part of the defects that is to be found.
DRAWS, ALPHA, NULL_ALPHA, FOUND = 20_000, 0.01, 0.05, 0.95


@dataclass(frozen=True)
class JointKind:
    """A kind of joint event.

    Parameters
    ----------
    name : str
        For tables; it keys the draws.
    draw : callable
        Draws outputs inside and outside of the event; all places are as likely either way.
    base : float or None
        Probability of the event under the second dataset; None: that of its complement under the first.
    broken : float
        Probability of the event under the first dataset, in the defect.
    """

    name: str
    draw: Joint
    base: float | None
    broken: float

    def level(self, p: float) -> float:
        """Exact level at a probability of the event."""
        q = 1 - p if self.base is None else self.base
        return max(abs(math.log(p / q)), abs(math.log((1 - p) / (1 - q))))

    @property
    def allowed(self) -> float:
        """Highest probability that keeps the claim."""
        if self.base is None:
            return math.e / (1 + math.e)
        return min(self.base * math.e, 1 - (1 - self.base) / math.e)

    def mechanism(self, broken: bool) -> JointMechanism:
        """The defect, or the mechanism that keeps its claim without any margin."""
        p = self.broken if broken else self.allowed
        return JointMechanism(self, p, 1 - p if self.base is None else self.base)


@dataclass(frozen=True)
class JointMechanism:
    """A mechanism whose joint event is more probable on the first dataset."""

    kind: JointKind
    first: float
    second: float

    def __call__(self, data: Any, n: int, rng: np.random.Generator) -> Any:
        """``n`` outputs."""
        return self.kind.draw(rng.random(n) < (self.second if data[0] else self.first), rng)


def _hashed_report(hits: Bits, rng: np.random.Generator) -> list[tuple[int, list[int]]]:
    """A hash of 12 and eight bits; of hash 3 two bits tell the value."""
    chosen, bits = rng.integers(0, 12, len(hits)), rng.integers(0, 2, (len(hits), 8))
    bits[:, 5] = np.where(chosen == 3, bits[:, 2] ^ ~hits, bits[:, 5])
    return list(zip(chosen.tolist(), bits.tolist(), strict=True))


def _clamped_count(hits: Bits, rng: np.random.Generator) -> list[tuple[int, int]]:
    """A count, and a sum that is clamped to 100, more often where the count is neither small nor large."""
    count, total = rng.integers(0, 40, len(hits)), rng.integers(0, 100, len(hits))
    return list(zip(count.tolist(), np.where(hits == (abs(count - 19.5) < 10), 100, total).tolist(), strict=True))


#: A function of two numbers up to 15 with eight values, each as likely whatever one of the numbers is.
_SHUFFLED = np.random.default_rng(1).permutation(16)


def _check_digit(hits: Bits, rng: np.random.Generator) -> list[tuple[int, int, str]]:
    """Two numbers and a digest, which is that of the numbers or another one."""
    a, b = rng.integers(0, 16, (2, len(hits)))
    own = _SHUFFLED[(a + _SHUFFLED[b]) % 16] // 2
    digest = np.where(hits, own, (own + rng.integers(1, 8, len(hits))) % 8)
    return [(i, j, f"d{k:x}") for i, j, k in zip(a.tolist(), b.tolist(), digest.tolist(), strict=True)]


def _long_check(hits: Bits, rng: np.random.Generator) -> NDArray[np.int64]:
    """Two numbers and a third, which is a function of them or not, each with 32 values."""
    a, b, other = rng.integers(0, 32, (3, len(hits)))
    own = (7 * a + 11 * b) % 32
    return np.column_stack([a, b, np.where(hits, own, np.where(other == own, (own + 1) % 32, other))])


def _two_bits(hits: Bits, rng: np.random.Generator) -> NDArray[np.int64]:
    """Twelve fair bits, of which two are equal or not."""
    bits = rng.integers(0, 2, (len(hits), 12))
    bits[:, 9] = bits[:, 4] ^ hits
    return bits


def _category_with_count(hits: Bits, rng: np.random.Generator) -> list[dict[str, Any]]:
    """A category and a count, which is odd for two of the categories and even for the others, or the reverse."""
    category, half = rng.integers(0, 4, len(hits)), rng.integers(0, 15, len(hits))
    odd = (category < 2) == hits
    return [
        {"category": f"region {k}", "count": c}
        for k, c in zip(category.tolist(), (2 * half + odd).tolist(), strict=True)
    ]


def _equal_digests(hits: Bits, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Two digests of a thousand, equal or not."""
    a, step = rng.integers(0, 1_000, len(hits)), rng.integers(1, 1_000, len(hits))
    return [
        (f"{i:03x}", f"{j:03x}")
        for i, j in zip(a.tolist(), np.where(hits, a, (a + step) % 1_000).tolist(), strict=True)
    ]


KINDS: tuple[JointKind, ...] = (
    JointKind("two bits of a report, for one hash of 12", _hashed_report, None, 0.9),
    JointKind("a count, and a bound that is reached", _clamped_count, None, 0.87),
    JointKind("a digest of two numbers", _check_digit, 0.125, 0.88),
    JointKind("a function of two numbers, 32 values each", _long_check, 0.1, 0.6),
    JointKind("exclusive or of two bits of 12", _two_bits, None, 0.87),
    JointKind("a category, and the parity of a count", _category_with_count, 0.5, 0.93),
    JointKind("two digests that are equal", _equal_digests, 0.05, 0.35),
)


def audit_kind(kind: JointKind, broken: bool, seed: int) -> tuple[bool, int, str]:
    """Whether one audit flags the mechanism, after how many draws, and the event."""
    found = audit(
        kind.mechanism(broken), CLAIM, PAIR, draws=DRAWS, alpha=ALPHA if broken else NULL_ALPHA, seed=seed, id=kind.name
    )
    return found.verdict == Verdict.VIOLATION, found.draws, str(found.event)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a kind is found too seldom, or a mechanism at its claim flagged too often."""
    parser = parser_of("joined", __doc__, "audits", 100, first_seed=10_000)
    options = parser.parse_args(arguments)
    chosen = [kind for kind in KINDS if options.only in kind.name]
    if not chosen or options.audits < 1:
        parser.error(f"nothing to audit: --audits {options.audits} --only {options.only!r}")
    seeds = range(options.first_seed, options.first_seed + options.audits)
    parallel = Parallel(n_jobs=options.jobs)
    most = int(stats.binom.isf(0.001, options.audits, NULL_ALPHA))
    rows, good = [], True
    for kind in chosen:
        found = parallel(delayed(audit_kind)(kind, True, seed) for seed in seeds)
        null = parallel(delayed(audit_kind)(kind, False, seed) for seed in seeds)
        flagged, alarms = sum(one[0] for one in found), sum(one[0] for one in null)
        needed = [one[1] if one[0] else math.inf for one in found]
        fine = flagged >= FOUND * options.audits and alarms <= most
        good &= fine
        middle, late = (np.quantile(needed, part, method="higher") for part in (0.5, 0.95))
        rows.append(
            f"| {kind.name} | {kind.level(kind.broken):.3g} | {flagged} of {options.audits} | {middle:,.0f} "
            f"| {late:,.0f} | {alarms} of {options.audits} | {'yes' if fine else '**no**'} |"
        )
        print(rows[-1], flush=True)
    lines = [
        "# Defects that several places of an output show together",
        "",
        f"Each row has {options.audits} audits of a mechanism of which every place by itself has the same distribution "
        f"under both datasets, while places together do not. The claim is {CLAIM}, the level of the defect is exact, "
        f"and audits have {DRAWS:,} draws, both sides together, at alpha = {ALPHA}. Draws are those of the verdict, in "
        "the middle and in 95 of 100 audits. The same mechanism at exactly the claimed level, without margin, is "
        f"audited as often at alpha = {NULL_ALPHA}; in a row as it should be at least {FOUND:.0%} of the defects are "
        f"found, and at most {most} of {options.audits} alarms are false, more than which have a probability below "
        "0.001.",
        "",
        "| what differs | level | found | draws, median | draws, 95 of 100 | false alarms | as it should be |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
        *rows,
        "",
        "Made by `python -m benchmarks.joined`.",
        "",
    ]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text("\n".join(lines), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
