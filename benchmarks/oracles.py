"""What no auditor can beat; see `auditor.calibration.oracles`, which `dpaudit calibrate` shares."""

from auditor.calibration.oracles import (
    Cdf,
    Masses,
    compute_rate,
    from_cdfs,
    from_finite,
    single_event_rate,
    whole_distribution_rate,
)

__all__ = ["Cdf", "Masses", "compute_rate", "from_cdfs", "from_finite", "single_event_rate", "whole_distribution_rate"]
