"""A recurrent layer step by step: kernels launched anew for every token, or one that keeps the recurrent matrices.

A gated recurrence with heads multiplies, for every token, the state of a head (width d) with a matrix (d x gates d). A
kernel that lasts for the whole sequence keeps these matrices in registers and shared memory, and its blocks meet once a
step. How wide a head may be is a search over whole tiles: the matrices of a head are cut over as many processors as the
cut allows, and each part must fit beside what the kernel works with. Pöppel et al., arXiv 2412.07752.
"""

from dataclasses import dataclass

from orrery.hardware.device import Device

REGISTER_BYTES = 65536 * 4.0
"""Register bytes of an NVIDIA GPU processor since Kepler (CUDA C++ Programming Guide, technical specifications)."""

SHARED_BYTES = 227 * 1024.0
"""That one block may take of a Hopper processor (same table)."""

TILE = 16
"""Side of the smallest product of the matrix units, in 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """``num_gates`` pre-activations of ``num_heads`` heads, each ``num_head_features`` wide, in 16 bits."""

    num_gates: int
    num_heads: int
    num_head_features: int
    element_bytes: float = 2.0

    @property
    def head_bytes(self) -> float:
        """Recurrent matrices of one head."""
        return self.num_gates * self.num_head_features**2 * self.element_bytes

    def step_flops(self, num_sequences: int) -> float:
        """Recurrent products of one token of each sequence."""
        return 2.0 * num_sequences * self.num_heads * self.num_gates * self.num_head_features**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Costs of a persistent kernel besides its work."""

    launch_s: float  # the kernel, once
    meeting_s: float  # all blocks wait for each other


def kept_bytes(
    gradient_bytes: float, element_bytes: float, register_frac: float, shared_bytes: float = SHARED_BYTES
) -> float:
    """Bytes of recurrent matrices that one processor can keep, with a sum of gradients for each element."""
    return (register_frac * REGISTER_BYTES + shared_bytes) / (1.0 + gradient_bytes / element_bytes)


def widest_head(
    num_gates: int,
    num_processors: int,
    *,
    register_frac: float,
    gradient_bytes: float = 0.0,
    is_power_of_two: bool = False,
    element_bytes: float = 2.0,
    shared_bytes: float = SHARED_BYTES,
) -> int:
    """The widest head whose matrices stay on ``num_processors``: a whole number of tiles, dealt out in whole columns.

    Columns are tiles of gates x d; the processor with most of them must hold them all.
    """
    room = kept_bytes(gradient_bytes, element_bytes, register_frac, shared_bytes)
    widest, width = 0, TILE
    while -(-num_gates * width // (TILE * num_processors)) * TILE * width * element_bytes <= room:
        widest, width = width, width * 2 if is_power_of_two else width + TILE
    return widest


def stepped_s(
    layer: Recurrence, num_sequences: int, num_tokens: int, num_kernels: int, device: Device, launch_s: float
) -> float:
    """``num_kernels`` kernels a token, each started anew; matrices come from memory once, or for every token where no
    cache holds them."""
    weights = layer.num_heads * layer.head_bytes
    is_cached = weights <= device.last_level_cache_bytes
    read_s = weights / device.memory_bandwidth_bytes_per_s
    step_s = (0.0 if is_cached else read_s) + _product_s(layer, num_sequences, device)
    return (read_s if is_cached else 0.0) + num_tokens * max(num_kernels * launch_s, step_s)


def persistent_s(layer: Recurrence, num_sequences: int, num_tokens: int, device: Device, costs: Costs) -> float:
    """One kernel for all tokens: a launch, the weights once, and a product and a meeting of blocks for each token."""
    weights_s = layer.num_heads * layer.head_bytes / device.memory_bandwidth_bytes_per_s
    step_s = _product_s(layer, num_sequences, device) + costs.meeting_s
    return costs.launch_s + weights_s + num_tokens * step_s


def _product_s(layer: Recurrence, num_sequences: int, device: Device) -> float:
    """Products of one step on the matrix units, which take sequences by whole tiles."""
    padded = -(-num_sequences // TILE) * TILE
    return layer.step_flops(padded) / device.dense_flops_per_s["bf16"]
