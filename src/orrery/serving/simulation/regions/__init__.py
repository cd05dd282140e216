"""Models that share a machine of which one is awake at a time."""
