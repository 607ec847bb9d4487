"""Document 004: Model-Agnostic Private Learning via Stability (Bassily and others)."""
