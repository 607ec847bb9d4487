"""Evidence from counts: e-values, lower bounds, power and ceiling."""
