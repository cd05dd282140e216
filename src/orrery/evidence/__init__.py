"""Measured tables and how well we repeat them."""
