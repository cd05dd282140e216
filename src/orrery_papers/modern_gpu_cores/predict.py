"""Modern GPU cores: what it takes to know when operands are ready."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.scenario.experiment import run_experiment

SIZES = {
    "warps": "num_warps",
    "registers": "num_warp_registers",
    "counters": "num_counters",
    "counter_bits": "num_counter_bits",
    "stall_bits": "num_stall_bits",
    "readers": "num_tracked_readers",
}
"""Sizes of ``orrery experiment operand-tracking`` -> the set-up's names."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Bits of counters and of a scoreboard."""
    setup = paper.setups["core"]
    sizes = tuple(f"{size}={int(setup.number(name))}" for size, name in SIZES.items())
    counters, board = run_experiment("operand-tracking", sizes=sizes).rows
    bits = [float(row["processor_bits"]) for row in (counters, board)]
    description = f"{bits[0]:.0f} bits of counters against {bits[1]:.0f} of a scoreboard, on one processor"
    yield Prediction(claim="area-advantage", predicted=float(board["over_counters"]), because=description)
