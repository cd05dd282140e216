"""FlashRNN: a step in launches against a kernel that stays, and how wide a head may be."""

from collections.abc import Iterator

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.fused.recurrence import Costs, Recurrence, persistent_s, stepped_s, widest_head

ALTERNATING_KERNELS = 2
"""Product, then gates."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Times of a sequence, then widths."""
    setup = paper.setups["lstm"]
    fused = kept_s(setup)
    eager = launched_s(setup, int(setup.number("num_step_kernels")), setup.number("kernel_dispatch_s"))
    words = f"{setup.number('input_tokens'):g} steps: {eager * 1e3:.2f} ms launched, {fused * 1e3:.2f} ms in one kernel"
    yield Prediction(
        claim="speedup",
        predicted=eager / fused,
        because=words,
        differs="what an operator takes on the host, and a meeting of blocks on the device, is assumed",
    )
    wide, narrow = widths(paper.setups["widths"])
    words = f"{wide} over all processors, {narrow} on one with sums of gradients"
    yield Prediction(
        claim="hidden-size", predicted=wide / narrow, because=words, differs="the split of the registers is assumed"
    )
    yield Prediction(claim="one-block-width", predicted=float(narrow), because=words)
    two = launched_s(setup, ALTERNATING_KERNELS, setup.number("kernel_launch_s"))
    yield Prediction(
        claim="alternating",
        predicted=two / fused,
        because=f"two launches a step: {two * 1e3:.2f} ms",
        differs="what a launch and a meeting of blocks take is assumed",
    )


def layer(setup: Setup) -> Recurrence:
    """The set-up's layer."""
    return Recurrence(
        num_gates=int(setup.number("num_gates")),
        num_heads=int(setup.number("num_recurrent_heads")),
        num_head_features=int(setup.number("num_head_features")),
    )


def kept_s(setup: Setup) -> float:
    """The whole sequence in one kernel."""
    costs = Costs(launch_s=setup.number("kernel_launch_s"), meeting_s=setup.number("block_meeting_s"))
    device = get_device(setup.word("device"))
    return persistent_s(layer(setup), int(setup.number("num_batch")), int(setup.number("input_tokens")), device, costs)


def launched_s(setup: Setup, num_kernels: int, each_s: float) -> float:
    """The whole sequence in launches."""
    device, batch = get_device(setup.word("device")), int(setup.number("num_batch"))
    return stepped_s(layer(setup), batch, int(setup.number("input_tokens")), num_kernels, device, each_s)


def widths(setup: Setup) -> tuple[int, int]:
    """Widths of the widest head over all processors, and of the widest on one that also sums gradients."""
    processors = get_device(setup.word("device")).num_compute_units
    gates, share = int(setup.number("num_gates")), setup.number("weight_register_frac")
    wide = widest_head(gates, processors, register_frac=share)
    narrow = widest_head(
        gates, 1, register_frac=share, gradient_bytes=setup.number("gradient_bytes"), is_power_of_two=True
    )
    return wide, narrow
