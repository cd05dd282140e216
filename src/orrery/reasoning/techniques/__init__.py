"""How a question becomes calls: one file each, found because it exists."""
