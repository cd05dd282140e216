"""Experiments of many machines: one file each, found because it exists."""
