"""Document 003, Definition 4.1.1: how much of the data any attack may reconstruct from what is private."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from auditor.audits.accuracy import Line, PhaseDiagram, Setting
from auditor.audits.adversaries import Adversary, Game
from auditor.audits.adversaries.bounds import bound_guessing, bound_reconstruction
from auditor.audits.adversaries.exhaustive import Exhaustive
from auditor.audits.adversaries.reconstruction import Decoding, Reconstruction
from auditor.claims import Draft, Source, accuracy, adversary, entry, expectation, phases
from auditor.privacy.guarantees import ApproxDP, Guarantee, PureDP
from experiments.document_003_bellairs_lectures.reconstruction import itself, sharp_bound, wrong_part
from mechanisms.additive_noise.column_counts import ConstantCounts, GaussianCounts, LaplaceCounts, LargestNormCounts
from mechanisms.base.mechanism import FloatArray, Mechanism
from mechanisms.lower_bounds.noisy_counts import UniformCounts

#: The definition's own level: (1, 0.1)-DP is never blatantly non-private.
_PURE, _APPROXIMATE = PureDP(1.0), ApproxDP(1.0, 0.1)

#: Attacks and the number of columns that they ask for; small, because each is tried on every mechanism.
_ATTACKS: dict[str, tuple[Adversary, int]] = {
    "linear_programme": (Reconstruction(48, 192), 192),
    "signs": (Decoding(32, 96), 192),
    "all_subsets": (Exhaustive(8), 256),
}


def mechanisms(columns: int) -> Iterator[tuple[str, Mechanism, Guarantee, float]]:
    """Name, mechanism, claim and exact level of what is attacked."""
    yield "laplace", LaplaceCounts(columns, 1.0), _PURE, 1.0
    yield "largest_norm", LargestNormCounts(columns, 1.0), _PURE, 1.0
    yield "gaussian", GaussianCounts(columns, 1.0, 0.1), _APPROXIMATE, 1.0
    yield "constant", ConstantCounts(columns, 4.0), _PURE, 0.0


@entry(
    "003/blatant_nonprivacy_meter",
    title="What fraction an attacker reconstructs",
    source=Source("003", "Definition 4.1.1"),
)
def meter() -> Iterator[Draft]:
    """Every attack of section 4.1 against every mechanism that answers counts.

    A guess of a uniform bit is right with probability at most (e^eps + delta) / (1 + e^eps), so that under (1, 0.1) at
    least 0.242 of the bits are wrong on average: 1/100 is out of reach. A reconstruction that is all or nothing is
    bounded by p (1 - c) <= e^eps (c + 1/n) + delta.
    """
    for attack, (played, columns) in _ATTACKS.items():
        for name, mechanism, guarantee, level in mechanisms(columns):
            # 2,880 bits decide; against (1, 0.1) the bets are on games, of which few bits make more unequal ones.
            few = 2_880 // played.bits if guarantee is _PURE else 9_600 // played.bits
            draws = {"smoke": few, "standard": max(few, 500)}
            yield adversary(mechanism, guarantee, played, case=f"{name}__{attack}", exact_level=level, draws=draws)
        too_little = UniformCounts(0.1 * math.sqrt(played.bits))
        yield adversary(
            too_little, _PURE, played, case=f"too_little_noise__{attack}", expected="violation", exact_level=math.inf
        )
    yield from _bounds()
    yield phases(
        _cell,
        DIAGRAM,
        case="noise_against_queries",
        draws={"smoke": 17 * _CELLS, "standard": 60 * _CELLS, "full": 500 * _CELLS},
        derived=True,
        note="Laplace noise: its scale over the root of the number of bits; 32 bits",
    )


def _bounds() -> Iterator[Draft]:
    """The same statements as theorems about the part that is wrong."""
    played, columns = _ATTACKS["linear_programme"]
    game = Game(GaussianCounts(columns, 1.0, 0.1), played)
    holds = expectation(
        game,
        None,
        itself,
        at_most=bound_guessing(_APPROXIMATE, 1.0),
        case="at_least_a_quarter_wrong",
        draws={"smoke": 300, "standard": 1_000},
        note="the part of the bits that is right is at most 0.758 on average",
    )
    yield replace(holds, independence=False)  # which the claims at L1 test
    n, wrong = played.bits, 4
    yield accuracy(
        game,
        None,
        FewBitsWrong(n, wrong),
        at_most=0.5,
        beta=bound_reconstruction(_APPROXIMATE, 1.0, n, wrong),
        case="all_or_nothing",
        draws={"smoke": 300, "standard": 1_000},
        independence=False,
        parameters={"n": n, "wrong": wrong},
        note="an error is a reconstruction with at most 4 of 48 bits wrong",
    )


@dataclass(frozen=True)
class FewBitsWrong:
    """1 where so few of the bits are wrong, else 0: what happens rarely."""

    bits: int
    wrong: int

    def __call__(self, scores: FloatArray) -> FloatArray:
        """From parts of the bits that are right, shape (n,)."""
        return np.asarray(np.rint(wrong_part(scores) * self.bits) <= self.wrong, dtype=np.float64)


# ---------------------------------------------------------------------------------- phase diagram

#: Secret bits of the diagram: the attack is a linear programme in each of some hundred games.
_BITS = 32
_RATIOS = (1.0, 2.0, 4.0, 8.0, 16.0)
_SCALES = (0.002, 0.01, 0.05, 0.2, 0.8, 3.2, 12.8, 51.2, 204.8)
_CELLS = len(_RATIOS) * len(_SCALES)
#: What is stated of a cell: success in nearly every game, or in hardly any.
_PROMISED, _EXCLUDED = 0.9, 0.1


@cache
def tolerated(ratio: float) -> float:
    """Largest scale over sqrt(n) at which Claim 4.1.8 promises success with probability 0.9, for k = ratio n.

    Every candidate that is consistent with answers within E has less than n/100 wrong except with the probability that
    `sharp_bound` sums, at beta = 2 E / sqrt(n); the largest of k Laplace variables is within E with probability
    1 - k exp(-E / scale). Each is given 0.05.

    Candidates of the claim are vectors of zeros and ones, and the linear programme has all of [0, 1]^n. But E is 1/2
    here for every ratio, and answers are whole numbers: within it they are exact. Then the programme has no other
    solution where the queries are of full rank: for that rank modulo 2 is enough, which they lack with probability
    below 2^(n - k). So it is promised of the programme from k = 2n on (`promised`). At k = n this says nothing.
    """
    k = round(ratio * _BITS)
    fits = [e for e in np.arange(0.5, 6.0, 0.5) if sharp_bound(_BITS, k, 2 * float(e)) <= math.log(0.05)]
    return float(max(fits, default=0.0)) / math.log(k / 0.05) / math.sqrt(_BITS)


def promised(ratio: float, scale: float) -> float | None:
    """Probability with which the linear programme is to succeed; None where nothing is derived, see `tolerated`."""
    return _PROMISED if ratio >= 2.0 and scale <= tolerated(ratio) else None


def protecting(ratio: float) -> float:
    """Smallest scale over sqrt(n) at which epsilon = k / scale excludes success with probability above 0.1."""
    epsilon = math.log(_EXCLUDED * _BITS)  # e^epsilon / n = 0.1
    return ratio * _BITS / epsilon / math.sqrt(_BITS)


def _cell(ratio: float, scale: float) -> Setting:
    columns = round(ratio * _BITS)
    target = LaplaceCounts(columns, columns / (scale * math.sqrt(_BITS)))
    return Setting(Game(target, Reconstruction(_BITS, columns)), None, wrong_part, at_most=0.0)


DIAGRAM = PhaseDiagram(
    across="queries for each bit",
    up="scale of the noise over sqrt(n)",
    xs=_RATIOS,
    ys=_SCALES,
    promised=promised,
    excluded=lambda ratio, scale: _EXCLUDED if scale >= protecting(ratio) else None,
    lines=(
        Line("any consistent candidate succeeds below (Claim 4.1.8)", tolerated),
        Line("excluded above (epsilon-DP)", protecting),
    ),
    success="reconstruction without an error",
)
