"""A search tree as it grows: nodes with their parents, lengths, scores and ideas; and the cache that a front keeps."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The candidates of one step, as a rule that prunes sees them.

    ``paths`` (candidates x depth) are the nodes above each, the root first; ``ideas`` says which mean the same.
    """

    scores_frac: Floats
    paths: Ints
    ideas: Ints
    branches: Ints  # the subtree that each belongs to: about the root of the width of them, from the first step on


@dataclass(slots=True, kw_only=True)
class Grown:
    """All nodes so far; node 0 is the root with the prompt."""

    prompt_tokens: float
    tokens: list[float] = field(default_factory=list[float])
    paths: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])  # nodes above, the root first
    context_tokens: list[float] = field(default_factory=list[float])  # of those nodes together

    def __post_init__(self) -> None:
        self.tokens, self.paths, self.context_tokens = [self.prompt_tokens], [()], [0.0]

    def add(self, parent: int, tokens: float) -> int:
        """A node under another one."""
        self.paths.append((*self.paths[parent], parent))
        self.context_tokens.append(self.context_tokens[parent] + self.tokens[parent])
        self.tokens.append(tokens)
        return len(self.tokens) - 1

    def path_tokens(self, front: Ints) -> Floats:
        """Tokens from the root to the end of each node of a front."""
        leaves: list[int] = front.tolist()
        return np.array([self.context_tokens[i] + self.tokens[i] for i in leaves])

    def kept_tokens(self, front: Ints) -> float:
        """Tokens in a cache with shared prefixes for a front: every node of its paths once, and the front itself."""
        leaves: list[int] = front.tolist()
        above = {node for leaf in leaves for node in self.paths[leaf]}
        return sum(self.tokens[i] for i in above) + sum(self.tokens[i] for i in leaves)
