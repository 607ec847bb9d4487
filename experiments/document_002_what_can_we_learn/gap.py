"""Document 002, section 5.2: how many examples the learning of parities takes, locally and centrally."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.audits.accuracy import Exactly, Figure, Setting, Smallest
from auditor.audits.inequality import Row
from auditor.claims import Draft, Source, accuracy, entry, inequality, scaling
from mechanisms.learning.amplified_fresh import FreshAmplified, TrueErrorOfHypothesis, UniformBits, uniform_success
from mechanisms.learning.amplified_parity import block_rows, corrected
from mechanisms.learning.amplified_selection import NoisyErrorCounts
from mechanisms.learning.boosting import TrainTestSplit
from mechanisms.local_model.parity_gap import BundledParity, LocalParity, bundled_users, local_users

FloatArray = NDArray[np.float64]

#: Level and probability of failure of all learners. Error below 1/2 is no error: a wrong parity has error 1/2 on
#: uniform examples.
_EPSILON, _BETA, _ALPHA = 1.0, 0.05, 0.49
_BITS, _FEW_BITS = (4, 6, 8, 10, 12), (2, 4, 6, 8)
#: For the exact sample size of A, which costs nothing: from where a constant number of examples no longer counts.
_MANY_BITS = (16, 32, 64, 128)
#: Success of A in Lemma 4.1.
_GAMMA = 0.25

#: Ranges in which the least sample sizes are: at the lower end every learner fails with all numbers of bits here, at
#: the upper end none does.
_LOCAL_RANGE, _BUNDLED_RANGE, _CENTRAL_RANGE = (300, 4_000_000), (100, 40_000_000), (60, 6_000)
_DRAWS = {"smoke": 25_000, "standard": 150_000}
#: A draw of the bundled protocol takes 2^d answers.
_FEWER = {"smoke": 16_000, "standard": 60_000}


@dataclass(frozen=True)
class TargetNotAboveOthers:
    """Failure of a learner that takes the largest answer: 1 if the target's is not above all others, else 0."""

    def __call__(self, outputs: Any) -> FloatArray:
        """Errors of n margins, shape (n,)."""
        return np.asarray(np.asarray(outputs) <= 0, dtype=np.float64)


def _target(d: int) -> NDArray[np.uint8]:
    """Ones and zeros in turn. By symmetry all targets are alike."""
    return np.asarray(1 - np.arange(d) % 2, dtype=np.uint8)


