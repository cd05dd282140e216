"""The parts of a scenario that pictures and videos are made by, and embeddings."""

from pydantic import BaseModel, Field

from orrery.scenario.kinds import Count, Number, Switch, Word, bounds


class PoolingScenario(BaseModel):
    """Whether inputs are only read; blank means: as the model does."""

    pooling: Switch = None


class DiffusionScenario(BaseModel):
    """Size, steps and degrees of a diffusion pipeline; blank means: the pipeline's own default."""

    height: Count = Field(**bounds("height"))
    width: Count = Field(**bounds("width"))
    num_frames: Count = Field(**bounds("num_frames"))
    num_inference_steps: Count = Field(**bounds("num_inference_steps"))
    guidance: Switch = None
    ulysses_degree: Count = Field(**bounds("ulysses_degree"))
    ring_degree: Count = Field(**bounds("ring_degree"))
    patch_parallel: Count = Field(**bounds("patch_parallel"))
    patch_context: Word = None
    patch_read_frac: Number = Field(**bounds("patch_read_frac"))
    patch_warmup_steps: Count = Field(**bounds("patch_warmup_steps"))
    cuda_graph: Switch = None
