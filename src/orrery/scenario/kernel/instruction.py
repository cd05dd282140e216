"""One matrix instruction of a device: dense or sparse, the left operand from shared memory or from registers."""

from collections.abc import Iterator
from functools import partial

from orrery.base.errors import OutOfRange
from orrery.base.units import percent
from orrery.catalog.gpu_cycles import cycles_of
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
    "warp": "dense, as instructions of one warp (16 x 8 x 16) with both operands in registers",
}
WARP = (16, 8, 16)
"""Rows, columns and depth of a warp's instruction in 16 bits."""


def instructions(work: Work) -> Iterator[Way]:
    """Every kind, in every format."""
    for format in work.list_of("format", ("fp16",)):
        for name in VARIANTS:
            find = partial(_warp, work, format) if name == "warp" else partial(_one, work, format, name)
            yield Way(variant=name, format=get_format(format).name, find=find)


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


def _warp(work: Work, format: str) -> Found:
    """Instructions of one warp each, at the share of the peak that was measured of the generation."""
    device, number, cycles = work.device, get_format(format), cycles_of(work.device)
    sides = tuple(work.size(name) for name in ("m", "n", "k"))
    if number.name not in ("fp16", "bf16") or any(side % least for side, least in zip(sides, WARP, strict=True)):
        raise OutOfRange(f"warp: {number.name} of {'x'.join(map(str, sides))}; write 16 bits and multiples of 16x8x16.")
    peak, reached = device.peak_flops_per_s(number.rates)[1], cycles.number("mma_peak_frac")
    num_macs = sides[0] * sides[1] * sides[2]
    time_s = 2.0 * num_macs * device.num_compute_units / (peak * reached)
    return Found(
        time_s=time_s,
        flops=2.0 * num_macs,
        bytes=0.0,
        roofs_s={"compute": time_s * reached},
        details={
            "cycles": time_s * device.compute_clock_hz,
            "num_instructions": num_macs // (WARP[0] * WARP[1] * WARP[2]),
            "latency_cycles": cycles.number("mma_cycles"),
            "peak_frac": reached,
        },
        because=(
            f"{percent(reached, 1)} of the peak and {cycles.number('mma_cycles'):g} cycles for one alone, as measured "
            f"on {cycles.facts['board'].value}; enough of them in flight",
        ),
    )


INSTRUCTION = Operator(
    name="instruction",
    sizes={"n": None, "m": 64, "k": 16},
    ways=instructions,
    variants=VARIANTS,
    settings=frozenset({"format"}),
)
