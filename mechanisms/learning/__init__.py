"""Private learners: the generic one, thresholds, parities, boosting, subsampling, stable learners."""
