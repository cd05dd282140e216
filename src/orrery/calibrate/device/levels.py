"""Bandwidth of each level of memory, and the time of a kernel launch: for the record of a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orrery.calibrate.measure.backends.backend import Backend, Unsupported
from orrery.calibrate.measure.probes import Launch, Probe, Stream
from orrery.calibrate.measure.quiet import QuietSampler

FOOTPRINTS = tuple(2**i for i in range(14, 29, 2))
"""16 KiB, which any first-level cache holds, to 256 MiB, which few last-level ones do."""

EACH_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """Bytes a second by footprint in bytes, and seconds of the smallest kernel."""

    stream_bytes_per_s: Mapping[str, float]
    launch_s: float

    def to_json(self) -> dict[str, Any]:
        """Return the levels as they stand in a device file."""
        return {"stream_bytes_per_s": dict(self.stream_bytes_per_s), "launch_s": self.launch_s}


def levels_of(backend: Backend, quiet: QuietSampler) -> Levels:
    """Measured now; a footprint that cannot be measured is left out."""
    bare = backend.bare()  # a launch takes longer than a small footprint
    rates: dict[str, float] = {}
    for footprint in FOOTPRINTS:
        if time_s := _time_s(bare, quiet, Stream(footprint_bytes=footprint, kind="read")):
            rates[str(footprint)] = float(f"{footprint / time_s:.4g}")
    return Levels(stream_bytes_per_s=rates, launch_s=float(f"{_time_s(backend, quiet, Launch()):.4g}"))


def _time_s(backend: Backend, quiet: QuietSampler, probe: Probe) -> float:
    got = quiet.time(backend, probe, budget_s=EACH_S)
    return 0.0 if isinstance(got, Unsupported) else got[0].time_s
