"""One arithmetic algorithm a file; a file here is found because it exists."""
