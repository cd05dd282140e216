"""One micro-batch of training on one device: forward, backward, recomputation, and everything that stays in memory."""
