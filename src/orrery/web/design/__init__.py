"""Contents of a design's page: the answer of an estimate, unfolded."""
