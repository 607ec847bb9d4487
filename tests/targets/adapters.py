"""The documented adapters of privacy libraries: what each is, what it claims, and what is to be found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from auditor import Pair

#: A dataset of zeros and ones, and the same with a one more.
ONE_MORE = Pair([0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1], "a row more")


@dataclass(frozen=True)
class Adapter:
    """A function of a file in examples/adapters, as the README there documents it.

    Parameters
    ----------
    requirements : str
        What is installed, such as "opendp==0.16.0".
    where : str
        File and function, such as "for_opendp.py:laplace_count".
    claim, relation, domain : str
        Options of `dpaudit attack`.
    pair : Pair
        Neighbours that a test draws from.
    rows, least : int
        Most and fewest rows of a dataset that the claim is about, options ``--rows`` and ``--min-rows``.
    defect : str
        What tells the datasets of the pair apart, in words of `auditor.events.root_causes`; empty where nothing is
        known.
    large : bool
        The library is installed on request only.
    slow : bool
        A test asks for a few draws and makes no audit.
    """

    requirements: str
    where: str
    claim: str
    relation: str = "add-remove-one"
    domain: str = "0,1"
    pair: Pair = ONE_MORE
    rows: int = 10
    least: int = 0
    defect: str = ""
    large: bool = False
    slow: bool = False

    @property
    def library(self) -> str:
        """The library's name on the package index."""
        return self.requirements.split("==")[0]

    @property
    def name(self) -> str:
        """Name of the test."""
        return f"{self.requirements.split()[0]}-{self.where.rpartition(':')[2]}"

    @property
    def command(self) -> list[str]:
        """The documented command, in words."""
        words = ["dpaudit", "attack", f"pip:{self.requirements}#examples/adapters/{self.where}", "--claim", self.claim]
        words += ["--relation", self.relation, "--domain", self.domain, "--rows", str(self.rows)]
        return words + (["--min-rows", str(self.least)] if self.least else [])


def _pair(x: list[Any], y: list[Any]) -> Pair:
    return Pair(x, y, f"{x} against {y}")


_OPENDP, _OLD = "opendp==0.16.0", "opendp==0.14.2"
_DIFFPRIVLIB = "diffprivlib==0.6.6 scikit-learn==1.8.0"
_PYTHON_DP = "python-dp==1.1.5"
_SMARTNOISE = "smartnoise-sql==1.0.10"
_PIPELINE = "pipeline-dp==0.3.1"
_TMLT = "tmlt.core==0.20.0"
_OPACUS = "opacus==1.6.0 torch==2.13.0"

_ONE_PERSON: dict[str, Any] = {"relation": "replace-one", "rows": 1, "least": 1}
_BITS: dict[str, Any] = {**_ONE_PERSON, "claim": "epsilon=2.19723", "domain": "0:63", "pair": _pair([0], [63])}
_REALS: dict[str, Any] = {"domain": "0.0,1.0", "pair": _pair([0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0])}
_EMPTY = _pair([], [1.0])
_MEAN: dict[str, Any] = {
    "relation": "replace-one",
    "domain": "0.0,1.0",
    "pair": _pair([0.0] * 6, [0.0] * 5 + [1.0]),
    "least": 1,
}
_SMALL_DELTA, _LARGE_DELTA = "epsilon=1, delta=1e-5", "epsilon=1, delta=0.01"
_FLOAT = "floating-point bit structure"

ADAPTERS = (
    Adapter(_OPENDP, "for_opendp.py:laplace_count", "epsilon=1"),
    Adapter(_OPENDP, "for_opendp.py:laplace_noise", "epsilon=1"),
    Adapter(_OPENDP, "for_opendp.py:laplace_sum", "epsilon=1", **_REALS),
    Adapter(_OPENDP, "for_opendp.py:gaussian_count", "rho=0.5"),
    Adapter(_OPENDP, "for_opendp.py:category", "epsilon=1", domain="0:3", pair=_pair([0], [3]), **_ONE_PERSON),
    Adapter(_OPENDP, "for_opendp.py:bits", **_BITS),
    Adapter(_OLD, "for_opendp.py:bits", defect="coordinate 56", **_BITS),
    Adapter(_DIFFPRIVLIB, "for_diffprivlib.py:laplace", "epsilon=1", defect=_FLOAT),
    Adapter(_DIFFPRIVLIB, "for_diffprivlib.py:gaussian_analytic", _SMALL_DELTA, defect=_FLOAT),
    Adapter(_DIFFPRIVLIB, "for_diffprivlib.py:snapping", "epsilon=1"),
    Adapter(_DIFFPRIVLIB, "for_diffprivlib.py:geometric", "epsilon=1"),
    Adapter(_DIFFPRIVLIB, "for_diffprivlib.py:histogram", "epsilon=1"),
    Adapter(_DIFFPRIVLIB, "for_diffprivlib.py:mean", "epsilon=1", defect=_FLOAT, **_MEAN),
    Adapter(_PYTHON_DP, "for_python_dp.py:count", "epsilon=1"),
    Adapter(_PYTHON_DP, "for_python_dp.py:bounded_sum", "epsilon=1"),
    Adapter(_PYTHON_DP, "for_python_dp.py:bounded_mean", "epsilon=1", **_REALS),
    Adapter(_PYTHON_DP, "for_python_dp.py:laplace", "epsilon=1"),
    Adapter(_PYTHON_DP, "for_python_dp.py:gaussian", _SMALL_DELTA, defect=_FLOAT),
    Adapter(_SMARTNOISE, "for_smartnoise_sql.py:count", "epsilon=1", slow=True),
    Adapter(_SMARTNOISE, "for_smartnoise_sql.py:grouped", _LARGE_DELTA, pair=_pair([1] * 4, [1] * 5)),
    Adapter(_TMLT, "for_tmlt_core.py:geometric", "epsilon=1", large=True),
    Adapter(_TMLT, "for_tmlt_core.py:laplace", "epsilon=1", large=True),
    Adapter(_TMLT, "for_tmlt_core.py:discrete_gaussian", "rho=0.5", large=True),
    Adapter(_TMLT, "for_tmlt_core.py:median", "epsilon=1", large=True, **_REALS),
    Adapter(
        _PIPELINE,
        "for_pipeline_dp.py:categories",
        _LARGE_DELTA,
        domain="a,b",
        pair=_pair(["a"] * 5, ["a"] * 6),
        least=1,
    ),
    Adapter(
        _PIPELINE, "for_pipeline_dp.py:total", "epsilon=1", domain="0.0,1.0", pair=_pair([], [1.0]), defect="exception"
    ),
    Adapter(_OPACUS, "for_opacus.py:gradient", "mu=1", defect=_FLOAT, large=True, **_REALS),
    Adapter(_OPACUS, "for_opacus.py:secure_gradient", "mu=1", defect=_FLOAT, large=True, **_REALS),
)
