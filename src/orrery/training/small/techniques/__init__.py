"""Learning rules with and without backpropagation, one file each."""
