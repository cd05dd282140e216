"""What the page of one design shows: the answer of an estimate, unfolded."""
