"""Server processors and machines built of them: clocks under a power limit, caches, channels, sockets.

    clock      what is asked for, or all-core clock x (power left to the cores / activity)^(1/3), if that is less: a
               core's power grows with the cube of its clock, and at the all-core clock integer work takes it all
    bandwidth  channels x transfers x 8 bytes / (reads / r + writes / w), with the shares r and w that reads alone
               and writes alone reach of it

The facts are in ``facts/processors.toml``; latencies and shares of bandwidth there are measured.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orrery.base.errors import UnknownName
from orrery.base.knobs import check_range
from orrery.base.sources import read_facts
from orrery.predictors.tenants.contention import Host

FILE = Path(__file__).parent / "facts" / "processors.toml"

UNCORE_FRAC = 0.25
"""Share of the power limit that mesh, caches and controllers take; assumed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor:
    """One socket as it is sold."""

    name: str
    num_cores: int
    base_clock_hz: float
    all_core_clock_hz: float
    last_level_cache_bytes: float
    power_limit_w: float
    memory_hz: float  # transfers of a channel
    num_most_sockets: int
    has_package_memory: bool
    is_released: bool  # scores of it are in the released part of PerfCastDB


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Sockets of one processor, as somebody set them up."""

    processor: Processor
    num_sockets: int = 2
    num_threads_per_core: int = 2
    num_channels: int = 8  # filled, of a socket
    memory_hz: float = 4.8e9
    power_frac: float = 1.0  # of the processor's own limit
    has_turbo: bool = True

    def __post_init__(self) -> None:
        check_range(self, "num_sockets", 1, self.processor.num_most_sockets)
        check_range(self, "num_channels", 1, 8)
        check_range(self, "power_frac", 2 * UNCORE_FRAC, 1.0)

    @property
    def num_threads(self) -> int:
        """Hardware threads of all sockets."""
        return self.num_sockets * self.processor.num_cores * self.num_threads_per_core

    def clock_hz(self, activity_ratio: float = 1.0) -> float:
        """With all cores busy, drawing so many times the power of integer work at the same clock."""
        most = self.processor.all_core_clock_hz
        highest_clock_hz = most if self.has_turbo else self.processor.base_clock_hz
        cores_frac = (self.power_frac - UNCORE_FRAC) / (1.0 - UNCORE_FRAC)
        return min(highest_clock_hz, most * (cores_frac / activity_ratio) ** (1 / 3))

    def socket_bytes_per_s(self, written_frac: float = 0.0) -> float:
        """Sustained by one socket's memory, of traffic with that share of writes."""
        read, write = fact("read_frac"), fact("write_frac")
        nominal = self.num_channels * min(self.memory_hz, self.processor.memory_hz) * fact("channel_bytes")
        if self.processor.has_package_memory:
            nominal = fact("package_read_bytes_per_s") / read
        return nominal / ((1.0 - written_frac) / read + written_frac / write)

    def socket(self, *, written_frac: float = 0.0, activity_ratio: float = 1.0, is_spread: bool = False) -> Host:
        """One socket as a host; ``is_spread`` where its misses go to the memories of all sockets alike."""
        local = 1.0 / self.num_sockets if is_spread else 1.0
        return Host(
            num_cores=self.processor.num_cores,
            num_threads_per_core=self.num_threads_per_core,
            clock_hz=self.clock_hz(activity_ratio),
            last_level_cache_bytes=self.processor.last_level_cache_bytes,
            memory_bandwidth_bytes_per_s=self.socket_bytes_per_s(written_frac),
            cache_hit_s=fact("cache_hit_s"),
            memory_s=local * fact("memory_s") + (1.0 - local) * fact("remote_memory_s"),
        )


@cache
def processors() -> dict[str, Processor]:
    """Every processor of the file, by name."""
    _, rest = read_facts(FILE)
    return {row["name"]: _processor(row["name"], row["value"], row["from"]) for row in rest["processors"]["rows"]}


def get_processor(name: str) -> Processor:
    """The processor of that name."""
    if (found := processors().get(name)) is None:
        raise UnknownName("processor", name, processors())
    return found


@cache
def fact(name: str) -> float:
    """A number of the file that all processors share."""
    facts, _ = read_facts(FILE)
    return float(facts[name].value)


def _processor(name: str, row: list[float], source: str) -> Processor:
    cores, base, all_core, cache_mb, watts, transfers, sockets, package = row
    return Processor(
        name=name,
        num_cores=int(cores),
        base_clock_hz=base * 1e9,
        all_core_clock_hz=all_core * 1e9,
        last_level_cache_bytes=cache_mb * 2**20,
        power_limit_w=watts,
        memory_hz=transfers * 1e6,
        num_most_sockets=int(sockets),
        has_package_memory=bool(package),
        is_released=source == "perfcastdb",
    )
