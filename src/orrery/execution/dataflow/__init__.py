"""Chains of tasks on a spatial device: one after the other, side by side, or switched between the two."""
