"""What a scheduled step costs: the device's time from the tables, the host's part, what it waits for, and stages."""
