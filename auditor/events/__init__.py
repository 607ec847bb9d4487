"""From outputs to yes/no events."""
