"""Document 003, section 5.3 and Theorems 5.3.1 and 6.1.1: boxes of decryption keys, and who made them.

A demonstration of the reduction. Assumed is that AES-128 (or HMAC-SHA256, see ``traced_hmac``) is a pseudorandom
function, and that pirates cannot break it; that a mechanism needs as much time as breaking it, which is what the
theorems say, is not tested. What is: an accurate box is traced to its keys, nobody outside is framed by boxes that look
for the scheme's mistakes, what is encrypted for a missing user makes no difference to them, and a private box is not
traced beyond its level; but then it does not decode.

In the document's alternative 2, ``a_1 .. a_d`` should run over the ciphertexts, and ``Dec(c_i)`` should be of c_j; the
introduction of lecture 5 uses d both for the number of queries and for the length of keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditor.audits.adversaries.fingerprints import BonehShaw, smallest_block
from auditor.claims import Draft, Source, accuracy, entry, privacy
from auditor.datasets import Pair
from auditor.privacy.guarantees import ApproxDP, PureDP
from experiments.common import REPLACE
from experiments.document_003_bellairs_lectures.tracing import accusation_level
from mechanisms.base.mechanism import FloatArray, IntArray
from mechanisms.lower_bounds.attribute_means import AttributeMeans, CalibratedMeans, LaplaceMeans
from mechanisms.lower_bounds.traitor_tracing import (
    BitEncryption,
    BoxTraced,
    EqualCiphertexts,
    FramingBox,
    HMACPad,
    KeyTracing,
    MeansBox,
    MissingComponents,
    PirateBox,
    RepeatedNonces,
    TraitorTracing,
)
from mechanisms.lower_bounds.traitor_tracing_mutants import MUTANTS

_ROWS = 6
#: Probability with which the code may err; arbitrary, few draws decide it.
_XI = 0.1
_CODE = BonehShaw(_ROWS + 1, smallest_block(_ROWS + 1, _XI))
#: A code that errs, where what is asked is whether the outputs on neighbours differ; arbitrary, and cheap to encrypt.
_SHORT = BonehShaw(_ROWS + 1, 21)
#: What the theorems say that no fast and accurate mechanism achieves.
_CLAIM = ApproxDP(1.0, 1 / (10 * _ROWS))
#: Who is missing where a box frames somebody: neither the first nor the last user, whom words tell apart.
_MISSING = 3
#: Advantage over guessing that is left to whoever cannot break the base scheme; arbitrary, far below what draws show.
_NEGLIGIBLE = 2.0**-100


def _all_users_but(user: int, users: int = _ROWS + 1) -> IntArray:
    """Everybody but one user."""
    return np.setdiff1d(np.arange(1, users + 1), [user])


@dataclass(frozen=True)
class _IsOutsiderTraced:
    """1 where nobody of the coalition is traced: somebody else or, with ``nobody``, no one at all."""

    coalition: tuple[int, ...]
    nobody: bool

    def __call__(self, traced: Any) -> FloatArray:
        found = np.asarray(traced)
        return np.asarray(~np.isin(found, self.coalition) & (self.nobody | (found > 0)), dtype=np.float64)


def _majority(means: FloatArray) -> FloatArray:
    """Probability of a one where the answer is the exact mean."""
    return np.asarray(means > 0.5, dtype=np.float64)


def _claim_member_traced(boxed: BoxTraced, coalition: IntArray, *, nobody: bool = True, **options: Any) -> Draft:
    """Claim that a member of the coalition is traced, with probability 1 - xi; without ``nobody``, if somebody is."""
    return accuracy(
        boxed,
        coalition,
        _IsOutsiderTraced(tuple(coalition.tolist()), nobody),
        at_most=0,
        beta=_XI,
        derived=True,
        **{"draws": {"smoke": 700, "standard": 4_000}, "independence": False, **options},
    )


@entry(
    "003/traitor_tracing_type2",
    title="Tracing a box of decryption keys",
    source=Source("003", "section 5.3, Theorems 5.3.1 and 6.1.1"),
)
def traitor_tracing_type2() -> Iterator[Draft]:
    """The rows of n of n + 1 users, numbers and keys, are in a box that decodes ciphertexts by noisy means.

    In the neighbour the row of a user is overwritten by that of the one who is missing. What the box answers to the
    ciphertexts of the tracing are counting queries of those rows, and the event is that the user is accused.
    """
    tracing = TraitorTracing(_CODE)
    yield from _levels(tracing, TraitorTracing(_SHORT))
    yield from _missing_components(TraitorTracing(_SHORT))
    yield from _boxes(tracing)
    yield from _mutants(tracing)


def _levels(tracing: TraitorTracing, short: TraitorTracing) -> Iterator[Draft]:
    """What an accusation tells of the mechanism in a box; exact levels are those of the code, as boxes decode."""
    delta = _CLAIM.delta
    exact = KeyTracing(AttributeMeans(), tracing)
    draft = privacy(
        exact,
        _CLAIM,
        exact.pair(),
        case="exact_means",
        relation=REPLACE,
        expected="violation",
        exact_level=accusation_level(_CODE, _majority, delta),
        draws={"smoke": 3_000, "standard": 3_000},
        note="a box that always decodes",
    )
    yield replace(draft, independence=False)
    private = KeyTracing(CalibratedMeans(_CLAIM.epsilon), short, difference=True)
    draft = privacy(
        private,
        _CLAIM,
        private.pair(),
        relation=REPLACE,
        draws={"smoke": 24_000, "standard": 24_000},
        note="Gaussian noise for (1, 1/(10n)); the means of his two blocks are given out, too",
    )
    yield replace(draft, independence=False)
    pure = KeyTracing(LaplaceMeans(1.0), short)
    draft = privacy(
        pure,
        PureDP(1.0),
        pure.pair(),
        case="laplace",
        relation=REPLACE,
        draws={"smoke": 24_000, "standard": 24_000},
    )
    yield replace(draft, independence=False)


def _missing_components(tracing: TraitorTracing) -> Iterator[Draft]:
    """Boxes that look at what is encrypted for somebody else."""
    pair = Pair(np.array([1]), np.array([0]), "the missing user's codeword against fair coins, encrypted for him")
    boxes: dict[str, PirateBox] = {"nonces": RepeatedNonces(), "equality": EqualCiphertexts()}
    for name, box in boxes.items():
        draft = privacy(
            MissingComponents(tracing, box, _MISSING),
            ApproxDP(0.0, _NEGLIGIBLE),
            pair,
            case=f"missing_components_{name}",
            relation=REPLACE,
            draws={"smoke": 1_200, "standard": 6_000},
            detect=3.5,  # twice the level, 0, is out of reach of any number of draws
            note="assumed: nobody breaks the base scheme",
        )
        yield replace(draft, independence=False)


def _boxes(tracing: TraitorTracing) -> Iterator[Draft]:
    """Boxes that decode are traced to a member, and no box of a private mechanism decodes."""
    means = MeansBox(AttributeMeans())
    yield _claim_member_traced(BoxTraced(tracing, means), _all_users_but(_MISSING), case="traced", independence=True)
    three = TraitorTracing(BonehShaw(3, smallest_block(3, _XI)), BitEncryption(HMACPad()))
    yield _claim_member_traced(
        BoxTraced(three, means),
        _all_users_but(2, 3),
        case="traced_hmac",
        draws={"smoke": 300, "standard": 1_000},
        note="the base scheme by HMAC-SHA256",
    )
    # What rows decrypt is a table of zeros and ones, and noise does not depend on it.
    nobody = np.zeros((_ROWS, _CODE.length), dtype=np.int64)
    for name, target in (("gaussian", CalibratedMeans(_CLAIM.epsilon)), ("laplace", LaplaceMeans(1.0))):
        yield accuracy(
            target,
            nobody,
            _within_one_half,
            at_most=0,
            beta=0.05,
            case=f"private_box_errs_{name}",
            draws={"smoke": 600, "standard": 5_000},
            independence=False,
            derived=True,
            note="an answer is wrong by 1/2 or more, with probability 0.95",
        )


def _within_one_half(answers: Any) -> FloatArray:
    """1 where all answers are within 1/2 of a mean of 0."""
    return np.asarray(np.abs(np.asarray(answers)).max(axis=1) < 0.5, dtype=np.float64)


def _mutants(tracing: TraitorTracing) -> Iterator[Draft]:
    """Each mistake beside the scheme without it, on the same box."""
    boxes: dict[str, tuple[FramingBox | MeansBox, int, bool]] = {
        "randomness_reused": (RepeatedNonces(), _MISSING, False),
        "deterministic_base_scheme": (EqualCiphertexts(), _MISSING, False),
        "components_in_fixed_order": (FramingBox(), _MISSING, False),
        "row_without_index": (MeansBox(AttributeMeans()), 1, True),
    }
    for name, (box, missing, nobody) in boxes.items():
        base, coalition = BoxTraced(tracing, box), _all_users_but(missing)
        broken: Any = MUTANTS[name].build(base)
        yield _claim_member_traced(base, coalition, nobody=nobody, case=f"reference_{name}", controls={name: broken})
        yield _claim_member_traced(
            broken,
            coalition,
            nobody=nobody,
            case=name,
            draws={"smoke": 40, "standard": 200},
            expected="deviation",
            is_mutant=True,
            note=MUTANTS[name].note,
        )
