"""Parallelism as the placement of tensors: states over a mesh, signatures, conversions, and the cheapest of them."""
