"""Devices, the links between them, and clusters; with what was measured on them."""
