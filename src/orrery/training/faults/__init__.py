"""Failures of a whole run: how often, how they are noticed, what they cost, and what checkpoints save of it."""
