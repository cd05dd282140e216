"""Latencies of instructions, in cycles: chains in which each needs the result of the one before."""

from collections.abc import Iterator
from typing import Any

from orrery.calibrate.micro.cuda.assembly import INSTRUCTIONS, UNROLLED, Instruction, chain_source
from orrery.calibrate.micro.cuda.driver import DOUBLE, SINGLE, WORD
from orrery.calibrate.micro.cuda.gpu import Gpu
from orrery.calibrate.micro.cuda.timing import OUT_BYTES, cycles
from orrery.calibrate.micro.reading import Reading, of_samples

ROUNDS = 256
WARP = 32


def instructions(gpu: Gpu) -> Iterator[Reading]:
    """Each instruction of the list, by one warp."""
    for name, instruction in INSTRUCTIONS.items():
        run = gpu.kernel(chain_source(instruction), "chain")
        with gpu.buffer(OUT_BYTES) as out:
            launched = gpu.launcher(run, 1, WARP, *_operands(instruction), ROUNDS, out)
            samples = cycles(gpu, launched, out, per=ROUNDS * UNROLLED)
            yield of_samples(f"{name}_latency", samples, "cycles", "one warp, dependent")


def _operands(instruction: Instruction) -> tuple[Any, Any]:
    """Numbers near one, whose results stay near one."""
    match instruction.type:
        case "float":
            return SINGLE(1.0), SINGLE(0.5)
        case "double":
            return DOUBLE(1.0), DOUBLE(0.5)
        case _:
            return WORD(1), WORD(3)


BENCHMARKS = (instructions,)
