"""A reader for each source, at the pace that the source asks for."""

from orrery.evidence.feed.http import Reader
from orrery.evidence.feed.pace import RateLimiter
from orrery.evidence.feed.sources import source_named


def reader_for(source: str, base: str, pause_s: float | None) -> Reader:
    """A reader at the source's pace or slower; a mirror's at whatever pace is asked for."""
    least_s = source_named(source).interval_s
    interval_s = least_s if pause_s is None else pause_s if base else max(pause_s, least_s)
    return Reader(pace=RateLimiter(interval_s=interval_s))
