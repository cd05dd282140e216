"""Devices of a node exchange over PCIe where a faster link was assumed: no bridge, no fabric manager, no peer access.

The fast link is replaced by a bus at the host link's rate x s; s below 1 is what shared switches and copies through
the host's memory leave.
"""

from dataclasses import replace
from functools import lru_cache

from orrery.base.units import text
from orrery.calibrate.compare.cause import Cause, between
from orrery.calibrate.compare.change import deployment_of, device_of, on_device
from orrery.calibrate.compare.run import Run, TrainingRun
from orrery.hardware.device import Device


def change(run: Run, severity: float) -> Run | None:
    """The host's bus between the devices of a node."""
    device = device_of(run)
    is_bus = device.scaleup.topology == "bus" or device.scaleup.each_way_bytes_per_s <= device.host.each_way_bytes_per_s
    return None if is_bus or _num_devices(run) == 1 else on_device(run, lambda d: _on_bus(d, severity))


@lru_cache(maxsize=256)
def _on_bus(device: Device, severity: float) -> Device:
    rate = device.host.each_way_bytes_per_s * severity
    return replace(
        device,
        scaleup=replace(
            device.scaleup,
            name=device.host.name,
            each_way_bytes_per_s=rate,
            topology="bus",
            has_reduction=False,
            num_devices=device.devices_per_node,
        ),
    )


def _num_devices(run: Run) -> int:
    """Devices that exchange anything."""
    if isinstance(run, TrainingRun):
        return run.layout.num_devices
    layout = deployment_of(run).layout
    return layout.num_devices if layout.ep > 1 else layout.tp * layout.pp


def describe(run: Run, severity: float) -> str:
    """The rate that is left beside the one that was assumed."""
    d = device_of(run)
    left, stated = (text(x, "bytes") for x in (d.host.each_way_bytes_per_s * severity, d.scaleup.each_way_bytes_per_s))
    return f"{left}/s each way between devices ({d.host.name}), not {stated}/s ({d.scaleup.name})"


CAUSE = Cause(
    name="pcie-instead-of-nvlink",
    title="devices that talk over PCIe, not over the fast link",
    ladder=between(1.0, 0.08, 4),
    change=change,
    describe=describe,
    shows="Runs cut over several devices suffer, prompts and large batches (large messages) most; one device does not.",
    hides="A run on one device cannot show it; small messages hardly do.",
    checks=(
        "nvidia-smi topo -m: NV# between the devices, or PIX, PHB, SYS? nvidia-smi nvlink -s: are the links up?",
        "systemctl status nvidia-fabricmanager; ACS off in the BIOS; NCCL_P2P_DISABLE and NCCL_SHM_DISABLE unset",
        "NCCL_DEBUG=INFO: 'via P2P/IPC' or 'via SHM'? all_reduce_perf of nccl-tests: bus bandwidth",
    ),
)
