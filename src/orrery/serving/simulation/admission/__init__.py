"""Admission to a batch, and what a step computes: blocks for decodes, grants for prompts, seats for the queue."""
