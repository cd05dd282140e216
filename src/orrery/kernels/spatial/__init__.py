"""Kernels on arrays of processing elements, cycle by cycle."""
