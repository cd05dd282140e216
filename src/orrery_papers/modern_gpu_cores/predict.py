"""Modern GPU cores: what it takes to know when operands are ready."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.hardware.dependence import Core, counter_bits, scoreboard_bits


def predict(paper: Paper) -> Iterator[Prediction]:
    """Bits of counters and of a scoreboard."""
    setup = paper.setups["core"]
    core = Core(num_warps=int(setup.number("num_warps")), num_registers=int(setup.number("num_warp_registers")))
    counters = counter_bits(
        core,
        num_counters=int(setup.number("num_counters")),
        width=int(setup.number("num_counter_bits")),
        stall=int(setup.number("num_stall_bits")),
    )
    board = scoreboard_bits(core, int(setup.number("num_tracked_readers")))
    description = f"{counters:.0f} bits of counters against {board:.0f} of a scoreboard, on one processor"
    yield Prediction(claim="area-advantage", predicted=board / counters, because=description)
