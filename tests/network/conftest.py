from collections.abc import Callable
from typing import Any

import pytest

from orrery.base.cost import Spread
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device, Link

BUFFERS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
CONSTANTS = {
    "launch_s": 4e-6,
    "low_latency_step_s": 8e-7,
    "low_latency_rate_frac": 0.1,
    "block_launch_s": 1e-6,
    "block_step_s": 9e-7,
    "block_rate_frac": 0.5,
    "bulk_launch_s": 8e-6,
    "bulk_step_s": 5e-7,
    "bulk_rate_frac": 0.9,
    "staging_ratio": 0.3,
    "pipeline_ratio": 0.5,
    "in_switch_launch_s": 1e-5,
    "in_switch_step_s": 2e-6,
    "in_switch_rate_frac": 0.7,
    "contention_ratio": 2.0,
    "scaleout_step_s": 1.5e-5,
    "scaleout_rate_frac": 0.7,
}
FUSED = {
    "launch_s": 3e-6,
    "one_shot_step_s": 9e-7,
    "one_shot_peer_s": 1e-7,
    "one_shot_rate_frac": 0.6,
    "two_shot_step_s": 2e-6,
    "two_shot_rate_frac": 0.6,
}
EXCHANGE = {
    "launch_s": 1e-5,
    "expert_s": 2e-8,
    "token_s": 1.5e-6,
    "wire_rate_frac": 0.7,
    "staging_ratio": 0.2,
    "overlap_power": 1.2,
    "scaleout_step_s": 1.5e-5,
    "scaleout_rate_frac": 0.7,
}
SPREAD = Spread(low_80_ratio=0.9, high_80_ratio=1.1, low_95_ratio=0.8, high_95_ratio=1.3)


def _calibration(op: str, library: str, constants: dict[str, float], time_ratio: float) -> Calibration:
    scaled = {k: v * (time_ratio if k.endswith("_s") else 1.0) for k, v in constants.items()}
    return Calibration(op=op, format="any", engine=library, origin="device", constants=scaled, spread=SPREAD)


def _device(*, time_ratio: float = 1.0, rate_ratio: float = 1.0, **scaleup: Any) -> Device:
    """A device with every algorithm measured; ``time_ratio`` stretches whatever is counted in seconds."""
    link: dict[str, Any] = {
        "name": "fast",
        "each_way_bytes_per_s": 400e9 * rate_ratio / time_ratio,
        "latency_s": 1e-6 * time_ratio,
        "num_devices": 8,
        "has_reduction": True,
    }
    found = [_calibration(op, "nccl", CONSTANTS, time_ratio) for op in BUFFERS]
    found.append(_calibration("all_reduce", "vllm", CONSTANTS | FUSED, time_ratio))
    found += [
        _calibration(op, library, EXCHANGE | {route: 1.0}, time_ratio)
        for op in ("moe_dispatch", "moe_combine")
        for library, route in (("deepep-low-latency", "per_expert"), ("tensorrt-llm-two-sided", "per_device"))
    ]
    slow = Link(
        name="slow", each_way_bytes_per_s=50e9 * rate_ratio / time_ratio, latency_s=5e-6 * time_ratio, num_devices=0
    )
    return Device(
        name="any",
        title="Any",
        vendor="",
        kind="gpu",
        generation="",
        memory_capacity_bytes=1e11,
        memory_bandwidth_bytes_per_s=3e12,
        dense_flops_per_s={"bf16": 1e15},
        vector_flops_per_s=1e14,
        num_compute_units=132,
        compute_clock_hz=1.5e9,
        last_level_cache_bytes=5e7,
        power_limit_w=700.0,
        idle_power_w=70.0,
        scaleup=Link(**(link | scaleup)),
        scaleout=slow,
        host=slow,
        devices_per_node=8,
        calibrations={(c.op, c.format, c.engine): c for c in found},
    )


@pytest.fixture(scope="module")
def make_device() -> Callable[..., Device]:
    """Makes a device whose links and constants are round numbers."""
    return _device
