"""How experiments declare claims.

An entry is a function that yields claims; the decorator `entry` names it::

    @entry("000/geometric_mechanism", source=Source("000", "section 2"))
    def geometric() -> Iterator[Draft]:
        mechanism = TwoSidedGeometric(Count("age", 65), a=math.e)
        yield exact(mechanism, PureDP(1.0), pairs)
        yield privacy(mechanism, PureDP(1.0), pairs)
        yield conformity(mechanism, pairs)
        yield mutant("one_sided", OneSided(...), PureDP(1.0), pairs, true_level=math.inf)

Nothing is registered anywhere: `auditor.registry` finds entries in the modules that it loads.
"""

from auditor.declare.accuracy import accuracy as accuracy
from auditor.declare.accuracy import expectation as expectation
from auditor.declare.accuracy import inequality as inequality
from auditor.declare.accuracy import phases as phases
from auditor.declare.accuracy import scaling as scaling
from auditor.declare.accuracy import smallest as smallest
from auditor.declare.base import BUDGETS as BUDGETS
from auditor.declare.base import Claim as Claim
from auditor.declare.base import Draft as Draft
from auditor.declare.base import Entry as Entry
from auditor.declare.base import Source as Source
from auditor.declare.base import entry as entry
from auditor.declare.errata import Erratum as Erratum
from auditor.declare.errata import Shows as Shows
from auditor.declare.errata import as_corrected as as_corrected
from auditor.declare.errata import as_printed as as_printed
from auditor.declare.errata import proof_step as proof_step
from auditor.declare.errata import statement_holds as statement_holds
from auditor.declare.privacy import adversary as adversary
from auditor.declare.privacy import component as component
from auditor.declare.privacy import conformity as conformity
from auditor.declare.privacy import curve_of_law as curve_of_law
from auditor.declare.privacy import exact as exact
from auditor.declare.privacy import mutant as mutant
from auditor.declare.privacy import privacy as privacy
