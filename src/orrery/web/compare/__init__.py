"""Two designs side by side: what differs, what each does, and whether the difference is sure."""
