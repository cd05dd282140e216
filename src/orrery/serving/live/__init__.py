"""Serving as it happens: requests are submitted while the clock moves, and every token is told with its time."""

from orrery.serving.live.live import Live
from orrery.serving.live.result import Snapshot, TokenEvents

__all__ = ["Live", "Snapshot", "TokenEvents"]
