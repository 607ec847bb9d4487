"""Local randomizers, local protocols, and their simulations by statistical queries and back."""
