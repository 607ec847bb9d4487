"""Many queries at once: counts, marginals, projections, synthetic data, multiplicative weights."""
