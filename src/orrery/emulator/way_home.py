"""Tokens on their way from a region to their clients: each arrives half a round trip after it was made."""

import heapq
from collections.abc import Iterator
from math import inf

from orrery.emulator.stream import End
from orrery.serving.live.result import RequestProgress

Row = tuple[int, int, float, End, RequestProgress | None]
"""Request, tokens, when its client has them, how it ended if so, and its progress when they were made."""


class WayHome:
    """Rows in the order in which they arrive; those of one moment in the order in which they left."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, int, Row]] = []
        self._count = 0

    @property
    def next_s(self) -> float:
        """When the next row arrives; infinite without any."""
        return self._rows[0][0] if self._rows else inf

    def put(self, row: Row) -> None:
        """Send a row on its way."""
        self._count += 1
        heapq.heappush(self._rows, (row[2], self._count, row))

    def due(self, now_s: float) -> Iterator[Row]:
        """Take the rows that have arrived."""
        while self._rows and self._rows[0][0] <= now_s:
            yield heapq.heappop(self._rows)[2]
