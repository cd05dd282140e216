"""From a paper's set-up to a memory with multipliers at its banks."""

from orrery.evidence.paper_file import Setup
from orrery.hardware.banked_memory import BankedMemory


def banked(setup: Setup) -> BankedMemory:
    """The memory that the set-up states; energies are zero where it states none."""
    return BankedMemory(
        num_channels=int(setup.number("num_channels")),
        num_banks=int(setup.number("num_banks")),
        column_bytes=setup.number("column_bytes"),
        column_s=setup.number("column_s"),
        row_bytes=setup.number("row_bytes"),
        open_s=setup.number("open_s"),
        close_s=setup.number("close_s"),
        channel_bytes_per_s=setup.number("channel_bytes_per_s"),
        open_j=setup.number("open_j"),
        read_j_per_bytes=setup.number("read_j_per_bytes"),
        pin_j_per_bytes=setup.number("pin_j_per_bytes"),
    )
