"""Cold starts: what a new replica waits for, part by part."""
