"""cost(op, device): how long one kernel takes, which roof it hits, and how sure we are."""
