"""Randomness under control: a target's random numbers are taken in hand for one call."""
