"""Papers as a reader sees them: found, listed, read, marked, and held against their own deployment."""
