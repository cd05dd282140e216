"""Finding papers: words and likeness, filters, and the entry that a reader gets to see."""
