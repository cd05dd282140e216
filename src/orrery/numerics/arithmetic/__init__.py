"""Integer-only and exact arithmetic, and the order in which sums are taken, as devices really do them."""
