"""Routed experts beyond one kernel: which expert follows which, which device holds them, and who computes them."""
