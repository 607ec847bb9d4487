"""From counts to e-values, lower bounds, power and ceiling."""
