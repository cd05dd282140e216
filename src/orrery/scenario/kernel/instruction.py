"""One matrix instruction of a device: dense or sparse, the left operand from shared memory or from registers."""

from collections.abc import Iterator
from functools import partial

from orrery.base.errors import OutOfRange
from orrery.kernels.gemm.instruction import MatrixInstruction, num_cycles, peak_frac
from orrery.numerics.registry import get_format
from orrery.scenario.kernel.operator import Found, Operator, Way, Work

SHARED_BYTES_PER_CYCLE = 128.0
"""Bytes per cycle of one processor of an NVIDIA GPU: 32 banks of 4 (CUDA C++ Programming Guide, shared memory)."""

FROM_SHARED = ("hopper",)
"""Generations whose matrix instructions take operands from shared memory (wgmma)."""

VARIANTS = {
    "shared": "dense, both operands from shared memory",
    "registers": "dense, the left operand from registers",
    "sparse-shared": "2:4 sparse, both from shared memory",
    "sparse-registers": "2:4 sparse, the left operand from registers",
}


def instructions(work: Work) -> Iterator[Way]:
    """The four kinds, in every format."""
    for format in work.list_of("format", ("fp16",)):
        for name in VARIANTS:
            yield Way(variant=name, format=get_format(format).name, find=partial(_one, work, format, name))


def _one(work: Work, format: str, name: str) -> Found:
    device, number = work.device, get_format(format)
    if device.generation not in FROM_SHARED:
        raise OutOfRange(
            f"{device.name} is {device.generation}: instructions that read operands from shared memory are counted for "
            f"{', '.join(FROM_SHARED)}."
        )
    rate, peak = device.peak_flops_per_s(number.rates)
    is_sparse, in_shared = name.startswith("sparse"), name.endswith("shared")
    one = MatrixInstruction(
        m=work.size("m"),
        n=work.size("n"),
        k=work.size("k") * (2 if is_sparse else 1),
        element_bytes=number.bytes_per_element,
        is_sparse=is_sparse,
        has_left_in_shared=in_shared,
    )
    macs = peak / 2.0 / device.num_compute_units / device.compute_clock_hz
    cycles = num_cycles(one, macs, SHARED_BYTES_PER_CYCLE)
    done = one.num_macs / (2.0 if is_sparse else 1.0)
    return Found(
        time_s=cycles / device.compute_clock_hz,
        flops=2.0 * one.num_macs,
        bytes=one.shared_bytes,
        roofs_s={
            "compute": done / macs / device.compute_clock_hz,
            "shared memory": one.shared_bytes / SHARED_BYTES_PER_CYCLE / device.compute_clock_hz,
        },
        details={"cycles": cycles, "macs_per_cycle": macs, "peak_frac": peak_frac(one, macs, SHARED_BYTES_PER_CYCLE)},
        because=(
            f"{macs:.4g} multiply-adds a cycle and processor (the {rate} peak over {device.num_compute_units} "
            f"processors at the boost clock), {SHARED_BYTES_PER_CYCLE:g} bytes of shared memory a cycle; issued "
            "back to back",
        ),
    )


INSTRUCTION = Operator(
    name="instruction",
    sizes={"n": None, "m": 64, "k": 16},
    ways=instructions,
    variants=VARIANTS,
    settings=frozenset({"format"}),
)
