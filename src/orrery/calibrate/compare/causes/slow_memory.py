"""The device's memory moves fewer bytes a second than stated: ECC, another part, or a slice of a shared device."""

from orrery.base.units import text
from orrery.calibrate.compare.cause import Cause, between
from orrery.calibrate.compare.change import device_of, on_device, slowed
from orrery.calibrate.compare.run import Run


def change(run: Run, severity: float) -> Run:
    """The memory at a share ``severity`` of its bandwidth."""
    return on_device(run, lambda d: slowed(d, memory_frac=severity))


def describe(run: Run, severity: float) -> str:
    """The bandwidth that this means."""
    rate = device_of(run).memory_bandwidth_bytes_per_s
    return f"memory at {severity:.2f} of its bandwidth: {text(rate * severity, 'bytes')}/s of {text(rate, 'bytes')}/s"


CAUSE = Cause(
    name="slow-memory",
    title="memory slower than stated (ECC, another part, a shared device)",
    ladder=between(0.95, 0.12),
    change=change,
    describe=describe,
    shows="Decoding suffers, most of all with few sequences: the time per token grows in one proportion.",
    hides="Long prompts, which compute, come out as predicted.",
    checks=(
        "nvidia-smi -L and nvidia-smi -q -d ECC,CLOCK: is it the part that was stated? memory clock beside Max",
        "nvidia-smi -q | grep -i mig; nvidia-smi pmon: does anybody else use this device?",
        "orrery calibrate device --minutes 1: the bandwidth as measured here",
    ),
)
