"""Calibrations of one class of work on one device: a few constants, their error, and their range."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from orrery.base.cost import Spread
from orrery.base.sources import Fact


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResidualTrees:
    """A learned correction of log(measured / physics): trees as flat arrays, one entry a node.

    A row goes to ``low`` where its feature is <= threshold, else to the node after it; a leaf leads to itself. The
    answer is the sum of the values of the leaves reached, over the trees that start at ``roots``.
    """

    names: tuple[str, ...]  # of the features, in order
    roots: NDArray[np.int32]
    depths: NDArray[np.int32]  # steps from each root to its deepest leaf
    feature: NDArray[np.int32]
    threshold: NDArray[np.float32]
    low: NDArray[np.int32]
    value: NDArray[np.float32]  # 0 for nodes that are no leaves


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowSpread:
    """Spread of a rule by row: trees whose sum is the log of a row's scale, and the share of it to apply.

    ``levels``: log(truth / prediction) over the scale, at 10, 90, 2.5 and 97.5 %, as ``Spread`` orders them.
    """

    trees: ResidualTrees
    levels: tuple[float, float, float, float]


def one_for_all() -> RowSpread | None:
    """No spread of its own for each row."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibration:
    """The constants of one rule, for one class of work, format and engine.

    ``origin`` says where they come from: ``device`` (measured on this very device), ``generation`` (inherited
    from measured devices of the same architecture), ``any`` (pooled over everything measured).
    """

    op: str  # "gemm", "attention_decode", "all_reduce", …
    format: str  # compute format; with a cache in another format "bf16+fp8"
    engine: str  # whose kernels: "tensorrt-llm", "vllm", "nccl", …
    origin: str
    constants: Mapping[str, float]
    spread: Spread
    range: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    fact: Fact | None = None  # the tables they were fitted from
    residual: ResidualTrees | None = None  # what trees learned from the same rows beyond the physics
    row_spread: Callable[[], RowSpread | None] = one_for_all  # read only when somebody asks for intervals
    law: str = ""  # whose constants these are where an op has more than one rule: "host" for calls on a CPU
