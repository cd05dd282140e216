"""The device's roofs, and where the operations of a step stand under them, by the format that they compute in."""

from orrery.base.errors import OutOfRange
from orrery.drawing import Op, Roof, Slope, roofline
from orrery.hardware.device import Device
from orrery.numerics.registry import find_format
from orrery.reports.ops import STEPS, OpWork, StepKind, ops_of
from orrery.serving.estimate import Estimate

VECTOR = "vector units"
MAX_OTHERS = 2
"""Roofs of formats that nothing computes in, drawn dashed: what a narrower format would bring."""


def drawn(e: Estimate, step: StepKind, href: str = "") -> str:
    """Matrix work under the roof of its format, the rest under that of the vector units."""
    device = e.deployment.cluster.device
    ops = [op for op in ops_of(e, step) if op.flops > 0 and op.bytes > 0]
    marks = [
        Op(op.name, op.flops / op.bytes, op.flops / op.time_s, op.time_s, _kind(device, op), href=href) for op in ops
    ]
    return roofline(
        [Slope("memory", device.memory_bandwidth_bytes_per_s)],
        roofs(device, ops),
        marks,
        title=f"Under the roofs of {device.title or device.name}: {STEPS[step]}",
        says="Left of the corner bandwidth is the limit, right of it arithmetic. Larger marks take more of the time.",
    )


def _kind(device: Device, op: OpWork) -> str:
    return _rate(device, op.format)[0] if op.is_matrix else VECTOR


def _rate(device: Device, name: str) -> tuple[str, float]:
    """The rate that a format computes at: 4-bit weights beside 16-bit activations run at the 16-bit rate."""
    found = find_format(name)
    try:
        return device.peak_flops_per_s(found.rates if found else (name,))
    except OutOfRange:
        return VECTOR, device.vector_flops_per_s


def roofs(device: Device, ops: list[OpWork]) -> list[Roof]:
    """Roofs of the formats that are used, of the next faster ones (dashed), and of the vector units."""
    used = dict(_rate(device, op.format) for op in ops if op.is_matrix)
    used.pop(VECTOR, None)
    top = max(used.values(), default=0.0)
    faster: dict[float, list[str]] = {}
    for name, rate in device.dense_flops_per_s.items():
        if rate > 1.01 * top:
            faster.setdefault(rate, []).append(name)
    others = sorted(faster.items())[:MAX_OTHERS]
    found = [Roof(name, rate) for name, rate in used.items()]
    found += [Roof(f"{'/'.join(names)}, not used", rate, is_dashed=True) for rate, names in others]
    if device.vector_flops_per_s > 0 and any(not op.is_matrix for op in ops):
        found.append(Roof(VECTOR, device.vector_flops_per_s, is_dashed=True))
    return found
