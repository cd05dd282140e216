"""When requests arrive: one law a file in ``techniques``, drawn by name."""

from orrery.serving.arrivals.draw import arrivals, laws

__all__ = ["arrivals", "laws"]
