"""FP8-LM, second level: also the first moment in FP8 and the second in FP16.

Weights FP16 (2 bytes), gradients FP8 (1), moments 1 + 2. Everything else as in the first level.
Sources: peng-2023 (arXiv:2310.18313, section 2.2: master weights FP16, gradients FP8, moments FP8 and FP16: 6 bytes
where FP32 took 16), ms-amp (table of levels, O2).
"""

from dataclasses import replace

from orrery.execution.train.recipes import fp8_lm_gradients

RECIPE = replace(
    fp8_lm_gradients.RECIPE,
    name="fp8-lm-optimizer",
    title="FP8-LM level 2: also the optimizer's state in FP8 and FP16",
    moments_bytes=3.0,
    aliases=("ms-amp-o2",),
)
