"""Curves that were made: kept in memory, so that a slider that moves along them has nothing to compute."""

import asyncio
import json
from collections import OrderedDict
from pathlib import Path

from orrery.web.sweep.curves import Swept, swept
from orrery.web.sweep.inputs import SweepInputs

MAX_KEPT = 24
"""Sweeps; the one that was looked at longest ago goes first."""


class SweepCache:
    """Sweeps by what was asked; of equal ones asked at once, one is made."""

    def __init__(self, uploads: Path) -> None:
        self._uploads = uploads
        self._saved: OrderedDict[str, asyncio.Task[Swept]] = OrderedDict()

    async def swept(self, inputs: SweepInputs) -> Swept:
        """The sweep, made in a thread where it was not before."""
        key = _key(inputs)
        task = self._saved.get(key)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._saved[key] = asyncio.create_task(asyncio.to_thread(swept, inputs, self._uploads))
        self._saved.move_to_end(key)
        while len(self._saved) > MAX_KEPT:
            self._saved.popitem(last=False)
        return await asyncio.shield(task)


def _key(inputs: SweepInputs) -> str:
    by = inputs.by.name if inputs.by else ""
    return json.dumps([inputs.settings, inputs.vary.name, inputs.values, by, inputs.lines], sort_keys=True)
