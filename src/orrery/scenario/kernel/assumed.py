"""Roofs of a device that no source states, and how far a time hangs on them."""

from collections.abc import Iterator

from orrery.base.sources import Basis
from orrery.hardware.device import Device
from orrery.scenario.kernel.answer import KernelRow


def assumed_roof(row: KernelRow, device: Device) -> Iterator[str]:
    """The note on a row that nothing was measured of and whose roof is assumed: its time at twice and at half of it."""
    names = {
        "compute": (f"dense_{row.format}_flops_per_s", "dense_fp16_flops_per_s"),
        "memory": ("memory_bandwidth_bytes_per_s",),
    }.get(row.bound_by, ())
    fact = next((device.facts[name] for name in names if name in device.facts), None)
    if row.interval is not None or fact is None or fact.basis is not Basis.ASSUMED or row.bound_by not in row.roofs_s:
        return
    roof_s = row.roofs_s[row.bound_by]
    others_s = max((s for name, s in row.roofs_s.items() if name != row.bound_by), default=0.0)
    least_s = row.time_s - roof_s + max(roof_s / 2.0, others_s)
    yield (
        f"{row.variant}: {fact.name} of {device.name} is assumed ({fact.note}); twice or half of it gives "
        f"{least_s * 1e3:.3g} to {(row.time_s + roof_s) * 1e3:.3g} ms"
    )
