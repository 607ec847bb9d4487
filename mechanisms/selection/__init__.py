"""The exponential mechanism, noisy maxima, and the sparse vector technique with its exact distributions."""
