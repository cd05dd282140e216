"""The cache of keys and values: pools of blocks, shared prefixes, and a tier on the host."""
