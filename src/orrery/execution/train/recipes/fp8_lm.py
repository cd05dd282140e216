"""FP8-LM, third level: also FP8 weights, which ZeRO spreads tensor by tensor and gathers in FP8.

Weights FP8 (1 byte) with an FP16 master copy (2) in the optimizer's shard, gradients FP8 (1), moments 1 + 2. The FP8
weights are what products read; only the transpose is a further copy (1). The paper also sends the activations of
sequence parallelism in FP8; that is the layout's affair and not counted here.
Sources: peng-2023 (arXiv:2310.18313, section 2.3), ms-amp (table of levels, O3).
"""

from dataclasses import replace

from orrery.execution.train.recipes import fp8_lm_optimizer

RECIPE = replace(
    fp8_lm_optimizer.RECIPE,
    name="fp8-lm",
    title="FP8-LM level 3: also FP8 weights, gathered in FP8",
    weights_bytes=1.0,
    weight_copy_bytes=1.0,
    gathered_weight_bytes=1.0,
    master_bytes=2.0,
    aliases=("ms-amp-o3", "ms-amp"),
)
