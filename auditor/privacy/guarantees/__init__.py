"""Notions of privacy, each as one cap.

All that the statistics of this package need of a notion is its cap, the cap's tangents and its inverse in the level,
and the last two have defaults. So a new notion is one class, in a file of its own here or in anybody's module:
`Guarantee` says what it consists of. Modules of this package are found and loaded by themselves.
"""

from importlib import import_module
from pkgutil import iter_modules

from auditor.privacy.guarantees.approximate import ApproxDP, DeltaDP, PureDP
from auditor.privacy.guarantees.base import NOTIONS, Guarantee, parse_claim
from auditor.privacy.guarantees.gaussian import GaussianDP
from auditor.privacy.guarantees.renyi import ZCDP, RenyiDP
from auditor.privacy.guarantees.supporting_lines import Tangent
from auditor.privacy.guarantees.tradeoff import TradeoffCurve

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "NOTIONS",
    "ZCDP",
    "ApproxDP",
    "DeltaDP",
    "GaussianDP",
    "Guarantee",
    "PureDP",
    "RenyiDP",
    "Tangent",
    "TradeoffCurve",
    "parse_claim",
]
