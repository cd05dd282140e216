"""Techniques of a training step and its run: the change by each one, and its notes."""
