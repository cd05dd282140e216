"""What a search tree is made of, and how a width is dealt out among its candidates."""
