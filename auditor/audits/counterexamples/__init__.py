"""Counterexamples: made smaller, confirmed, written down, drawn again, and as code for a maintainer."""
