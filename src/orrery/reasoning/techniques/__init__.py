"""Shapes that turn a question into calls: one file each, found because it exists."""
