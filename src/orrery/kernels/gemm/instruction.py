"""One matrix instruction of a processor: its multiply-adds against the operands that it reads from shared memory.

    cycles = max(m n k / multiply-adds a cycle, bytes from shared memory / bytes a cycle)

The right operand always comes from shared memory, the left one from there or from registers. With 2:4 sparsity the left
operand holds half of its k and the multipliers do half of the work, but the right operand is as large as ever. Narrow
instructions and sparse ones are therefore bound by shared memory unless the left operand is in registers.
Benchmarking and Dissecting the Nvidia Hopper GPU Architecture, arXiv 2402.13499.
"""

from dataclasses import dataclass

from orrery.base.errors import OutOfRange


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixInstruction:
    """An m x n x k product of dense or 2:4 sparse left operands."""

    m: int
    n: int
    k: int
    element_bytes: float
    is_sparse: bool = False
    has_left_in_shared: bool = True

    def __post_init__(self) -> None:
        if min(self.m, self.n, self.k) < 1 or self.element_bytes <= 0:
            raise OutOfRange(f"{self}; write sizes above 0.")

    @property
    def num_macs(self) -> int:
        """Multiply-adds of the product as written, zeros included."""
        return self.m * self.n * self.k

    @property
    def shared_bytes(self) -> float:
        """Operands that come from shared memory."""
        stored_k = self.k / 2 if self.is_sparse else self.k
        left = self.m * stored_k if self.has_left_in_shared else 0.0
        return (left + self.n * self.k) * self.element_bytes


def num_cycles(instruction: MatrixInstruction, macs_a_cycle: float, shared_bytes_a_cycle: float) -> float:
    """From one instruction to the next, with enough of them in flight."""
    done = instruction.num_macs / (2.0 if instruction.is_sparse else 1.0)
    return max(done / macs_a_cycle, instruction.shared_bytes / shared_bytes_a_cycle)


def peak_frac(instruction: MatrixInstruction, macs_a_cycle: float, shared_bytes_a_cycle: float) -> float:
    """Share of the multipliers' peak, of the sparse one for a sparse instruction."""
    done = instruction.num_macs / (2.0 if instruction.is_sparse else 1.0)
    return done / macs_a_cycle / num_cycles(instruction, macs_a_cycle, shared_bytes_a_cycle)
