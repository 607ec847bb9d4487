"""Declarations of claims by experiments.

An entry is a function that yields claims; the decorator `entry` names it::

    @entry("000/geometric_mechanism", source=Source("000", "section 2"))
    def geometric() -> Iterator[Draft]:
        mechanism = TwoSidedGeometric(Count("age", 65), a=math.e)
        yield from reference(mechanism, PureDP(1.0), pairs)
        yield broken(MUTANTS["one_sided"], mechanism, pairs)

`reference` yields the claims of `exact`, `privacy` and `conformity`. A `Mutant` keeps a wrong twin with its name, its
true level and a note; `broken` declares it. Nothing is registered anywhere: `auditor.claims.registry` finds entries in
the modules that it loads.
"""

from auditor.claims.accuracy import accuracy as accuracy
from auditor.claims.accuracy import expectation as expectation
from auditor.claims.accuracy import inequality as inequality
from auditor.claims.accuracy import phases as phases
from auditor.claims.accuracy import scaling as scaling
from auditor.claims.accuracy import smallest as smallest
from auditor.claims.claim import BUDGETS as BUDGETS
from auditor.claims.claim import Claim as Claim
from auditor.claims.claim import Draft as Draft
from auditor.claims.claim import Entry as Entry
from auditor.claims.claim import Source as Source
from auditor.claims.claim import as_corrected as as_corrected
from auditor.claims.claim import as_printed as as_printed
from auditor.claims.claim import entry as entry
from auditor.claims.claim import proof_step as proof_step
from auditor.claims.claim import statement_holds as statement_holds
from auditor.claims.errata import Erratum as Erratum
from auditor.claims.errata import Shows as Shows
from auditor.claims.mutants import broken as broken
from auditor.claims.mutants import broken_and_deviating as broken_and_deviating
from auditor.claims.mutants import deviating as deviating
from auditor.claims.mutants import mutant as mutant
from auditor.claims.privacy import adversary as adversary
from auditor.claims.privacy import component as component
from auditor.claims.privacy import conformity as conformity
from auditor.claims.privacy import curve_of_law as curve_of_law
from auditor.claims.privacy import exact as exact
from auditor.claims.privacy import privacy as privacy
from auditor.claims.privacy import reference as reference
from auditor.targets.mutants import Mutant as Mutant
from auditor.targets.mutants import Twin as Twin
