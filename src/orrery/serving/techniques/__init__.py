"""Batching, queue and routing policies: one file a technique, found because it exists."""
