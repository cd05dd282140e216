"""Experiments on small networks that are really trained: one file each, found because it exists."""
