"""One file, one format: the file's ``FORMAT`` is the format, found because the file exists."""