def _local_setting(d: int, users: int) -> Setting:
    """Brute force with so many users in all."""
    return Setting(LocalParity(d, _EPSILON, max(1, users // 2**d)), _target(d), TargetNotAboveOthers(), 0.5)


def _bundled_setting(d: int, users: int) -> Setting:
    return Setting(BundledParity(d, _EPSILON, users), _target(d), TargetNotAboveOthers(), 0.5)


def _split(d: int, samples: int) -> TrainTestSplit:
    """So many examples, divided among blocks and tests as the theorem divides its own."""
    full = corrected(d, _EPSILON, _ALPHA, _BETA)
    tests = max(1, round(full.tests * samples / full.needed))
    return TrainTestSplit(full.rounds, max(1, (samples - tests) // full.rounds), tests)


def _central_setting(d: int, samples: int) -> Setting:
    """A* with so many examples."""
    split, uniform = _split(d, samples), UniformBits(d)
    learner = FreshAmplified(_EPSILON, split, NoisyErrorCounts(_EPSILON / split.rounds), uniform)
    target = int(_target(d).astype(np.int64) @ (1 << np.arange(d, dtype=np.int64)))
    return Setting(learner, _target(d), TrueErrorOfHypothesis(uniform, target), _ALPHA)


def _base_samples(d: int) -> int:
    """Least examples with which A outputs the target with probability 1/4, exactly."""
    low, high = 1, block_rows(d, _EPSILON, _ALPHA)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if uniform_success(_EPSILON, middle, d) >= _GAMMA else (middle, high)
    return high


def _figure(curve: str, at: Callable[[float], float] = float) -> Figure:
    return Figure("Learning a parity of d bits", curve, "bits d", "least sample size", at, logarithmic=False)


def _many_more() -> list[Row]:
    """Theorem sample sizes: the local one is beyond the central one from four bits on, by a factor that doubles."""
    return [
        (f"d = {d}", float(corrected(d, _EPSILON, _ALPHA, _BETA).needed), float(local_users(d, _EPSILON, _BETA)))
        for d in _BITS
    ]


@entry(
    "002/local_vs_central_parity_gap",
    title="Examples for parity, locally and centrally",
    source=Source("002", "section 5.2, Corollary 5.15"),
)
def gap() -> Iterator[Draft]:
    """Brute force over all parities by local users, and the central learner A*, on uniform examples, at eps = 1.

    All find the target with probability 0.95. Locally each of 2^d parities is asked of users of its own, which takes
    about 2^d users up to a factor d, or all of the same users, which takes 4^d; centrally d examples are enough, up to
    a constant. This illustrates the corollary: that no local learner does with few examples is a statement about all
    of them, which no run can show.

    Nothing is drawn but what decides: the largest of the answers about wrong parities by its distribution, the number
    of users with each example, the rows of A's random subset. Local protocols are run up to 12 bits, bundled ones up to
    8.
    """
    for d in (4, 8):
        users = local_users(d, _EPSILON, _BETA)
        setting = _local_setting(d, users)
        yield accuracy(
            setting.mechanism,
            setting.data,
            setting.error,
            at_most=setting.at_most,
            beta=_BETA,
            case=f"local_{d}_bits",
            derived=True,
            parameters={"d": d, "n": users, "tau": 0.49},
            note="2^d ln(4 2^d / beta) (64 / (eps^2 tau^2)) (1 + eps tau / 8) users find the target",
        )
    bundled = _bundled_setting(4, bundled_users(4, _EPSILON, _BETA))
    yield accuracy(
        bundled.mechanism,
        bundled.data,
        bundled.error,
        at_most=bundled.at_most,
        beta=_BETA,
        case="bundled_4_bits",
        derived=True,
        parameters={"d": 4, "n": bundled_users(4, _EPSILON, _BETA), "tau": 0.49},
        note="each user answers all 2^d queries at eps / 2^d",
    )
    central = _central_setting(12, corrected(12, _EPSILON, _ALPHA, _BETA).needed)
    yield accuracy(
        central.mechanism,
        central.data,
        central.error,
        at_most=central.at_most,
        beta=_BETA,
        case="central_12_bits",
        draws={"standard": 40_000},
        derived=True,
        parameters={"d": 12, "n": corrected(12, _EPSILON, _ALPHA, _BETA).needed, "alpha": _ALPHA},
        note="A* with its corrected parameters",
    )
    yield inequality(
        _many_more,
        statement="the theorem's sample size for A* is below that of local brute force",
        level="L4",
        case="theorem_sizes",
        derived=True,
    )
    yield from _curves()


def _curves() -> Iterator[Draft]:
    """The figure: 2^d and 4^d users against d examples; and A alone, exactly, in d."""
    yield scaling(
        lambda size: lambda users: _local_setting(round(math.log2(size)), users),
        parameter="2^d",
        at=[2.0**d for d in _BITS],
        exponent=1.0,
        criterion=False,
        log_factor=lambda size: math.log(4.0 * size / _BETA),
        measure=Smallest(_BETA, *_LOCAL_RANGE),
        curve=lambda size: local_users(round(math.log2(size)), _EPSILON, _BETA),
        figure=_figure("local: users of its own for each of 2^d queries", math.log2),
        case="local_samples",
        draws=_DRAWS,
        derived=True,
        note="ln n grows by ln 2 a bit",
    )
    yield scaling(
        lambda size: lambda users: _bundled_setting(round(math.log2(size)), users),
        parameter="2^d",
        at=[2.0**d for d in _FEW_BITS],
        exponent=2.0,
        criterion=False,
        log_factor=lambda size: math.log(4.0 * size / _BETA),
        measure=Smallest(_BETA, *_BUNDLED_RANGE),
        curve=lambda size: bundled_users(round(math.log2(size)), _EPSILON, _BETA),
        figure=_figure("local: all 2^d queries to every user", math.log2),
        case="bundled_samples",
        draws=_FEWER,
        derived=True,
    )
    yield scaling(
        lambda d: lambda samples: _central_setting(int(d), samples),
        parameter="d",
        at=_BITS,
        exponent=1.0,
        criterion=False,
        measure=Smallest(_BETA, *_CENTRAL_RANGE),
        curve=lambda d: corrected(int(d), _EPSILON, _ALPHA, _BETA).needed,
        figure=_figure("central: A*"),
        case="central_samples",
        draws=_DRAWS,
        derived=True,
        note="with the corrected parameters, of which the part for tests does not depend on d",
    )
    yield scaling(
        lambda d: float(_base_samples(int(d))),
        parameter="d",
        at=_MANY_BITS,
        exponent=1.0,
        others=(0.5, 2.0),
        both=True,
        measure=Exactly("least sample size of A for success 1/4"),
        curve=lambda d: block_rows(int(d), _EPSILON, _ALPHA),
        case="base_learner_samples",
        note="Lemma 4.1 on uniform examples; about 4 d / eps",
    )
