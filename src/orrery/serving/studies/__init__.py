"""Experiments on servers of other things than text: one file each, found because it exists."""
