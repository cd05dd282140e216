"""What the page of plans shows: the answer of a search as rows, points and reasons."""
