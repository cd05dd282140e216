"""Why runs are slower than predicted: likely causes, ranked by how well each explains the pattern of the residuals."""
