"""Document 003, Lemma 6.3.2: datasets of signed rows, which are hard to sanitize.

A demonstration of a dichotomy. Assumed is that Ed25519 cannot be forged by what is run here; that nothing that is fast
can forge it, which is what the lemma builds on, is not tested. What is: rows of synthetic data that verify are copies,
which break privacy where they are frequent, and synthesisers that are private have none, so that their answer to the
one query is 0, not 1.

In the document's Theorem 6.3.1, which builds on it, ``d^{1-alpha(1)}`` should be ``d^{1-o(1)}``; "at least" and "more
than" (1 - alpha) m clauses agree where accuracy is strictly better than alpha.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from auditor.audits.accuracy import Constant
from auditor.claims import Draft, Source, accuracy, broken, entry, privacy
from auditor.datasets import Pair
from auditor.privacy.guarantees import ApproxDP
from experiments.common import REPLACE
from mechanisms.base.mechanism import FloatArray
from mechanisms.lower_bounds.signed_rows import (
    ITSELF,
    MUTANTS,
    CopyRarely,
    DirectorySynthesiser,
    MarginalSynthesiser,
    RowAppearance,
    RowSynthesiser,
    SignedRows,
    SmallUniverse,
    SubsamplingSynthesiser,
    VerifiedRows,
)

_ROWS = 6
_DELTA = 1 / (10 * _ROWS)
#: What Theorem 6.3.1 says of a level that no fast and accurate synthesiser has.
_CLAIM = ApproxDP(1.0, _DELTA)
#: Probability that one row has the value of a fresh one.
_GUESS = 2.0**-128
_PAIR = Pair(np.array([1]), np.array([0]), "a signed row against a fresh one in its place")
#: For what always or never happens.
_FEW = {"smoke": 60, "standard": 600}
#: Failure rate that they are to find where none is allowed but for a guess of 128 bits.
_FOUND = 0.1


def _is_exact_match(nearest: Any) -> FloatArray:
    """1 where a row's exact value appears."""
    return np.asarray(np.asarray(nearest) == ITSELF, dtype=np.float64)


def _share(found: Any) -> FloatArray:
    """Share of synthetic rows that verify: the error of a synthesiser that should have none."""
    return np.asarray(found, dtype=np.float64)[:, 0]


def _missing_share(found: Any) -> FloatArray:
    """Error of the query, whose answer on the dataset is 1."""
    return 1.0 - _share(found)


def _no_copies(found: Any) -> FloatArray:
    """Rows that verify and are no copies: forgeries."""
    return np.asarray(found, dtype=np.float64)[:, 1]


@entry(
    "003/signature_dataset_hard_to_sanitize",
    title="Synthetic data of signed rows",
    source=Source("003", "Lemma 6.3.2"),
)
def signature_dataset_hard_to_sanitize() -> Iterator[Draft]:
    """Rows are random messages of 128 bits with their signatures; the query is whether a row verifies.

    In the neighbour a row is replaced by another fresh one, and the event is that the first one's exact value appears.
    """
    private = RowAppearance(SignedRows(), _PRIVATE["marginals"], _ROWS)
    # Trials are made one after the other, with nothing in common (a unit test), and signing is slow. The other private
    # synthesiser, a small database, is audited as what it is, 001/blr_small_database.
    draft = privacy(
        private,
        _CLAIM,
        _PAIR,
        relation=REPLACE,
        draws={"smoke": 24_000, "standard": 24_000},
        note="noisy shares of 640 bits",
    )
    yield replace(draft, independence=False)
    found, draws = MUTANTS["subsampling_synthesiser"], {"smoke": 600, "standard": 1_500}
    draft = broken(found, private, _PAIR, guarantee=_CLAIM, relation=REPLACE, true_level=math.inf, draws=draws)
    yield replace(draft, independence=False)
    yield from _dichotomy()
    yield from _mistakes()


#: Private at epsilon = 1, on universes that have none of the rows.
_PRIVATE: dict[str, RowSynthesiser] = {"marginals": MarginalSynthesiser(1.0), "small_universe": SmallUniverse(1.0, 4)}


def _dichotomy() -> Iterator[Draft]:
    """Copies verify, and nothing else does."""
    copies: dict[str, RowSynthesiser] = {
        "subsampling": SubsamplingSynthesiser(_ROWS // 2),
        "rare_copies": CopyRarely(_DELTA),
    }
    for name, synthesiser in {**copies, **_PRIVATE}.items():
        yield accuracy(
            VerifiedRows(SignedRows(), synthesiser, _ROWS),
            (0,),
            _no_copies,
            at_most=0,
            beta=_ROWS * _GUESS,
            controls={"a forgery, each time": Constant([1.0, 1.0])},
            case=f"copy_or_forgery_{name}",
            draws=_FEW,
            detect=_FOUND,
            independence=False,
            derived=True,
            note="assumed: nobody forges",
        )
    yield accuracy(
        VerifiedRows(SignedRows(), copies["subsampling"], _ROWS),
        (0,),
        _missing_share,
        at_most=0,
        beta=0,
        case="accurate_subsampling",
        draws=_FEW,
        detect=_FOUND,
        independence=False,
    )
    for name, synthesiser in _PRIVATE.items():
        verified = VerifiedRows(SignedRows(), synthesiser, _ROWS)
        yield accuracy(
            verified,
            (0,),
            _share,
            at_most=0,
            beta=_ROWS * _GUESS,
            controls={"a copy of the rows": VerifiedRows(SignedRows(), SubsamplingSynthesiser(_ROWS), _ROWS)},
            case=f"none_verifies_{name}",
            draws=_FEW,
            detect=_FOUND,
            independence=False,
            derived=True,
        )
        yield accuracy(
            verified,
            (0,),
            _missing_share,
            at_most=0.5,
            beta=0.5,
            case=f"accurate_{name}",
            draws=_FEW,
            expected="deviation",
            independence=False,
            derived=True,
            note="a failure of accuracy: the answer is within 1/2, half of the time",
        )
    yield accuracy(
        RowAppearance(SignedRows(), CopyRarely(_DELTA), _ROWS),
        _PAIR.x,
        _is_exact_match,
        at_most=0,
        beta=_DELTA,
        exact=_DELTA,
        controls={"copies with probability 1/2": RowAppearance(SignedRows(), CopyRarely(0.5), _ROWS)},
        case="rare_copies_appear",
        draws={"smoke": 8_000, "standard": 8_000},
        independence=False,
        derived=True,
        note="a row that is copied with probability delta",
    )


def _mistakes() -> Iterator[Draft]:
    """What makes the event of the audit mean something: a row that was replaced does not appear."""
    bases = {
        "small_message_set": RowAppearance(SignedRows(), SubsamplingSynthesiser(_ROWS), _ROWS),
        "deterministic_signature_with_published_key": RowAppearance(SignedRows(), DirectorySynthesiser(), _ROWS),
    }
    for name, base in bases.items():
        broken = MUTANTS[name].build(base)
        for case, appears, expected in ((f"reference_{name}", base, "consistent"), (name, broken, "deviation")):
            yield accuracy(
                appears,
                _PAIR.y,
                _is_exact_match,
                at_most=0,
                # As many synthetic rows as the directory has, at most.
                beta=(_ROWS + 1) * _GUESS,
                case=case,
                draws=_FEW,
                detect=_FOUND,
                expected=expected,
                controls={name: broken},
                independence=False,
                is_mutant=case == name,
                derived=True,
                note=MUTANTS[name].note if case == name else "assumed: nobody forges",
            )
