"""The claims: each pairs a mechanism with a theorem, its neighbours, what is expected, and its source."""
