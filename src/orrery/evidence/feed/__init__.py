"""New papers: read from feeds and saved pages, kept in a local file, understood as far as their abstracts allow."""
