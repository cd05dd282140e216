"""What techniques make of a training step and of its run: each one's change, and what there is to say of it."""
