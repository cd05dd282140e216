"""p-bit weights times q-bit activations on one-bit matrix units: p q passes, and the recovery of each result.

    time = max of the matrix rule's terms at rate_1 / (p q), with operands of p and q bits  +  recovery

Fused, every pass leaves its result in shared memory, where a shift and an addition join it to the others. Unfused, each
of the p q results goes to memory as 32-bit numbers and comes back. Ma et al., arXiv 2409.17870.
"""

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device
from orrery.kernels.lowbit.product import Floats, Operands, constants, integer_flops_per_s, time_s
from orrery.kernels.ops import Size

FORMAT, FORMAT_BITS = "int8", 8
"""Format whose measured constants integer kernels run with, and its bits; a step takes as many bytes of inputs,
whatever their width."""

RECOVERY_FLOPS = 4.0
"""A shift and an addition, each an instruction that a vector rate counts twice."""

PARTIAL_BYTES = 4.0


def one_bit_gemm_s(
    m: Size, n: Size, k: Size, weight_bits: int, activation_bits: int, device: Device, *, is_fused: bool = True
) -> Floats:
    """Time of the p q passes and of the recovery."""
    passes = weight_bits * activation_bits
    operands = Operands(weight_bits=weight_bits, activation_bits=activation_bits, group_elements=0)
    rate = integer_flops_per_s(device, 1) / passes
    made = time_s(m, n, k, device, operands, rate, constants(device, FORMAT, step_ratio=passes / FORMAT_BITS))
    partials = passes * (m * n)
    recovery = partials * RECOVERY_FLOPS / device.vector_flops_per_s
    stored = 0.0 if is_fused else 2.0 * partials * PARTIAL_BYTES / device.memory_bandwidth_bytes_per_s
    return made + recovery + stored


def integer_gemm_s(m: Size, n: Size, k: Size, bits: int, device: Device) -> Floats:
    """The same product with both operands padded to ``bits`` bits, on units of that width."""
    operands = Operands(weight_bits=bits, activation_bits=bits, group_elements=0)
    found = constants(device, FORMAT, step_ratio=bits / FORMAT_BITS)
    return time_s(m, n, k, device, operands, integer_flops_per_s(device, bits), found)


def nearest_integer_bits(weight_bits: int, activation_bits: int) -> int:
    """The width of the library's product that holds both operands: 1, 4 or 8 bits."""
    wider = max(weight_bits, activation_bits)
    for bits in (1, 4, 8):
        if wider <= bits:
            return bits
    raise OutOfRange(f"no integer matrix unit holds {wider} bits; write 1 to 8.")
