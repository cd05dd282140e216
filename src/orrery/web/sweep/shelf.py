"""Curves that were made: kept in memory, so that a slider that moves along them has nothing to compute."""

import asyncio
import json
from collections import OrderedDict
from pathlib import Path

from orrery.web.sweep.asked import Asked
from orrery.web.sweep.curves import Swept, swept

MOST_KEPT = 24
"""Sweeps; the one that was looked at longest ago goes first."""


class Shelf:
    """Sweeps by what was asked; of equal ones asked at once, one is made."""

    def __init__(self, uploads: Path) -> None:
        self._uploads = uploads
        self._kept: OrderedDict[str, asyncio.Task[Swept]] = OrderedDict()

    async def swept(self, asked: Asked) -> Swept:
        """The sweep, made in a thread where it was not before."""
        key = _key(asked)
        task = self._kept.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._kept[key] = asyncio.create_task(asyncio.to_thread(swept, asked, self._uploads))
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return await asyncio.shield(task)


def _key(asked: Asked) -> str:
    by = asked.by.name if asked.by else ""
    return json.dumps([asked.settings, asked.vary.name, asked.values, by, asked.lines], sort_keys=True)
