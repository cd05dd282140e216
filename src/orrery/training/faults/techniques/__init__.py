"""Ways to save checkpoints, one file each."""
