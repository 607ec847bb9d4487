"""What a target states of itself, checked beside what it draws."""
