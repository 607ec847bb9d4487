"""Audits of training runs: what is stated on which assumption."""
