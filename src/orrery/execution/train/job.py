"""Training job: model, cluster and settings; everything but the layout is the same for all layouts of a search."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from orrery.execution.train.framework import Framework
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe import Recipe
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Link
from orrery.kernels.ops import Popularity
from orrery.models.model import Block, Model

Task = Literal["pretrain", "full_finetune", "lora", "qlora", "adapter", "forward_backward"]
"""Trained weights: all, low-rank additions to frozen ones (in 16 or 4 bits), small adapters, or none."""

FROZEN = frozenset({"lora", "qlora", "adapter"})
LOW_RANK = frozenset({"lora", "qlora"})

"""Tasks whose base weights have no gradients."""

NF4_BYTES = 0.5 + 1.0 / 64.0 + 4.0 / (64.0 * 256.0)
"""Bytes of one parameter in NF4: four bits, an 8-bit scale for 64 of them, an FP32 scale for 256 scales.
[dettmers-2023]"""

BASE_WEIGHTS = {"nf4-dq": NF4_BYTES, "nf4": 0.5 + 4.0 / 64.0}
"""Bytes of a frozen parameter by format: with quantised scales, and with an FP32 scale for 64 weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Islands:
    """Groups of nodes with fast links inside and a slower one between them: clusters, sites. [holmes-2023]"""

    num_devices: int  # of one island
    link: Link  # between islands, per device


PLACEMENT_INTERVAL_STEPS = 100
"""Assumed where nobody says how often experts are placed anew."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingJob:
    """A model to train on a cluster with a framework and a recipe."""

    model: Model
    cluster: Cluster
    framework: Framework
    recipe: Recipe
    seq_len: int
    global_batch: int  # sequences
    decoder_seq_len: int = 0  # of sequences behind an encoder; 0 = as long as what it reads
    task: Task = "pretrain"
    adapter_rank: int = 16
    prunes_activations: bool = False  # only what the gradients of low-rank adapters read is kept
    loss_tokens: int = 0  # tokens of a micro-batch whose logits exist at once; 0 = all
    longest_seq_len: int = 0  # where samples differ: what memory must hold; 0 = all are ``seq_len`` long
    islands: Islands | None = None
    tensor_overlap: str = ""  # a technique's name; "" = what the framework does
    tensor_knobs: tuple[tuple[str, float], ...] = ()
    expert_overlap: str = ""
    expert_knobs: tuple[tuple[str, float], ...] = ()
    gradient_overlap: str = ""  # what their sums run beside; "" = what the framework does
    dispatcher: str = ""  # how tokens reach their experts; "" = as the framework does
    expert_loads: Popularity | None = None  # None: balanced
    expert_capacity_ratio: float = 0.0  # most of a rank's tokens for one expert, over the mean expert's; 0 = no limit
    pads_experts: bool = False  # every expert gets as many rows as that limit, empty ones too
    expert_placement: str = ""  # what moves or copies experts; "" = they stand in order
    placement_knobs: tuple[tuple[str, float], ...] = ()
    placement_interval_steps: int = PLACEMENT_INTERVAL_STEPS  # from one placement of experts to the next
    activation_offload_bytes_per_s: float = 0.0  # what layers save goes to the host's memory at this rate; 0 = it stays
    base_weights: str = ""  # of BASE_WEIGHTS: how frozen weights are kept; "" = as the task has it

    @property
    def base_format(self) -> str:
        """The 4-bit format of frozen weights; "" where they stay in 16 bits."""
        return self.base_weights or ("nf4-dq" if self.task == "qlora" else "")

    @property
    def gathered_weight_bytes(self) -> float:
        """Bytes of a sharded parameter when gathered: frozen ones of 4 bits as they are."""
        return BASE_WEIGHTS[self.base_format] if self.base_format else self.recipe.gathered_weight_bytes

    @property
    def wide_layers_frac(self) -> float:
        """Share of the layers whose linear layers stay in 16 bits: as the recipe was published, or none."""
        return self.recipe.wide_layers_frac if self.framework.keeps_wide_layers else 0.0

    @property
    def tokens_per_step(self) -> int:
        """Tokens that all ranks together read in one step."""
        return self.global_batch * self.seq_len

    def num_micro_batches(self, layout: TrainingLayout) -> int:
        """Micro-batches that each data-parallel rank runs in one step."""
        return self.global_batch // (layout.dp * layout.micro_batch)


@lru_cache(maxsize=256)
def decoding(job: TrainingJob) -> TrainingJob:
    """The job as the layers behind an encoder see it."""
    is_apart = bool(job.decoder_seq_len and job.model.encoder)
    return replace(job, seq_len=job.decoder_seq_len, decoder_seq_len=0) if is_apart else job


def jobs_by_block(job: TrainingJob) -> tuple[tuple[TrainingJob, Block], ...]:
    """All layers in their order, each with the job as it sees it."""
    behind = decoding(job)
    return (*((job, b) for b in job.model.encoder), *((behind, b) for b in job.model.blocks))
