"""Composition: basic, advanced, adaptive, parallel; group privacy, and mistakes of composition."""
