"""The auditor measured on itself: false alarms at zero margin, and what it finds above, beside an oracle."""
