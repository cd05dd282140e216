"""Work of a recurrent layer over a tree of draft tokens: one pass, a state for each token, or every branch alone.

A head keeps a state of D features x P channels. A token fades it and adds to it (3 D P operations), and reads it
(2 D P)::

    one pass   2 N N (D + P) + 2 N D P    products of N tokens with each other and with the start's state, on matrix
                                          units; then the accepted path's state, token by token
    states     5 D P N                    each token's state is written, and read by its children, level by level
    branches   5 D P L (levels + 1)       L branches from copies of the start's state

[stree-2025]
"""

from dataclasses import dataclass
from math import prod

from orrery.base.errors import OutOfRange

MAX_TOKENS = 4096
STATE_BYTES, ELEMENT_BYTES = 4.0, 2.0
"""States are kept in 32 bits; tokens come and go in 16."""

UPDATE_FLOPS, READ_FLOPS = 3.0, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLayer:
    """One layer: heads of all sequences, its sizes, and how many children each token of a level has."""

    num_heads: int
    num_features: int
    num_channels: int
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.widths or min(self.widths) < 1 or self.num_tokens > MAX_TOKENS:
            raise OutOfRange(f"tree: {self.widths}; write 1 or more for each level, up to {MAX_TOKENS} tokens in all.")

    @property
    def num_tokens(self) -> int:
        """All tokens, with the sure one at the root."""
        return 1 + sum(prod(self.widths[:level]) for level in range(1, len(self.widths) + 1))

    @property
    def num_branches(self) -> int:
        """Ways from the root to a leaf."""
        return prod(self.widths)

    @property
    def num_levels(self) -> int:
        """Tokens of a branch."""
        return len(self.widths) + 1

    @property
    def state_bytes(self) -> float:
        """One state of all heads."""
        return STATE_BYTES * self.num_heads * self.num_features * self.num_channels

    def token_bytes(self, count: int) -> float:
        """Tokens that come with what they put in and read by, and go as outputs."""
        return ELEMENT_BYTES * self.num_heads * count * 2.0 * (self.num_features + self.num_channels)

    def step_flops(self, count: int) -> float:
        """Operations of so many tokens, one after the other."""
        return (UPDATE_FLOPS + READ_FLOPS) * self.num_heads * self.num_features * self.num_channels * count


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """One way: operations by unit, bytes through memory, kernels that wait for each other, states that are kept."""

    matrix_flops: float
    vector_flops: float
    moved_bytes: float
    num_kernels: int
    num_states: int


def one_pass(layer: TreeLayer) -> Passes:
    """All tokens at once; the state at the start is read once and the accepted one written."""
    n, d, p = layer.num_tokens, layer.num_features, layer.num_channels
    each = 2.0 * n * n * (d + p) + 2.0 * n * d * p
    return Passes(
        matrix_flops=layer.num_heads * each,
        vector_flops=layer.step_flops(layer.num_levels),
        moved_bytes=2.0 * layer.state_bytes + layer.token_bytes(n),
        num_kernels=1,
        num_states=1,
    )


def state_each(layer: TreeLayer) -> Passes:
    """A state for every token: its parent's is read, its own written."""
    n = layer.num_tokens
    return Passes(
        matrix_flops=0.0,
        vector_flops=layer.step_flops(n),
        moved_bytes=2.0 * n * layer.state_bytes + layer.token_bytes(n),
        num_kernels=layer.num_levels,
        num_states=n,
    )


def by_branch(layer: TreeLayer) -> Passes:
    """Every branch as a sequence of its own, with a copy of the state."""
    count = layer.num_branches * layer.num_levels
    return Passes(
        matrix_flops=0.0,
        vector_flops=layer.step_flops(count),
        moved_bytes=2.0 * layer.num_branches * layer.state_bytes + layer.token_bytes(count),
        num_kernels=1,
        num_states=layer.num_branches,
    )
