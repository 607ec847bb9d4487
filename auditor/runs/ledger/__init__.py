"""The ledger: evidence of claims about outputs (L1, L2) that is carried from run to run, in one SQLite file.

- `auditor.runs.ledger.fingerprint` says what a claim is about: its specification, sources and versions, as one
fingerprint;
- `auditor.runs.ledger.store` is the file;
- `auditor.events.learner_state` is what event learners know, as JSON and back;
- `auditor.runs.ledger.session` is one run of one claim: it takes up what was counted, and adds to it;
- `auditor.runs.ledger.show` lists and verifies.
"""

from auditor.runs.ledger.session import Ledger, Night

__all__ = ["Ledger", "Night"]
