"""Noise added to a query: Laplace, Gaussian, geometric; histograms and counts of columns."""
