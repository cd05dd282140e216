"""The arithmetic runs at a share of the stated clocks: a power cap, heat, or application clocks left low."""

from orrery.calibrate.compare.cause import Cause, between
from orrery.calibrate.compare.change import device_of, on_device, slowed
from orrery.calibrate.compare.run import Run


def change(run: Run, severity: float) -> Run:
    """Every arithmetic rate at a share ``severity``."""
    return on_device(run, lambda d: slowed(d, compute_frac=severity))


def describe(run: Run, severity: float) -> str:
    """The clock that this means."""
    hz = device_of(run).compute_clock_hz
    return f"clocks at {severity:.2f} of the stated ones: {hz * severity / 1e6:,.0f} of {hz / 1e6:,.0f} MHz"


CAUSE = Cause(
    name="wrong-clocks",
    title="clocks below the stated ones (power cap, heat)",
    ladder=between(0.95, 0.2),
    change=change,
    describe=describe,
    shows="What computes suffers: prompts and the time to first token, large batches, training; in one proportion.",
    hides="Decoding a few sequences, which only reads memory, comes out as predicted.",
    checks=(
        "nvidia-smi -q -d CLOCK,PERFORMANCE: SM clock under load beside Max, and the active throttle reasons",
        "nvidia-smi -q -d POWER,TEMPERATURE: power limit beside the default one; slowdown temperature",
        "nvidia-smi -rgc, nvidia-smi -pl DEFAULT: undo locked clocks and caps",
    ),
)
