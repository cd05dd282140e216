"""What to do about missing nodes, one file each."""
