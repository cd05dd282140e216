"""Resources that take work in the order it comes: the device, the host's cores, both directions of the host link,
drives read and written, and the network between ranks.

Every piece of work starts when its lane is free and what it waits for is done, so one pass over the pieces gives all
times: end = max(lane free, after) + duration.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from orrery.execution.offload.tiers import Tiers

Lane = Literal["gpu", "cpu", "to_gpu", "to_host", "read", "write", "network"]
LANES: tuple[Lane, ...] = ("gpu", "cpu", "to_gpu", "to_host", "read", "write", "network")


class Lanes:
    """When each lane is next free, and how long it has been busy."""

    __slots__ = ("_busy_s", "_free_s", "_tiers")

    def __init__(self, tiers: Tiers) -> None:
        self._tiers = tiers
        self._free_s = dict.fromkeys(LANES, 0.0)
        self._busy_s = dict.fromkeys(LANES, 0.0)

    def run(self, lane: Lane, duration_s: float, *after_s: float) -> float:
        """Put ``duration_s`` of work on a lane, to start when all of ``after_s`` have passed; when it ends."""
        if lane == "to_host" and not self._tiers.is_link_duplex:
            lane = "to_gpu"
        start_s = self._free_s[lane]
        if duration_s <= 0.0:
            return max(after_s, default=start_s)
        for s in after_s:  # of two or three, and asked a million times by a search: max takes twice as long
            if s > start_s:
                start_s = s
        end_s = self._free_s[lane] = start_s + duration_s
        self._busy_s[lane] += duration_s
        return end_s

    def to_gpu(self, moved_bytes: float, *after_s: float) -> float:
        """Copy up the host link."""
        return self.run("to_gpu", moved_bytes / self._tiers.host_link_each_way_bytes_per_s, *after_s)

    def to_host(self, moved_bytes: float, *after_s: float) -> float:
        """Copy down the host link, into pinned memory."""
        return self.run("to_host", moved_bytes / self._tiers.host_link_each_way_bytes_per_s, *after_s)

    def read(self, moved_bytes: float, *after_s: float) -> float:
        """From the drives to host memory."""
        return self.run("read", moved_bytes / self._tiers.nvme_read_bytes_per_s, *after_s)

    def write(self, moved_bytes: float, *after_s: float) -> float:
        """From host memory to the drives."""
        return self.run("write", moved_bytes / self._tiers.nvme_write_bytes_per_s, *after_s)

    def share(self, moved_bytes: float, *after_s: float) -> float:
        """Gather or scatter ``moved_bytes`` between the ranks: each rank passes all but its own part."""
        ranks = self._tiers.num_ranks
        return self.run("network", moved_bytes * (ranks - 1) / ranks / self._tiers.collective_bytes_per_s, *after_s)

    def host_update(self, num_parameters: float, update_bytes: float, *after_s: float, beside: float = 0.0) -> float:
        """The host's optimizer over parameters of ``update_bytes`` each.

        The slower of its cores and of the memory that it shares with ``beside`` bytes a parameter of other traffic.
        """
        t = self._tiers
        moved, shared = num_parameters * update_bytes, num_parameters * (update_bytes + beside)
        return self.run("cpu", max(moved / t.update_bytes_per_s, shared / t.host_memory_bytes_per_s), *after_s)

    def device_update(self, num_parameters: float, update_bytes: float, *after_s: float) -> float:
        """The optimizer on the device, bound by its memory."""
        return self.run("gpu", num_parameters * update_bytes / self._tiers.gpu_memory_bytes_per_s, *after_s)

    @property
    def end_s(self) -> float:
        """When the last lane is free."""
        return max(self._free_s.values())

    @property
    def busy_s(self) -> Mapping[str, float]:
        """Seconds that each lane has worked."""
        return {str(lane): s for lane, s in self._busy_s.items()}


Fetch = Callable[[float], float]
Sink = Callable[[float], float | None]

FP32_BYTES = 4.0
"""Bytes of a gradient that waits on the drives for its update."""

STAGED_LAYERS = 2
"""Layers that wait in host memory, read from the drives before the device has room for them."""


def staged(read: Fetch, copy: Fetch, depth: int = STAGED_LAYERS) -> Fetch:
    """A fetch by way of host memory: ``read`` runs ``depth`` layers ahead of the device's buffers, ``copy`` waits."""
    freed_s: list[float] = []

    def fetch(free_s: float) -> float:
        freed_s.append(free_s)
        return copy(max(free_s, read(freed_s[max(0, len(freed_s) - 1 - depth)])))

    return fetch


def walk(
    lanes: Lanes, num_layers: int, compute_s: float, fetch: Fetch, sink: Sink, *, depth: int = 2, start_s: float = 0.0
) -> float:
    """Layers one after the other, each fetched up to ``depth`` - 1 layers ahead into ``depth`` buffers.

    ``fetch`` is told when a buffer is free and says when the layer is there; ``sink`` is told when a layer is done, and
    says until when the device has to wait before the next one, if it has to.
    """
    ends: list[float] = []
    ready: list[float] = []
    waits_s = start_s
    for i in range(num_layers):
        while len(ready) < min(num_layers, i + depth):
            j = len(ready)
            ready.append(fetch(ends[j - depth] if j >= depth else start_s))
        ends.append(lanes.run("gpu", compute_s, ready[i], waits_s))
        waits_s = sink(ends[-1]) or 0.0
    return max(ends[-1], waits_s)
