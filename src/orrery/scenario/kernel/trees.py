"""A recurrent layer over a tree of draft tokens: in one pass, with a state for each token, or branch by branch."""

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.kernels.recurrent.tree import branch_outputs, full_tree, tree_outputs
from orrery.kernels.recurrent.tree_passes import Passes, TreeLayer, by_branch, one_pass, state_each
from orrery.scenario.kernel.fused import LAUNCH_S
from orrery.scenario.kernel.operator import Found, Operator, Way, Work

DRAWN = 64
"""Features and channels of the drawn numbers that both ways are tried on, at most."""

VARIANTS = {
    "one-pass": "all tokens at once under a mask of ancestors; no state is copied",
    "token-states": "a state for each token, level by level",
    "branches": "every branch alone, from a copy of the state",
}
_PASSES: dict[str, Callable[[TreeLayer], Passes]] = {
    "one-pass": one_pass,
    "token-states": state_each,
    "branches": by_branch,
}


def trees(work: Work) -> Iterator[Way]:
    """The three ways, in 16 bits with states of 32."""
    for name in VARIANTS:
        yield Way(variant=name, format="bf16", find=partial(_one, work, name))


def _layer(work: Work) -> TreeLayer:
    text = work.word("tree", DEFAULT)
    try:
        widths = tuple(int(word) for word in text.split(","))
    except ValueError:
        raise ScenarioError(
            f"tree: got {text!r}; write the children of a token at each level, such as 4,2,1."
        ) from None
    return TreeLayer(
        num_heads=work.size("batch") * work.size("num_heads"),
        num_features=work.size("state_size"),
        num_channels=work.size("head_size"),
        widths=widths,
    )


DEFAULT = "4,2,1"


def _one(work: Work, name: str) -> Found:
    device, layer = work.device, _layer(work)
    if "bf16" not in device.dense_flops_per_s:
        raise OutOfRange(f"{device.name} has no 16-bit matrix units, on which all tokens of a tree meet.")
    found, launch_s = _PASSES[name](layer), work.number("launch_s", LAUNCH_S)
    matrix_s = found.matrix_flops / device.dense_flops_per_s["bf16"]
    compute_s = max(matrix_s, found.vector_flops / device.vector_flops_per_s)
    memory_s = found.moved_bytes / device.memory_bandwidth_bytes_per_s
    waits_s = found.num_kernels * launch_s
    return Found(
        time_s=max(compute_s, memory_s) + waits_s,
        flops=found.matrix_flops + found.vector_flops,
        bytes=found.moved_bytes,
        roofs_s={"compute": compute_s, "memory": memory_s},
        others_s={"launches": waits_s},
        details={
            "tokens": layer.num_tokens,
            "branches": layer.num_branches,
            "states": found.num_states,
            "kept_bytes": found.num_states * layer.state_bytes,
            "largest_difference": _difference(layer.widths, min(layer.num_features, DRAWN)),
        },
        because=(
            f"{found.num_kernels} launches of {launch_s * 1e6:g} µs each"
            + ("" if work.has("launch_s") else " (assumed)"),
            "states in 32 bits; one pass and branches differ by largest_difference on drawn numbers of one head",
        ),
    )


@cache
def _difference(widths: tuple[int, ...], features: int) -> float:
    """Largest difference between one pass over the tree and a state for every token, on drawn numbers."""
    parents, draws = full_tree(widths), np.random.default_rng(0)
    count, channels = len(parents), 8
    given = (
        draws.standard_normal((features, channels)),
        draws.uniform(0.5, 1.0, count),
        draws.standard_normal((count, features)),
        draws.standard_normal((count, features)),
        draws.standard_normal((count, channels)),
    )
    return float(np.abs(tree_outputs(parents, *given) - branch_outputs(parents, *given)).max())


TREES = Operator(
    name="tree-recurrence",
    sizes={"state_size": None, "head_size": 64, "num_heads": 1, "batch": 1},
    ways=trees,
    variants=VARIANTS,
    settings=frozenset({"tree", "launch_s"}),
)
