"""Document 003: workshop notes on the complexity of differential privacy (Vadhan)."""
