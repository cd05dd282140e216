"""Contents of the page of plans: the answer of a search as rows, points and reasons."""
