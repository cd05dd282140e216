"""FlashRNN: a step in launches against a kernel that stays, and how wide a head may be."""

from collections.abc import Iterator

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.fused.recurrence import widest_head
from orrery_papers.shared.kernel_rows import kernel_rows


def predict(paper: Paper) -> Iterator[Prediction]:
    """Times of a sequence: ``orrery kernel rnn``; then widths."""
    setup = paper.setups["lstm"]
    own = ways_s(setup, setup.number("kernel_launch_s"))
    eager, fused = ways_s(setup, setup.number("kernel_dispatch_s"))["launched"], own["persistent"]
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
    two = own["alternating"]
    yield Prediction(
        claim="alternating",
        predicted=two / fused,
        because=f"two launches a step: {two * 1e3:.2f} ms",
        differs="what a launch and a meeting of blocks take is assumed",
    )


def ways_s(setup: Setup, launch_s: float) -> dict[str, float]:
    """Seconds of the whole sequence by variant, where a launch takes so long."""
    heads = int(setup.number("num_recurrent_heads"))
    rows = kernel_rows(
        "rnn",
        device=setup.word("device"),
        hidden_size=heads * int(setup.number("num_head_features")),
        num_heads=heads,
        batch=int(setup.number("num_batch")),
        seq_len=int(setup.number("input_tokens")),
        launch_s=launch_s,
        meeting_s=setup.number("block_meeting_s"),
    )
    return {variant: row.time_s for variant, row in rows.items()}


def widths(setup: Setup) -> tuple[int, int]:
    """Widths of the widest head over all processors, and of the widest on one that also sums gradients."""
    processors = get_device(setup.word("device")).num_compute_units
    gates, share = int(setup.number("num_gates")), setup.number("weight_register_frac")
    wide = widest_head(gates, processors, register_frac=share)
    narrow = widest_head(
        gates, 1, register_frac=share, gradient_bytes=setup.number("gradient_bytes"), is_power_of_two=True
    )
    return wide, narrow
