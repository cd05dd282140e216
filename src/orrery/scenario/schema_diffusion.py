"""The parts of a scenario that pictures and videos are made by, embeddings, and speech is read."""

from orrery.scenario.fields import BY_NAME
from orrery.scenario.kinds import Count, Number, Settings, Switch, Word


class PoolingScenario(Settings, table=BY_NAME):
    """Whether inputs are only read; blank means: as the model does."""

    pooling: Switch = None


class ImageNetworkScenario(Settings, table=BY_NAME):
    """Networks that read pictures; blank means: floats between products."""

    integer_only: Switch = None


class SpeechScenario(Settings, table=BY_NAME):
    """Recordings that are transcribed; blank means: one window after the other, beams as the runtime takes."""

    audio_s: Number = None
    num_beams: Count = None
    window_batch: Count = None


class DiffusionScenario(Settings, table=BY_NAME):
    """Size, steps and degrees of a diffusion pipeline; blank means: the pipeline's own default."""

    height: Count = None
    width: Count = None
    num_frames: Count = None
    num_inference_steps: Count = None
    guidance: Switch = None
    ulysses_degree: Count = None
    ring_degree: Count = None
    patch_parallel: Count = None
    patch_context: Word = None
    patch_read_frac: Number = None
    patch_warmup_steps: Count = None
    cuda_graph: Switch = None
