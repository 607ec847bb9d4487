"""What the figures in the README were made with."""
