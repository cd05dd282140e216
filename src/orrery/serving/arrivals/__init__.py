"""When requests arrive: one law a file in ``techniques``, drawn by name."""

from orrery.serving.arrivals.draw import ARRIVALS, arrivals

__all__ = ["ARRIVALS", "arrivals"]
