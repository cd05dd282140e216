"""Every fact that a device file needs: what the system says, what was measured, and what is assumed and says so."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orrery.base.errors import OrreryError
from orrery.base.sources import Basis, Fact, Source
from orrery.calibrate.device.draft import ANCHOR_SIDE, HEADROOM, anchor_bytes
from orrery.calibrate.measure.backends.backend import Backend, Unsupported
from orrery.calibrate.measure.power import Meter, mean_power_w, meters
from orrery.hardware.device import Device
from orrery.kernels.ops import Gemm

POWER_S = 1.0
"""How long power is read, idle and at work."""

CLOCK = "compute_clock_hz"
"""A known device keeps the clock that its peaks are stated at; drivers tell the highest that one processor runs at."""

HEAVY = ("bf16", "fp16")
"""Formats whose products keep matrix units busy, where there are any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts by name, and what could not be read."""

    stated: Mapping[str, Fact]
    absent: tuple[str, ...]


def facts_of(device: Device, backend: Backend, run: Source) -> Facts:
    """Contents of ``device``'s file. Facts of a known device stay, except those that were measured here."""
    power, absent = _power(backend, run)
    side, moved = ANCHOR_SIDE[backend.device_kind], anchor_bytes(backend)
    found = {fact.name: fact for fact in _assumed(device)}
    found |= device.facts
    found |= {name: fact for name, fact in backend.facts().items() if not (device.facts and name == CLOCK)}
    if not device.facts:
        found |= {
            f"dense_{format}_flops_per_s": _measured(
                f"dense_{format}_flops_per_s",
                peak,
                run,
                f"product of {side} x {side} x {side} over {HEADROOM} of the peak",
            )
            for format, peak in device.dense_flops_per_s.items()
        }
        found["memory_bandwidth_bytes_per_s"] = _measured(
            "memory_bandwidth_bytes_per_s",
            device.memory_bandwidth_bytes_per_s,
            run,
            f"one stream of reads over {moved} bytes, over {HEADROOM} of the peak",
        )
    found |= {fact.name: fact for fact in power}
    order = {fact.name: i for i, fact in enumerate(_assumed(device))}
    return Facts(stated=dict(sorted(found.items(), key=lambda item: order.get(item[0], -1))), absent=absent)


def _measured(name: str, value: float, run: Source, at: str) -> Fact:
    return Fact(name=name, value=value, basis=Basis.MEASURED, source=run, at=at)


def _power(backend: Backend, run: Source) -> tuple[list[Fact], tuple[str, ...]]:
    """Idle power, and the limit that the board keeps to; where it tells none, power at work stands for it."""
    here = meters()
    meter = _meter(backend, here.found)
    if meter is None:
        return [], here.absent
    at = f"{meter.measures}, {{}} for {POWER_S:g} s"
    try:
        idle = _measured("idle_power_w", mean_power_w(_rest, meter, POWER_S), run, at.format("idle"))
        if (limit_w := meter.limit_w()) is not None:
            limit = _measured("power_limit_w", limit_w, run, f"{meter.measures}, the limit in force")
            return [idle, limit], here.absent
        busy_w, format = _at_work(backend, meter)
    except OrreryError as error:
        return [], (*here.absent, str(error))
    limit_w = max(busy_w, float(idle.value))
    return [idle, _measured("power_limit_w", limit_w, run, at.format(f"{format} products"))], here.absent


def _at_work(backend: Backend, meter: Meter) -> tuple[float, str]:
    """Power of the product that keeps the most units busy, and its format."""
    formats, side = backend.formats(), ANCHOR_SIDE[backend.device_kind]
    format = next((f for f in HEAVY if f in formats), formats[0])
    busy = backend.prepare(Gemm(m=side, n=side, k=side, format=format, is_cold=False))
    if isinstance(busy, Unsupported):
        raise OrreryError(f"No power at work was read: {busy.reason}.")

    def work() -> None:
        busy.call()
        backend.synchronise()

    return mean_power_w(work, meter, POWER_S), format


def _meter(backend: Backend, found: Sequence[Meter]) -> Meter | None:
    """The meter of the backend's own board; of several boards that do not say which they are, none."""
    kind = "rapl" if backend.device_kind == "cpu" else ("nvml", "amdgpu")
    mine = [meter for meter in found if meter.name.startswith(kind)]
    own = [meter for meter in mine if meter.board and meter.board == backend.board]
    return next(iter(own), mine[0] if len(mine) == 1 else None)


def _rest() -> None:
    time.sleep(0.01)


def _assumed(device: Device) -> Iterator[Fact]:
    """Facts that were not measured here, with the reason; in the file's order."""
    bandwidth = device.memory_bandwidth_bytes_per_s
    own = "exchanges between processes pass through the memory; their constants are measured"
    net = "no second machine was measured; 10 Gb Ethernet is taken"
    for name, value, note in (
        ("vector_flops_per_s", device.vector_flops_per_s, "the FP32 peak: the vector units are what multiplies"),
        ("num_compute_units", float(device.num_compute_units), "the system does not tell"),
        ("compute_clock_hz", device.compute_clock_hz, "the system does not tell"),
        ("last_level_cache_bytes", device.last_level_cache_bytes, "the system does not tell"),
        ("power_limit_w", device.power_limit_w, "no meter can be read here"),
        ("idle_power_w", device.idle_power_w, "no meter can be read here"),
        ("num_devices_per_node", 2.0, "two processes of this machine count as two devices"),
        ("num_scaleup_devices", 2.0, "two processes of this machine count as two devices"),
        ("scaleup_name", "loopback", own),
        ("scaleup_each_way_bytes_per_s", bandwidth, own),
        ("scaleup_latency_s", 2e-5, "a system call at each end; the constants are measured"),
        ("scaleup_topology", "bus", own),
        ("scaleup_has_reduction", False, own),
        ("scaleout_name", "10 Gb Ethernet", net),
        ("scaleout_each_way_bytes_per_s", 1.25e9, net),
        ("scaleout_latency_s", 5e-5, net),
        ("scaleout_topology", "switch", net),
        ("scaleout_has_reduction", False, net),
        ("host_name", "own memory", "the processor is the host"),
        ("host_each_way_bytes_per_s", bandwidth, "the memory bandwidth itself"),
        ("host_latency_s", 2e-6, "no copy, only a hand-over"),
    ):
        yield Fact(name=name, value=value, basis=Basis.ASSUMED, note=note)
