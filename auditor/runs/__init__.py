"""Runs of many claims that share one alpha: workers, journal, records of provenance, ledger."""
