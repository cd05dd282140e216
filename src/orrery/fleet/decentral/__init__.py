"""Many workers without a fast network: messages that are compressed, sums that outvote liars, and what rounds cost."""
