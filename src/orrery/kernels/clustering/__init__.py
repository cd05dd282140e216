"""Clusterings by swaps, run on real distances, with their operations counted."""
