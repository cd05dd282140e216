"""Orrery: a working model of AI compute."""

__version__ = "0.1.0"
