"""Mechanisms that the documents do not name and that belong beside theirs: report noisy max, permute-and-flip."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.claims import Draft, Source, broken, broken_and_deviating, entry, reference
from auditor.privacy.guarantees import PureDP
from experiments._queries import one_sided_pair, opposed_pair, stream
from experiments.common import REPLACE
from mechanisms.selection.noisy_max import FLIP_MUTANTS, MUTANTS, PermuteAndFlip, ReportNoisyMax

#: Ten groups of persons; which is the largest?
_GROUPS = "wwwwwwwwwd"


@entry("further/report_noisy_max", title="Report noisy max", source=Source("Dwork and Roth 2014", "section 3.3"))
def noisy_max() -> Iterator[Draft]:
    """The index of the largest noisy count; the variant that releases the value is broken."""
    for noise in ("laplace", "exponential"):
        mechanism = ReportNoisyMax(stream(_GROUPS), 1.0, noise=noise)
        yield from reference(mechanism, PureDP(1.0), opposed_pair(), case=noise, relation=REPLACE)
    mechanism = ReportNoisyMax(stream(_GROUPS), 1.0)
    yield from broken_and_deviating(MUTANTS["half_scale"], mechanism, opposed_pair())
    # Five counts that all rise by one: 5 eps / 2.
    five = ReportNoisyMax(stream("wwwww"), 1.0)
    yield broken(MUTANTS["released_maximum"], five, one_sided_pair(), relation=REPLACE, true_level=2.5)


@entry("further/permute_and_flip", title="Permute-and-flip", source=Source("McKenna and Sheldon 2020", "Algorithm 1"))
def permute_and_flip() -> Iterator[Draft]:
    """The index of a large count."""
    mechanism = PermuteAndFlip(stream(_GROUPS), 1.0)
    # The distribution of another mechanism, computed by other means: the two are one (Ding et al. 2021).
    law = {"reference": ReportNoisyMax(stream(_GROUPS), 1.0, noise="exponential")}
    yield from reference(mechanism, PureDP(1.0), opposed_pair(), case="largest_group", relation=REPLACE, follows=law)
    yield from broken_and_deviating(FLIP_MUTANTS["half_scale"], mechanism, opposed_pair())
