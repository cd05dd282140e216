"""Microbenchmarks of the processor."""
