"""Cost of a scheduled step: the device's time from the tables, the host's part, waiting, and stages."""
