"""Reference mechanisms, one family a file, each with its mutants beside it."""
