"""One file a family (or a group of alike families); a file that ends with ``FAMILY = Family(...)`` is registered."""
