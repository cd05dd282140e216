"""The highest rate at which a paper's service meets its objectives: the search that ``simulate --find-capacity`` makes."""

from orrery.serving.capacity import highest_rate

__all__ = ["highest_rate"]
