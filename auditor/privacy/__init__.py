"""Privacy claims: guarantees, output distributions, and the exact privacy curves of pairs of these.

- `auditor.privacy.guarantees` holds the notions, each as one cap;
- `auditor.privacy.laws` the distributions that a mechanism may state;
- `auditor.privacy.exact` what follows from two distributions without any draw.
"""
