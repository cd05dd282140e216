"""Every fact that a device file needs: what the system says, what was measured, and what is assumed and says so."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orrery.base.errors import OrreryError
from orrery.base.sources import Basis, Fact, Source
from orrery.calibrate.device.draft import ANCHOR_BYTES, ANCHOR_SIDE, HEADROOM
from orrery.calibrate.measure.backends.backend import Backend, Unsupported
from orrery.calibrate.measure.power import mean_power_w, meters
from orrery.hardware.device import Device
from orrery.kernels.ops import Gemm

POWER_S = 1.0
"""How long power is read, idle and at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts by name, and what could not be read."""

    stated: Mapping[str, Fact]
    absent: tuple[str, ...]


def facts_of(device: Device, backend: Backend, run: Source) -> Facts:
    """Contents of ``device``'s file. Facts of a known device stay, except those that were measured here."""
    power, absent = _power(backend, run)
    side, moved = ANCHOR_SIDE[backend.device_kind], ANCHOR_BYTES[backend.device_kind]
    found = {fact.name: fact for fact in _assumed(device)}
    found |= device.facts
    found |= backend.facts()
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
    """Idle power and power at work, where a meter can be read."""
    here = meters()
    kind = "rapl" if backend.device_kind == "cpu" else ("nvml", "amdgpu")
    mine = [meter for meter in here.found if meter.name.startswith(kind)]
    if not mine:
        return [], here.absent
    side = ANCHOR_SIDE[backend.device_kind]
    busy = backend.prepare(Gemm(m=side, n=side, k=side, format=backend.formats()[0], is_cold=False))
    if isinstance(busy, Unsupported):
        return [], here.absent

    def work() -> None:
        busy.call()
        backend.synchronise()

    try:
        idle_w, busy_w = mean_power_w(_rest, mine[0], POWER_S), mean_power_w(work, mine[0], POWER_S)
    except OrreryError as error:
        return [], (*here.absent, str(error))
    at = f"{mine[0].measures}, {{}} for {POWER_S:g} s"
    return [
        _measured("idle_power_w", idle_w, run, at.format("idle")),
        _measured("power_limit_w", max(busy_w, idle_w), run, at.format("products")),
    ], here.absent


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
