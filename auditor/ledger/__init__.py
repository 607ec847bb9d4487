"""The ledger: evidence of claims about outputs (L1, L2) that is carried from run to run, in one SQLite file.

- `auditor.ledger.sources` says what a claim is about: its specification, sources and versions, as one fingerprint;
- `auditor.ledger.store` is the file;
- `auditor.ledger.memory` is what event learners know, as JSON and back;
- `auditor.ledger.night` is one run of one claim: it takes up what was counted, and adds to it;
- `auditor.ledger.showing` lists and verifies.
"""

from auditor.ledger.night import Ledger, Night

__all__ = ["Ledger", "Night"]
