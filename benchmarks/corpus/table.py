"""The corpus of defective mechanisms, each with its corrected version: bugs that libraries had, or might have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from auditor.datasets import AddRemoveOne, Relation, ReplaceOne
from auditor.privacy.guarantees import Guarantee, PureDP, parse_claim
from benchmarks.corpus import data, forms, noise, selection
from benchmarks.corpus.base import CorpusDefect as CorpusDefect
from benchmarks.corpus.noise import BITS

DEFECTS: tuple[CorpusDefect, ...] = (
    *noise.DEFECTS,
    *data.DEFECTS,
    *selection.DEFECTS,
    *forms.DEFECTS,
)

#: Defects that are not caught yet, and why.
NOT_YET: dict[str, str] = {}


@dataclass(frozen=True)
class LibraryMechanism:
    """A mechanism of a library, in an interpreter of its own.

    Parameters
    ----------
    name : str
        Library, version and mechanism.
    target : str
        As the command line takes it; adapters are named by their paths from the repository's root.
    guarantee, relation, values, rows
        As of `CorpusDefect`.
    cause : tuple of str
        Words of which one is to stand in what a maintainer is told; empty where nothing is to be found.
    draws : int
        Budget of an audit, both sides together.
    """

    name: str
    target: str
    guarantee: Guarantee
    relation: Relation
    values: tuple[Any, ...]
    rows: int
    cause: tuple[str, ...] = ()
    draws: int = 20_000


_DIFFPRIVLIB = "pip:diffprivlib==0.6.6 scikit-learn==1.8.0#examples/adapters/for_diffprivlib.py"
_OPENDP = "#examples/adapters/for_opendp.py"
_PYDP = "pip:python-dp==1.1.5#examples/adapters/for_python_dp.py"
_COUNT = (PureDP(1.0), AddRemoveOne(), (0, 1), 10)

LIBRARIES: tuple[LibraryMechanism, ...] = (
    LibraryMechanism("diffprivlib 0.6.6 Laplace", f"{_DIFFPRIVLIB}:laplace", *_COUNT, cause=BITS),
    LibraryMechanism(
        "opendp 0.14.2 randomised response on bits",
        f"pip:opendp==0.14.2{_OPENDP}:bits",
        parse_claim("epsilon=2.19723"),
        ReplaceOne(),
        tuple(range(64)),
        1,
        cause=("coordinate", "output["),
    ),
    LibraryMechanism("diffprivlib 0.6.6 Snapping", f"{_DIFFPRIVLIB}:snapping", *_COUNT),
    LibraryMechanism("opendp 0.16.0 Laplace count", f"pip:opendp==0.16.0{_OPENDP}:laplace_count", *_COUNT),
    LibraryMechanism("python-dp 1.1.5 Laplace count", f"{_PYDP}:count", *_COUNT),
)
