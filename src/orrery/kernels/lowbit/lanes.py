"""Products of narrow integers on a processor's vector registers: lanes, packing, and the weights' way from memory.

A register holds register / width operands, and products need twice the width, so one multiply makes

    register / max(16, 2 width)   products;      with a dot-product instruction  register / 8  of 8-bit operands

Two products of 4-bit operands share a lane where one operand carries two of them apart, so a multiply makes twice as
many (Shen et al., Agile-Quant, arXiv 2312.05693). Weights that are stored narrower than they are multiplied cost two
instructions a register to spread. Time is the larger of instructions and bytes.
"""

from dataclasses import dataclass

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device

BYTE_BITS = 8
SPREAD_INSTRUCTIONS = 2.0
"""A mask and a shift, for a register of operands."""

SCALE_INSTRUCTIONS = 3.0
"""Instructions for a register of results: convert, scale, narrow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorCores:
    """Cores with vector registers."""

    num_cores: int
    clock_hz: float
    register_bits: int
    num_units: int  # vector instructions that a core starts in a cycle
    has_dot_products: bool
    memory_bytes_per_s: float

    @property
    def instructions_per_s(self) -> float:
        """Vector instructions per second, all cores."""
        return self.num_cores * self.clock_hz * self.num_units


def cores_of(device: Device, *, has_dot_products: bool) -> VectorCores:
    """A processor's cores, with vector registers as wide as its rate in FP32 says, all units of a core taken as one."""
    if device.kind != "cpu":
        raise OutOfRange(f"{device.name} is a {device.kind}: lanes of vector registers are counted for processors.")
    a_core = device.num_compute_units * device.compute_clock_hz
    return VectorCores(
        num_cores=device.num_compute_units,
        clock_hz=device.compute_clock_hz,
        register_bits=round(32.0 * device.vector_flops_per_s / (2.0 * a_core)),
        num_units=1,
        has_dot_products=has_dot_products,
        memory_bytes_per_s=device.memory_bandwidth_bytes_per_s,
    )


def products_per_instruction(
    cores: VectorCores, weight_bits: int, activation_bits: int, *, is_packed: bool = True
) -> float:
    """Products of one multiply instruction; floating point where both are 16 bits wide.

    4-bit operands that are not packed take the lanes of 8 bits."""
    width = max(weight_bits, activation_bits)
    if width not in (4, 8, 16):
        raise OutOfRange(f"operands of {weight_bits} and {activation_bits} bits; write 4, 8 or 16.")
    if width == 16:
        return cores.register_bits / 16
    plain = cores.register_bits / (BYTE_BITS if cores.has_dot_products else 2 * BYTE_BITS)
    return plain * (2.0 if width == 4 and is_packed else 1.0)


def product_s(
    m: int, n: int, k: int, weight_bits: int, activation_bits: int, cores: VectorCores, *, is_packed: bool = True
) -> float:
    """m rows of activations times an n x k matrix of weights, which memory gives once."""
    width = max(weight_bits, activation_bits)
    instructions = m * n * k / products_per_instruction(cores, weight_bits, activation_bits, is_packed=is_packed)
    if width == 4 and not is_packed:
        width = BYTE_BITS
    if weight_bits < width:
        instructions += SPREAD_INSTRUCTIONS * n * k / (cores.register_bits / width)
    if width < 16:
        instructions += SCALE_INSTRUCTIONS * m * n / (cores.register_bits / 32)
    moved = (n * k * weight_bits + m * k * activation_bits) / BYTE_BITS + 2.0 * m * n
    return max(instructions / cores.instructions_per_s, moved / cores.memory_bytes_per_s)
