"""A small library that releases counts with noise: what continuous integration looks after in this example."""
