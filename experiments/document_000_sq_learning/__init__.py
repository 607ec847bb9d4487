"""Document 000: lecture notes, differential privacy and the statistical query model."""
