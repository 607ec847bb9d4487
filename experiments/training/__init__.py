"""Private training, which the five documents do not have: DP-SGD, DP-FTRL, perturbation of outputs and objectives."""
