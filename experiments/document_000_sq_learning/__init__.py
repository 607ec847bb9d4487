"""Document 000: differential privacy and the statistical query model."""
