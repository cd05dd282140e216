"""Serving as it happens: requests are submitted while the clock moves, and every token is told with its time."""

from orrery.serving.live.live import Live
from orrery.serving.live.result import Emitted, Snapshot

__all__ = ["Emitted", "Live", "Snapshot"]
