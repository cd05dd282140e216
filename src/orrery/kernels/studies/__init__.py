"""Experiments on processors that serve no language model: one file each, found because it exists."""
