"""dpaudit against other auditors, see `benchmarks.peers.__main__`."""
