"""Weights on their way into device memory: read from where they are, handled by the host, copied over the host's link.

    read = bytes of a node / min(rate of the path, streams x rate of one stream)
    host = bytes that one process handles / rate of pageable memory
    copy = bytes of a device / (share x rate of the host's link)

A streaming loader does the three at once, so that the longest counts; one that maps files and takes a tensor at a time
reads in one stream and waits for it, and each of its processes handles every tensor in full before it keeps its part.
What is no file system (a registry, an object store) it reads after all files have been fetched, in many streams.
"""

from dataclasses import dataclass
from typing import Literal

Limit = Literal["reading", "host", "copy", "registration"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Where weights come from. Rates of 0 are no limit; ``is_per_device`` where every device has a link of its own."""

    name: str
    bytes_per_s: float
    stream_bytes_per_s: float = 0.0
    num_streams: int = 1  # of one process, where the loader opens several
    is_per_device: bool = False
    is_fetched: bool = False  # no file system: without a streaming loader files are brought to the disk first


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """Way in which an engine's process loads weights."""

    name: str
    is_streaming: bool  # reads in many streams, straight into pinned memory, while the device copies
    reads_whole: bool  # every process handles every tensor of the model


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaWeights:
    """A model's bytes over devices."""

    model_bytes: float  # one copy
    device_bytes: float  # on the fullest device
    node_devices: int  # devices of one node that load at once

    @property
    def node_bytes(self) -> float:
        """Distinct bytes that one node reads."""
        return min(self.model_bytes, self.device_bytes * self.node_devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates of a host and its links."""

    link_bytes_per_s: float  # host to one device
    copy_frac: float  # of it that copies from pinned memory reach
    host_bytes_per_s: float  # one process through pageable memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How long weights take, and which of the parts decides."""

    seconds_s: float
    read_s: float
    host_s: float
    copy_s: float
    bytes_per_s: float  # of the path, as the loader uses it
    limit: Limit


def load(path: Path, loader: Loader, held: ReplicaWeights, rates: Rates) -> Load:
    """Return the time to bring a replica's weights from a path into the memory of all of its devices."""
    if path.is_per_device:
        rate, size = path.bytes_per_s, held.device_bytes
    else:
        streams = path.num_streams if loader.is_streaming or path.is_fetched else 1
        streams *= held.node_devices if loader.is_streaming else 1
        limits = [r for r in (path.bytes_per_s, streams * path.stream_bytes_per_s) if r > 0.0]
        rate = min(limits) if limits else 0.0
        size = held.model_bytes if loader.reads_whole and held.node_devices > 1 else held.node_bytes
    read_s = size / rate if rate else 0.0
    copy_s = 0.0 if path.is_per_device else held.device_bytes / (rates.copy_frac * rates.link_bytes_per_s)
    handled = held.model_bytes if loader.reads_whole else held.device_bytes
    host_s = 0.0 if loader.is_streaming or path.is_per_device else handled / rates.host_bytes_per_s
    parts: dict[Limit, float] = {"reading": read_s, "host": host_s, "copy": copy_s}
    limit = max(parts, key=parts.__getitem__)
    seconds = max(read_s, copy_s) if loader.is_streaming else read_s + max(host_s, copy_s)
    return Load(seconds_s=seconds, read_s=read_s, host_s=host_s, copy_s=copy_s, bytes_per_s=rate, limit=limit)
