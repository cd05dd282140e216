"""How a question becomes calls, and which branches of a search live on: one file each, found because it exists."""
