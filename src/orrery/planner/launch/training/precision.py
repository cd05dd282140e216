"""A precision recipe in the words that frameworks share: a 16-bit (or 32-bit) format, and how narrow products scale."""

from dataclasses import dataclass
from typing import Literal

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.recipe import Recipe
from orrery.planner.launch.training.script import Unsupported

Wide = Literal["bf16", "fp16", "fp32"]
Scaling = Literal["", "delayed", "tensorwise", "blockwise", "mxfp8", "nvfp4"]
"""Where the scales of narrow products come from: "" = nothing is narrow."""

WIDE: dict[str, Wide] = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32", "tf32": "fp32"}
"""Formats that need no scales, and what frameworks call them."""

BLOCKS: dict[str, Scaling] = {"fp8_block": "blockwise", "mxfp8": "mxfp8", "nvfp4": "nvfp4"}
"""Narrow formats whose blocks carry scales of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Formats that a framework's flags can set."""

    wide: Wide
    scaling: Scaling = ""
    is_hybrid: bool = False  # gradients are e5m2 beside e4m3 inputs and weights
    is_pure: bool = False  # no 32-bit copy of the weights
    gathers_narrow: bool = False  # sharded parameters travel in the narrow format
    reduces_wide: bool = False  # gradients are reduced in 16 bits
    num_wide_layers_first: int = 0  # layers at the start whose products stay wide
    num_wide_layers_last: int = 0

    @property
    def is_fp8(self) -> bool:
        """Whether products run in 8 bits."""
        return self.scaling not in ("", "nvfp4")


def precision_of(job: TrainingJob) -> Precision | Unsupported:
    """The formats of the job's recipe; refuses what no framework here trains in.

    Layers that stay wide are dealt one to the start for every four at the end. [nvidia-nvfp4-2025]
    """
    recipe, num_wide_layers = job.recipe, round(job.wide_layers_frac * job.model.num_layers)
    wide = WIDE.get(recipe.wide_format)
    if wide is None:
        return Unsupported(reason=f"{recipe.wide_format} beside the narrow products has no flag; make it bf16")
    if 0.0 < recipe.gradient_wire_bytes < 2.0:
        return Unsupported(
            reason=f"the recipe {recipe.name} reduces gradients in 8 bits, which has no flag; make it fp8"
        )
    is_pure, reduces_wide = recipe.master_bytes == 0.0 and wide != "fp32", recipe.gradient_wire_bytes == 2.0
    if recipe.forward_format in WIDE:
        return Precision(wide=wide, is_pure=is_pure, reduces_wide=reduces_wide)
    scaling = _scaling(recipe)
    if not scaling:
        return Unsupported(reason=f"products in {recipe.forward_format} have no flag; use fp8, mxfp8 or nvfp4")
    return Precision(
        wide=wide,
        scaling=scaling,
        is_hybrid=scaling in ("delayed", "tensorwise"),
        is_pure=is_pure,
        gathers_narrow=recipe.gathered_weight_bytes < 2.0,
        reduces_wide=reduces_wide,
        num_wide_layers_first=num_wide_layers // 5,
        num_wide_layers_last=num_wide_layers - num_wide_layers // 5,
    )


def _scaling(recipe: Recipe) -> Scaling:
    """Scales of whole tensors that ranks agree on for the next step are delayed; else a tensor's own."""
    if recipe.forward_format == "fp8":
        return "delayed" if recipe.num_amax_reduces else "tensorwise"
    return BLOCKS.get(recipe.forward_format, "")
