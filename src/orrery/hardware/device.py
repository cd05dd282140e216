"""One accelerator: what its makers state, and what was measured on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from orrery.base.errors import OutOfRange
from orrery.base.sources import Fact
from orrery.hardware.calibration import Calibration
from orrery.hardware.power_mode import PowerMode
from orrery.hardware.roofs import Roofs


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A way for bytes to travel between devices; bandwidth is per device and direction."""

    name: str  # "NVLink 4", "PCIe 4.0 x16", "InfiniBand NDR"
    each_way_bytes_per_s: float
    latency_s: float
    topology: str = "switch"  # "switch", "mesh", "ring", "torus-2d", "torus-3d", "bus"
    num_devices: int = 0  # how many devices it joins at most; 0 = no limit
    has_reduction: bool = False  # the switch itself can add


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Device:
    """An accelerator as a set of roofs. Peak rates are dense; a multiply-add is two flops."""

    name: str
    title: str
    vendor: str
    kind: str  # "gpu", "tpu", "npu", "cpu", "dataflow", "pim"
    generation: str  # architecture: "hopper", "cdna3"
    memory_capacity_bytes: float
    memory_bandwidth_bytes_per_s: float
    dense_flops_per_s: Mapping[str, float]  # by format of the operands
    vector_flops_per_s: float  # FP32 outside the matrix units
    num_compute_units: int  # SMs, CUs, cores
    compute_clock_hz: float  # boost
    last_level_cache_bytes: float
    power_limit_w: float
    idle_power_w: float
    scaleup: Link  # inside the fast domain; PCIe where there is nothing better
    scaleout: Link  # between nodes, per device
    host: Link  # to the host's memory
    devices_per_node: int = 8
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
    calibrations: Mapping[tuple[str, str, str], Calibration] = field(
        default_factory=dict[tuple[str, str, str], Calibration]
    )
    host_power_w: float = 0.0  # of the machine around it (CPUs, memory, fans, network), a device's share of it
    host_time_ratio: float = 1.0  # how long one thread of its host takes, over one of a usual x86 server
    battery_j: float = 0.0  # of a device that has one; 0: it has none, or none is known
    sustained_power_w: float = 0.0  # kept up for ever without a fan; 0: its power limit, as far as is known
    thermal_time_constant_s: float = 0.0  # until it is two thirds of the way to its final warmth; 0: not known
    num_lookup_tables: int = 0  # of an FPGA's fabric; 0: it has none, or none is known
    num_multiplier_blocks: int = 0  # beside them
    near_memory: Roofs | None = None  # of a processor on the logic dies of its memory, or at its banks (pim)
    power_modes: tuple[PowerMode, ...] = ()
    unrest_ratio: float = 1.0  # how far its speed moved while measured: ends of intervals lie so much further out
    notes: tuple[str, ...] = ()  # what to tell the reader: "'a100' was taken as a100-sxm-80gb"

    def peak_flops_per_s(self, rates: tuple[str, ...]) -> tuple[str, float]:
        """The first of ``rates`` (a Format's) that this device has, and its dense peak."""
        for rate in rates:
            if peak := self.dense_flops_per_s.get(rate):
                return rate, peak
        raise OutOfRange(
            f"{self.name} states no peak rate for any of {', '.join(rates)}; "
            f"it has {', '.join(self.dense_flops_per_s)}."
        )
