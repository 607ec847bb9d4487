"""Protocols of the engine: what others implement, and what it asks of them.

=================== ======================================= =============================================
protocol            who implements it                       what it is
=================== ======================================= =============================================
`Mechanism`         whoever is audited                      a callable ``(data, n, rng) -> outputs``
`Interactive`       a mechanism that answers queries        begins sessions, which an `Analyst` asks
`Relation`          who defines neighbouring datasets       checks a pair, and makes typical ones
`PrivacyCurve`      `auditor.privacy.exact`                 all levels of two distributions, without draws
`Guarantee`         a notion of privacy (a class)           the cap on an event's probability
`Feature`           `auditor.events`                        one number read off each output
`Statement`         guarantees, distributions, theorems     what a result says was claimed
`Recorder`          a ledger                                is told of each chunk before and after its draws
`EvidenceStore`     a ledger                                evidence that adds up from run to run
`Prefetch`          `auditor.targets.prefetch`              makes the calls of a target ahead of time
=================== ======================================= =============================================

Those that a lower room needs are defined there; they are gathered here. The statistical core knows these alone, and
neither ledgers nor second processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from auditor.audits.privacy_loop import Evidence, Past, Recorder, Settings
from auditor.datasets import Pair
from auditor.datasets import Relation as Relation
from auditor.events.features import Feature as Feature
from auditor.privacy.exact import PrivacyCurve as PrivacyCurve
from auditor.privacy.guarantees import Guarantee
from auditor.results import AuditResult
from auditor.targets import Mechanism
from auditor.targets.interactive import Interactive as Interactive
from auditor.targets.sampler import Prefetch as Prefetch
from auditor.targets.sampler import Sampler


class Statement(Protocol):
    """What is claimed, as a result states it."""

    @property
    def notion(self) -> str:
        """Kind of statement."""

    @property
    def symbol(self) -> str:
        """What its level is called."""

    @property
    def level(self) -> float:
        """The claimed level."""

    def parameters(self) -> dict[str, Any]:
        """Parameters by name."""


class EvidenceSession(Recorder, Protocol):
    """One run of one claim whose evidence is kept, see `auditor.runs.ledger.Night`.

    Attributes
    ----------
    seeded : bool
        The target gives the same draws again, as far as is known.
    """

    seeded: bool

    @property
    def key(self) -> str:
        """Keys the draws."""

    @property
    def settings(self) -> Settings:
        """How the claim is audited, with its share of alpha."""

    @property
    def begun(self) -> bool:
        """Whether earlier evidence was taken up."""

    def past(self, sampler: Sampler) -> Past:
        """Evidence of earlier runs, of draws of the sampler's kind."""

    def doubt(self, reason: str, alone: bool = False) -> None:
        """Keep why a refutation does not hold.

        An empty reason means that it does.

        Parameters
        ----------
        reason : str
            In words.
        alone : bool
            The draws were made one a call.
        """

    def doubted(self, alone: bool = False) -> str | None:
        """The reason that was kept; None if nothing was refuted yet."""

    def close(self, reason: str) -> None:
        """Add nothing more to this series of evidence."""

    def fail(self) -> None:
        """The target has ended the run."""

    def end(self, evidence: Evidence, alone: bool, result: AuditResult) -> AuditResult:
        """Keep the evidence, and say so in the result.

        Parameters
        ----------
        evidence : Evidence
            All that was drawn and bet.
        alone : bool
            The draws were made one a call.
        result : AuditResult
            The result so far.
        """


class EvidenceStore(Protocol):
    """Where evidence is kept from run to run, see `auditor.runs.ledger.Ledger`."""

    def night(
        self,
        target: Mechanism,
        guarantee: Guarantee,
        pairs: Sequence[Pair],
        settings: Settings,
        id_: str,
        private: bool,
    ) -> AbstractContextManager[EvidenceSession]:
        """One run of one claim.

        Parameters
        ----------
        target : Mechanism
            What is audited.
        guarantee : Guarantee
            The claim.
        pairs : sequence of Pair
            The pairs to be audited.
        settings : Settings
            How it is audited.
        id_ : str
            The claim's id.
        private : bool
            Datasets are not shown.
        """
