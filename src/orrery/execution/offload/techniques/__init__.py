"""Ways to spread training state over tiers of memory, and to map tensors to fast memory, one file each."""
