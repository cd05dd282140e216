"""Ways for a linear layer to compute its three products, one file each."""
