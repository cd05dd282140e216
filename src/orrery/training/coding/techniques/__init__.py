"""Ways not to wait for stragglers, one file each."""
