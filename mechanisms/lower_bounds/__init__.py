"""Attacks and the objects of lower bounds: packings, reconstruction, discrepancy, tracing."""
