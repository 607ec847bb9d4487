"""Perturbed outputs and objectives: classifiers of persons who see a doctor, on the whole of the RAND data."""

from __future__ import annotations

import math
from collections.abc import Iterator

from auditor.claims import Draft, Source, accuracy, broken, broken_and_deviating, entry, privacy, reference
from auditor.datasets import Pair
from auditor.privacy.guarantees import GaussianDP, PureDP
from experiments._errors import LengthOfError
from experiments.common import REPLACE, person, rand, replaced
from mechanisms.training.objective_perturbation import MUTANTS as OBJECTIVES
from mechanisms.training.objective_perturbation import ObjectivePerturbation
from mechanisms.training.output_perturbation import MUTANTS as OUTPUTS
from mechanisms.training.output_perturbation import (
    GaussianOutputPerturbation,
    OneWeightPerturbation,
    OutputPerturbation,
)
from mechanisms.training.regularised_risk import ScaledExamples

#: Does a person see a doctor at all? By poor health; and by the index of diseases and a limitation too.
_HEALTH = ScaledExamples(("hlthp",), (1.0,), "mdvis", 1.0)
_THREE = ScaledExamples(("disea", "physlm", "hlthp"), (60.0, 1.0, 1.0), "mdvis", 1.0)
#: Is a person in poor health? By a number of visits that nobody has, so that all other examples are 0.
_NOBODY = ScaledExamples(("mdvis",), (1.0,), "hlthp", 1.0, above=77.0)
_EPSILON = 2.0


def _patient() -> Pair:
    """A person in the worst of health, who sees a doctor or does not."""
    worst = {"disea": 60.0, "physlm": 1.0, "hlthp": 1.0}
    return replaced(
        "a person in the worst of health sees a doctor or does not", person(mdvis=5, **worst), person(mdvis=0, **worst)
    )


@entry(
    "further/output_perturbation",
    title="Perturbed minimum of a regularised risk",
    source=Source("Chaudhuri, Monteleoni and Sarwate 2011", "Algorithm 1, Corollary 8"),
)
def output_perturbation() -> Iterator[Draft]:
    """One weight with Laplace noise; three with noise by length, and with Gaussian noise."""
    rows, pair = len(rand()), _patient()
    one = OneWeightPerturbation(_HEALTH, rows, 0.5, _EPSILON)
    draws = {"smoke": 40_000, "standard": 400_000}
    follows = {"rounding": one.grain}
    yield from reference(one, PureDP(_EPSILON), pair, case="one_weight", relation=REPLACE, draws=draws, follows=follows)
    three = OutputPerturbation(_THREE, rows, 0.5, _EPSILON)
    level = three.pair_level(pair.x, pair.y)
    yield privacy(three, PureDP(_EPSILON), pair, case="three_weights", relation=REPLACE, draws=draws, exact_level=level)
    gaussian = GaussianOutputPerturbation(_THREE, rows, 0.5, 1.0)
    follows = {"rounding": gaussian.grain}
    yield from reference(
        gaussian, GaussianDP(1.0), pair, case="gaussian", relation=REPLACE, draws=draws, follows=follows
    )
    # Lemma 17 there: the length is at most d ln(d / beta) scales.
    beta, weights = 0.1, three.minimum(rand())
    at_most = 3 * math.log(3 / beta) * three.scale + three.grain
    yield accuracy(
        three,
        rand(),
        LengthOfError(weights),
        at_most=at_most,
        beta=beta,
        case="length_of_noise",
        draws={"smoke": 5_000},
    )
    yield from broken_and_deviating(
        OUTPUTS["sensitivity_of_adding"], one, pair, relation=REPLACE, draws={"smoke": 20_000, "standard": 20_000}
    )
    for name, base in (("ridge_left_out", one), ("noise_by_coordinate", three)):
        yield broken(OUTPUTS[name], base, pair, relation=REPLACE, draws={"smoke": 40_000, "standard": 40_000})


@entry(
    "further/objective_perturbation",
    title="Minimum of a perturbed risk",
    source=Source("Chaudhuri, Monteleoni and Sarwate 2011", "Algorithm 2, Theorem 9"),
)
def objective_perturbation() -> Iterator[Draft]:
    """One weight; the noise takes nearly all of epsilon, or, with little regularisation, the curvature a part."""
    rows = len(rand())
    health = ObjectivePerturbation(_HEALTH, rows, 400.0 / rows, _EPSILON, cell=2.0**-11, most=2048)
    draws = {"smoke": 100_000, "standard": 1_000_000}
    yield from reference(
        health, PureDP(_EPSILON), _patient(), case="poor_health", relation=REPLACE, draws=draws, follows={"draws": {}}
    )
    alone = ObjectivePerturbation(_NOBODY, rows, 2.0 / rows, _EPSILON, cell=0.125)
    visits = replaced(
        "the one person with 78 visits is in poor health or not", person(mdvis=78, hlthp=1), person(mdvis=78, hlthp=0)
    )
    yield from reference(
        alone, PureDP(_EPSILON), visits, case="one_example", relation=REPLACE, draws=draws, follows={"draws": {}}
    )
    draws = {"smoke": 100_000, "standard": 100_000}
    yield broken(OBJECTIVES["curvature_forgotten"], alone, visits, relation=REPLACE, draws=draws)
    yield from broken_and_deviating(OBJECTIVES["scale_of_adding"], alone, visits, relation=REPLACE, draws=draws)
