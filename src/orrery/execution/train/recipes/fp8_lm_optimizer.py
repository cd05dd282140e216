"""FP8-LM, second level: also the first moment in FP8 and the second in FP16.

Weights FP16 (2 bytes), gradients FP8 (1), moments 1 + 2. Everything else as in the first level.
Sources: peng-2023 (arXiv:2310.18313, section 2.2: master weights FP16, gradients FP8, moments FP8 and FP16: 6 bytes
where FP32 took 16), ms-amp (table of levels, O2).
"""

from orrery.execution.train.recipe import Recipe

RECIPE = Recipe(
    name="fp8-lm-optimizer",
    title="FP8-LM level 2: also the optimizer's state in FP8 and FP16",
    forward_format="fp8",
    input_gradient_format="fp8",
    weight_gradient_format="fp8",
    saved_input_bytes=1.0,
    weights_bytes=2.0,
    weight_copy_bytes=2.0,
    gradient_wire_bytes=1.0,
    gradient_bytes=1.0,
    master_bytes=0.0,
    moments_bytes=3.0,
    input_casts=4.0 / 3.0,
    gradient_casts=4.0 / 3.0,
    weight_casts=4.0 / 3.0,
    num_amax_reduces=3,
    aliases=("ms-amp-o2",),
    sources=("peng-2023", "ms-amp"),
)
