"""Level L4: accuracy theorems at their own parameters, the smallest parameters that work, and exponents."""

from auditor.audits.accuracy.check import check_accuracy as check_accuracy
from auditor.audits.accuracy.controls import Constant as Constant
from auditor.audits.accuracy.errors import Absolute as Absolute
from auditor.audits.accuracy.errors import Largest as Largest
from auditor.audits.accuracy.errors import Setting as Setting
from auditor.audits.accuracy.errors import Squared as Squared
from auditor.audits.accuracy.expectation import Expectation as Expectation
from auditor.audits.accuracy.failure import HighProbability as HighProbability
from auditor.audits.accuracy.figure import Figure as Figure
from auditor.audits.accuracy.measures import Exactly as Exactly
from auditor.audits.accuracy.measures import Mean as Mean
from auditor.audits.accuracy.measures import Quantile as Quantile
from auditor.audits.accuracy.measures import Smallest as Smallest
from auditor.audits.accuracy.phase import Line as Line
from auditor.audits.accuracy.phase import PhaseDiagram as PhaseDiagram
from auditor.audits.accuracy.scaling import PowerLaw as PowerLaw
from auditor.audits.accuracy.smallest import SmallestParameter as SmallestParameter
