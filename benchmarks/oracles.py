"""What no auditor can beat; see `auditor.calibration.oracles`, which `dpaudit calibrate` shares."""

from auditor.calibration.oracles import (
    Cdf,
    Masses,
    from_cdfs,
    from_finite,
    rate,
    single_event_rate,
    whole_law_rate,
)

__all__ = ["Cdf", "Masses", "from_cdfs", "from_finite", "rate", "single_event_rate", "whole_law_rate"]
