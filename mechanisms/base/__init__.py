"""What every mechanism is, exact samplers of integer noise, and queries with declared sensitivity."""
