"""Private training: DP-SGD, DP-FTRL, output and objective perturbation, with the pitfalls of each."""
