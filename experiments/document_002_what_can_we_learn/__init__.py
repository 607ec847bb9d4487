"""Document 002: What Can We Learn Privately? (Kasiviswanathan and others)."""
