"""Document 002: what can be learned privately."""
