"""Checks of what a target reports about itself, beside the audit of its draws."""
