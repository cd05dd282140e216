"""Bits that a processor needs to know when operands are ready: the compiler's counters beside a scoreboard.

[modern-gpu-cores]
"""

from collections.abc import Iterator
from dataclasses import dataclass

from orrery.base.experiment import Experiment, Row, Run, numbers, whole
from orrery.hardware.dependence import Core, counter_bits, scoreboard_bits

BITS_PER_REGISTER = 32
MAX_READERS = 2.0**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """One streaming multiprocessor; the defaults are those that the paper's readers recall of compute capability 8.6.

    Registers are what an instruction can name: regular, uniform, and predicates of both.
    """

    warps: str = "48"
    registers: int = 332
    file_registers: int = 65536  # of 32 bits, all warps together
    counters: int = 6
    counter_bits: int = 6
    stall_bits: int = 4
    readers: str = "0,1,63"  # of one register that a scoreboard counts
    processors: int = 84  # of the whole device


def run(request: Run) -> tuple[Row, ...]:
    """A row for the counters and for each number of readers, at each number of warps."""
    sizes: Sizes = request.sizes
    return tuple(row for warps in numbers("warps", sizes.warps, least=1, most=1024) for row in _rows(sizes, int(warps)))


def _rows(sizes: Sizes, warps: int) -> Iterator[Row]:
    core = Core(num_warps=warps, num_registers=whole("registers", sizes.registers, most=4096))
    counters = counter_bits(
        core,
        num_counters=whole("counters", sizes.counters, least=0, most=64),
        width=whole("counter_bits", sizes.counter_bits, most=32),
        stall=whole("stall_bits", sizes.stall_bits, least=0, most=32),
    )
    yield _row(sizes, warps, "counters", 0, counters, counters)
    for readers in numbers("readers", sizes.readers, most=MAX_READERS):
        yield _row(sizes, warps, "scoreboard", int(readers), scoreboard_bits(core, int(readers)), counters)


def _row(sizes: Sizes, warps: int, way: str, readers: int, bits: float, counters: float) -> Row:
    file = float(BITS_PER_REGISTER * whole("file_registers", sizes.file_registers, most=2**24))
    return {
        "tracking": way,
        "num_warps": warps,
        "readers": readers,
        "processor_bits": bits,
        "of_register_file_frac": bits / file,
        "device_bytes": bits / 8.0 * whole("processors", sizes.processors, most=10_000),
        "over_counters": bits / counters,
    }


EXPERIMENT = Experiment(
    name="operand-tracking",
    question="How many bits tell a processor when operands are ready: counters of the compiler, or a scoreboard?",
    run=run,
    num_steps=1,
    claims=("modern-gpu-cores",),
    sizes=Sizes,
    keys=("tracking", "num_warps", "readers"),
)
