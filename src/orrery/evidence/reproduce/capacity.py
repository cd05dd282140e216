"""The highest rate at which a paper's service meets its objectives: as ``simulate --find-capacity`` finds it."""

from orrery.serving.capacity import highest_rate

__all__ = ["highest_rate"]
