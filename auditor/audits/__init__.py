"""Audits of one claim: draw, bet on events, and decide a verdict.

- `auditor.audits.privacy` audits a privacy claim, by the loop of `auditor.audits.privacy_loop`;
- `auditor.audits.conformity` compares draws with a stated distribution;
- `auditor.audits.accuracy` checks theorems about errors;
- `auditor.audits.adversaries` plays games that make up their data.

What all of them share: `auditor.audits.loop` draws chunk after chunk, `auditor.audits.verdict` decides, and
`auditor.audits.finish` makes the result.
"""
