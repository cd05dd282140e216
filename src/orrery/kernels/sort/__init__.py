"""Sorting on devices."""
