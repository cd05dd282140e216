"""Operators as libraries run them: the kernels floor's answer, its interval, and whose constants it rests on."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from orrery import kernels
from orrery.base.cost import Spread
from orrery.base.errors import OutOfRange
from orrery.execution.formats import can_multiply
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.energy import power_w
from orrery.kernels.ops import (
    AttentionDecode,
    AttentionPrefill,
    Elementwise,
    Gemm,
    LatentDecode,
    LatentPrefill,
    MoE,
    Op,
    Timing,
)
from orrery.kernels.residual.error_range import Spreads
from orrery.numerics.registry import get_format
from orrery.scenario.kernel.operator import Found, Way, Work

ALL = "all"


def library_ways(
    work: Work,
    measured_as: str,
    formats: tuple[str, ...],
    make: Callable[[str], Op],
    details: Callable[[Op, Device, str], Mapping[str, Any]] | None = None,
    engine_of: Callable[[str, Device, str], str] = lambda engine, device, format: engine,
) -> Iterator[Way]:
    """A way for every format and engine; ``measured_as`` is what the constants are filed under, ``engine_of`` says
    whose kernels an engine calls."""
    for format in formats:
        for engine in engines(work, measured_as):
            find = partial(_later, make, format, work.device, engine_of(engine, work.device, format), details)
            yield Way(variant="library", format=format, engine=engine, find=find)


def engines(work: Work, measured_as: str) -> tuple[str, ...]:
    """Engines whose kernels count: as asked; ``all``: every one that was measured on this device or its relatives."""
    text = work.list_of("engine", ("",))
    if text != (ALL,):
        return text
    found = {
        maker: None for (op, _, maker), c in work.device.calibrations.items() if op == measured_as and c.origin != "any"
    }
    return tuple(found) or ("",)


def _later(
    make: Callable[[str], Op],
    format: str,
    device: Device,
    engine: str,
    details: Callable[[Op, Device, str], Mapping[str, Any]] | None,
) -> Found:
    return library(make(format), device, engine, details(make(format), device, engine) if details else {})


def library(op: Op, device: Device, engine: str, details: Mapping[str, Any]) -> Found:
    """Prediction of the kernels floor for one op: the number that the scorecard compares with measured rows."""
    if not isinstance(op, Elementwise):
        check_units(op.format, device)
    timing, constants = kernels.predict_with_constants(op, device, engine)
    moved, time_s = _one(timing.bytes), _one(timing.time_s)
    details = {**details, **_energy(op, device, timing)}
    memory_s = _one(timing.memory_s)
    if not getattr(op, "is_cold", False):
        memory_s *= max(moved - device.last_level_cache_bytes, 0.0) / max(moved, 1.0)
    return Found(
        time_s=time_s,
        flops=_one(timing.flops),
        bytes=moved,
        roofs_s={"compute": _one(timing.compute_s), "memory": memory_s},
        others_s={"launch": _one(timing.overhead_s)},
        spread=one_spread(kernels.spreads(op, timing, device, engine)),
        engine=constants.engine,
        details=details,
        because=(origin(constants, device),),
        op=op,
    )


KINDS: Mapping[type[Op], str] = {
    Gemm: "gemm",
    AttentionPrefill: "attention_prefill",
    AttentionDecode: "attention_decode",
    LatentPrefill: "mla_prefill",
    LatentDecode: "mla_decode",
    MoE: "moe",
}
"""Names of ops in measured tables of power."""


def _energy(op: Op, device: Device, timing: Timing) -> dict[str, float]:
    """Watts while a loop repeats the op, and joules of one; nothing where nobody measured what this device draws."""
    time_s = _one(timing.time_s)
    name = KINDS.get(type(op), op.kind if isinstance(op, Elementwise) else "")
    if not name or not time_s:
        return {}
    try:
        drawn = power_w(device, get_format(op.format).name, timing.flops / time_s, timing.bytes / time_s, name)
    except OutOfRange:
        return {}
    return {"power_w": _one(drawn), "energy_j": _one(drawn) * time_s}


def check_units(format: str, device: Device) -> None:
    """Refuse to multiply in a format that the matrix units do not take; weights alone may be of any."""
    number = get_format(format)
    if number.weight_only or number.element_bits >= SIXTEEN_BITS or device.kind == "cpu":
        return
    if not can_multiply(number.name, device):
        raise OutOfRange(
            f"{device.name} has no matrix units for {number.name}; it has {', '.join(device.dense_flops_per_s)}. "
            f"Weights alone may be narrower, such as int4_weight_only or int5/128:fp16."
        )


SIXTEEN_BITS = 16


def one_spread(found: Spread | Spreads) -> Spread:
    """The spread of a single answer."""
    return found if isinstance(found, Spread) else found.only()


def origin(constants: Calibration, device: Device) -> str:
    """Describe where the constants come from."""
    where = {"device": f"measured on {device.name}", "generation": f"measured on relatives of {device.name}"}
    by = constants.engine or "its library"
    return f"{where.get(constants.origin, 'measured on other devices')} ({constants.op} in {constants.format} by {by})"


def _one(value: Any) -> float:
    return float(np.asarray(value).item())
