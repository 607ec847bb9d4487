"""Document 001: machine learning, lecture 12: differential privacy."""
