"""One file for each tool whose results can be read; a file here is found because it exists."""
