"""Defective mechanisms, as real code has them, and their corrected versions."""
