"""Many jobs on many machines: which machines to rent, what they draw, what joins them."""
