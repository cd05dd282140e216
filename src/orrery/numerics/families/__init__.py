"""Families of element formats: each a dataclass that makes any member, and reads one from its name."""
