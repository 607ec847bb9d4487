"""Votes of models trained on disjoint chunks: online release, soft labels, private learners."""
