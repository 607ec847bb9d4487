"""Training runs with libraries, each made in an environment that has it."""
