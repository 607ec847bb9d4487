"""Privacy claims: guarantees, output laws, and the exact privacy curves of pairs of laws.

- `auditor.privacy.guarantees` holds the notions, each as one cap;
- `auditor.privacy.laws` the laws that a mechanism may state;
- `auditor.privacy.exact` what follows from two laws without any draw.
"""
