"""Ways to keep a row under its breaker, one file each."""
