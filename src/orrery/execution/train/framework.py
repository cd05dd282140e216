"""A training framework as the execution floor sees it: what it keeps, fuses and hides, and what its host costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from orrery.base.sources import Fact
from orrery.execution.train.layout import Recompute, Sharding

AdapterTargets = Literal["qkv", "attention", "all-linear"]
"""Into attention; into and out of it; all but routers and routed experts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Framework:
    """Defaults that a blank takes, and how a step is put together. Bytes are per parameter unless said otherwise."""

    name: str  # "megatron-lm"
    kernels: str  # whose measured kernels come nearest: "tensorrt-llm", "vllm", …
    has_fused_attention: bool  # scores never reach memory
    is_fused: bool  # norms, biases, activations and residuals are merged into few passes
    is_sequence_parallel: bool  # default where tp > 1
    has_dropout: bool
    sharding: Sharding  # default where dp > 1
    recompute: Recompute  # default
    schedule: str  # default where pp > 1
    overlaps_gradients: bool  # buckets are reduced while the backward pass goes on
    overlaps_parameters: bool  # sharded parameters are gathered while the forward pass goes on
    overlaps_tensor: bool  # tensor-parallel collectives run in pieces beside the products that need them
    overlaps_weight_gradients: bool  # backward collectives of tensor parallelism run beside weight gradients
    overlaps_pipeline: bool  # activations travel between stages while others are computed
    weights_bytes: float  # of the copy that the optimizer's shard holds or the device computes with
    gradient_bytes: float  # as they are kept and summed
    master_bytes: float  # 32-bit copy beside 16-bit weights; 0 where the weights are it
    moments_bytes: float  # both moments of Adam
    bucket_bytes: float  # gradients that are reduced together
    logits_bytes: float  # of one logit, all copies that live at once
    host_layer_s: float  # the least time of a layer's forward pass: launching its kernels
    host_backward_ratio: float  # of its backward pass, as a multiple
    host_expert_s: float  # what routed experts add to the forward pass: routing, sorting, a product for each expert
    host_collective_s: float  # what each collective of a layer adds to that
    step_s: float  # once a step: data, clipping, logging
    matrix_ratio: float  # time of matrix products over that of measured ones alone (clocks under load, alignment)
    elementwise_ratio: float  # time of element-wise work over that of the fused minimum
    attention_ratio: float  # time of attention over that of the measured forward kernel
    network_ratio: float  # time of collectives inside a node over those measured alone
    scaleout_ratio: float  # the same between nodes
    contention_ratio: float  # how much slower kernels run beside a collective
    fragmentation_ratio: float  # allocator's peak over the sum of what lives
    fixed_bytes: float  # of each device: workspaces that the allocator counts
    update_bytes: float  # of each parameter that the device updates: what the optimizer makes and drops again
    has_flat_gradients: bool = False  # collectives use gradients where they lie, without buckets beside them
    gathers_ends_apart: bool = True  # sharded embedding and head are gathered each at its use; False: both at the start
    shard_copies: Literal["nothing", "gradients", "both"] = (
        "nothing"  # what sharding copies between tensors and buffers
    )
    copies_sequence_shards: bool = False  # collectives join and cut the first dimension, where sequences are not
    drops_gradients: bool = False  # after each update: the next backward pass makes them anew
    has_native_attention: bool = True  # fused kernels use a generation's own matrix units, not Ampere's alone
    context_bytes: float = 5e8  # of the driver's context with the kernels of a step loaded
    reports_memory: Literal["allocated", "reserved", "device"] = "allocated"  # whose figure its logs print
    parallel_logits_bytes: float = 0.0  # of one logit where tensor-parallel ranks part them; 0 = logits_bytes
    compiled_logits_bytes: float = 0.0  # of one logit where the loss is compiled; 0 = it is not
    compiles_loss_since: str = ""  # month from which a compiled run compiles its loss
    keeps_stage_outputs: bool = False  # a pipeline rank keeps what it sent on until the gradient comes back
    accumulates: bool = True  # a blank micro-batch may be less than a rank's share of the batch
    recompute_modules: str = ""  # default where it is selective: attention,mlp,…
    names_modules: bool = False  # parts of a layer can be recomputed by name
    keeps_unread_gradients: bool = False  # Transformer Engine's fused sums leave a tensor for every size of weight
    adapter_targets: AdapterTargets = "qkv"  # the linear layers that low-rank additions stand beside
    drops_adapted: bool = False  # each addition keeps its input behind a dropout of its own, and the mask
    quantises_head: bool = False  # frozen 4-bit weights include the head; the embedding stays in 16 bits everywhere
    keeps_frozen_inputs: bool = False  # products of quantised weights keep their inputs, though nothing reads them
    loads_whole: bool = False  # ranks hold all parameters beside their shards while a checkpoint is loaded
    selective: Literal["attention", "operators"] = "attention"  # what selective recomputation makes again
    unmade: Literal["nothing", "last product", "outputs"] = "nothing"  # what full recomputation of a layer leaves out
    dispatcher: str = "all-to-all"  # how tokens reach their experts, one of experts.DISPATCHERS
    fuses_gradient_sums: bool = False  # products add weight gradients to the sum of earlier micro-batches
    keeps_wide_layers: bool = True  # narrow recipes leave their share of layers in 16 bits; False: none
    overlaps_experts: bool = False  # the exchange of a micro-batch's tokens runs beside the products of another
    fuses_experts: bool = False  # products of all experts of a rank are one kernel, which also activates and casts
    cuda_graphs: str = ""  # parts of a step that the device replays as recorded: attn,moe_router,… or full_iteration
    turns_stretched_apart: bool = False  # queries and keys whose rotation makes them longer turn in eager passes
    fuses_loss: bool = False  # cross entropy is one kernel over 16-bit logits, which its gradient takes the place of
    packed_tokens: float = 0.0  # of a sample where short ones are packed, no further than attention sees; 0 = not
    attention_format: str = ""  # of attention's products; "" = the 16 bits that a recipe keeps
    cuts_experts: bool = False  # default etp: as everything else is cut (tp); False: experts stay whole
    spreads: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    facts: Mapping[str, Fact] = field(default_factory=dict[str, Fact])
