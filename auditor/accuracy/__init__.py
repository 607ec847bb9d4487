"""Level L4: accuracy theorems at their own parameters, the smallest parameters that work, and exponents."""

from auditor.accuracy.check import check_accuracy as check_accuracy
from auditor.accuracy.controls import Constant as Constant
from auditor.accuracy.errors import Absolute as Absolute
from auditor.accuracy.errors import Largest as Largest
from auditor.accuracy.errors import Setting as Setting
from auditor.accuracy.errors import Squared as Squared
from auditor.accuracy.expectation import Expectation as Expectation
from auditor.accuracy.failure import HighProbability as HighProbability
from auditor.accuracy.figure import Figure as Figure
from auditor.accuracy.measures import Exactly as Exactly
from auditor.accuracy.measures import Mean as Mean
from auditor.accuracy.measures import Quantile as Quantile
from auditor.accuracy.measures import Smallest as Smallest
from auditor.accuracy.phase import Line as Line
from auditor.accuracy.phase import PhaseDiagram as PhaseDiagram
from auditor.accuracy.scaling import PowerLaw as PowerLaw
from auditor.accuracy.smallest import SmallestParameter as SmallestParameter
