"""DRAM with multipliers at its banks: products of a matrix that lies there with a vector that is sent in.

All banks work at once. A bank opens a row, reads it column by column into its multipliers, and closes it:

    product   vector in + per bank (columns x column time + rows opened x (open + close)) + results out

Rows of the matrix are dealt out to banks, so results need no addition between banks; the vector goes to every channel
over the channel's own pins. PIM-GPT, arXiv 2310.09385; the energies are those of reading within the DRAM, of opening
rows, of the pins, and of the multipliers (``orrery.hardware.gates``).
"""

from dataclasses import dataclass
from math import ceil

from orrery.base.errors import OutOfRange
from orrery.hardware.gates import arithmetic


@dataclass(frozen=True, slots=True, kw_only=True)
class BankedMemory:
    """Channels of banks, with the times and energies that a product needs."""

    num_channels: int
    num_banks: int  # of one channel
    column_bytes: float  # read by one bank in one column time
    column_s: float
    row_bytes: float
    open_s: float
    close_s: float
    channel_bytes_per_s: float  # pins of one channel
    element_bytes: float = 2.0
    open_j: float = 0.0  # one row
    read_j_per_bytes: float = 0.0  # from the open row to the multipliers
    pin_j_per_bytes: float = 0.0

    def __post_init__(self) -> None:
        sizes = (self.num_channels, self.num_banks, self.column_bytes, self.column_s, self.channel_bytes_per_s)
        if not all(size > 0 for size in sizes) or self.row_bytes < self.column_bytes:
            raise OutOfRange(f"{self}; write sizes and times above 0, and rows no shorter than a column.")

    @property
    def pins_bytes_per_s(self) -> float:
        """Bandwidth at the pins."""
        return self.num_channels * self.channel_bytes_per_s

    def product_s(self, outputs: int, inputs: int, times: int = 1) -> float:
        """A vector of ``inputs`` through ``times`` matrices of ``outputs`` rows, all of them at once."""
        rows = ceil(times * outputs / (self.num_channels * self.num_banks))
        row_bytes = inputs * self.element_bytes
        columns = rows * ceil(row_bytes / self.column_bytes)
        opened = ceil(rows * row_bytes / self.row_bytes)
        sent_s = times * row_bytes / self.channel_bytes_per_s / (self.num_channels if times > 1 else 1)
        results_s = times * outputs * self.element_bytes / self.pins_bytes_per_s
        return sent_s + columns * self.column_s + opened * (self.open_s + self.close_s) + results_s

    def write_s(self, moved_bytes: float) -> float:
        """Bytes put down through the pins, spread over the channels."""
        return self.open_s + self.close_s + moved_bytes / self.pins_bytes_per_s

    def product_j(self, outputs: int, inputs: int, times: int = 1) -> float:
        """Energy of ``product_s``: rows, columns, multiply-adds, and what crosses the pins."""
        held = times * outputs * inputs * self.element_bytes
        each_j = arithmetic("fp16_multiply").energy_j + arithmetic("fp32_add").energy_j
        sent = times * inputs * self.element_bytes * (1 if times > 1 else self.num_channels)
        crossing = sent + times * outputs * self.element_bytes
        return (
            held * self.read_j_per_bytes
            + held / self.row_bytes * self.open_j
            + times * outputs * inputs * each_j
            + crossing * self.pin_j_per_bytes
        )
