"""The shard of one device under a layout: its weights and its work.

Tensor parallelism cuts linear layers by columns or rows and attention by heads; key/value heads replicate when there
are fewer of them than devices [shoeybi-2019]. Expert parallelism places whole experts; data-parallel attention keeps
attention whole on every rank in front of shared experts. Pipeline parallelism gives each stage a run of layers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from orrery.execution.choice import Choice, choices, stored_experts
from orrery.execution.eager_layers import operators
from orrery.execution.formats import bytes_per_element, compute_format, dense_format, is_16bit, wide_bytes
from orrery.execution.host_experts import kept_frac
from orrery.execution.layout import Deployment
from orrery.models.model import (
    Block,
    CompressedAttention,
    Experts,
    LatentAttention,
    Linear,
    Mixer,
    RecurrentMixer,
    SoftmaxAttention,
)
from orrery.numerics.mixed_widths import MIXED_PRODUCT
from orrery.numerics.registry import get_format


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearShard:
    """One linear layer as a device sees it: a product of (rows x k) by (k x n), ``count`` times a step."""

    name: str
    block: str
    n: int
    k: int
    groups: int
    count: float
    format: str  # of the arithmetic
    weight_bytes: float  # stored, of one layer, on one device
    kept_frac: float = 1.0  # of its weights, in a pattern that the device skips
    index_bits: float = 0.0  # stored beside each of them
    wide_frac: float = 0.0  # of its channel blocks, those whose inputs keep eight bits beside others of four
    is_head: bool = False  # rows are sampled sequences, not tokens
    is_shared: bool = False  # of an expert that every token passes
    copies: int = 0  # sets of its weights where layers share them; 0: one for each of ``count``


@dataclass(frozen=True, slots=True, kw_only=True)
class MixerShard:
    """One token mixer as a device sees it, ``count`` times a step."""

    block: str
    mixer: Mixer
    num_heads: int
    num_kv_heads: int
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertsShard:
    """Routed experts as a device sees them: num_experts / ep of them (and of redundant copies), ffn_size / tp wide."""

    block: str
    experts: Experts
    tp: int
    ep: int
    count: float
    format: str
    weight_bytes: float
    backends: tuple[Choice, ...]  # what runs them, by tokens in a step


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """All work of one device in one pass through all layers (all pipeline stages in turn)."""

    linears: tuple[LinearShard, ...]
    mixers: tuple[MixerShard, ...]
    experts: tuple[ExpertsShard, ...]
    num_layers: int
    num_norms: float  # norm kernels in a pass
    norm_elements: float  # elements normed, per token, over the pass
    connection_width: int  # elements that a hyper-connection moves for a token; 0: the model has none
    num_connections: float  # hyper-connections in a pass
    activation_elements: float  # elements leaving activations on one device, per token, over the pass
    num_activations: float
    num_reduces: float  # all-reduces over tp in a pass
    num_norm_reduces: float  # and of the sums of squares of norms that are over all heads
    weight_bytes: float  # stored on the fullest device
    stage_share: float  # of all layers, on the fullest pipeline stage


@lru_cache(maxsize=512)
def shard(deployment: Deployment) -> Shard:
    """Cut the deployment's model by its layout."""
    model, layout = deployment.model, deployment.layout
    linears = [piece for b in model.blocks for x in b.linears for piece in _pieces(deployment, b, x)]
    head = [_linear(deployment, None, model.head)] if model.head else []
    experts = [_experts(deployment, b, b.experts) for b in model.blocks if b.experts]
    mixers = [_mixer(deployment, b, b.mixer) for b in model.blocks if b.mixer]
    stage_share = ceil(model.num_layers / layout.pp) / max(1, model.num_layers)
    return Shard(
        linears=(*linears, *head),
        mixers=tuple(mixers),
        experts=tuple(experts),
        num_layers=model.num_layers,
        num_norms=sum(b.count * b.num_reduces for b in model.blocks),
        norm_elements=float(sum(b.count * b.norm_elements for b in model.blocks)),
        connection_width=max((connection_width(model.hidden_size, b) for b in model.blocks), default=0),
        num_connections=float(sum(CONNECTIONS * b.count for b in model.blocks if b.connection_elements)),
        activation_elements=sum(b.count * b.activation_elements for b in model.blocks) / layout.tp,
        num_activations=float(sum(b.count for b in model.blocks if b.activation_elements)),
        num_reduces=float(sum(b.count * b.num_reduces for b in model.blocks)),
        num_norm_reduces=float(sum(b.count * b.num_norm_reduces for b in model.blocks)),
        weight_bytes=_weight_bytes(deployment, linears, head, experts, stage_share),
        stage_share=stage_share,
    )


CONNECTIONS, CONNECTION_KERNELS = 2, 2
"""Hyper-connections of a layer, and kernels of each: before a layer's half, and behind it."""


def connection_width(hidden_size: int, block: Block) -> int:
    """Elements that a kernel of a hyper-connection moves for a token: n streams twice, and one of the half."""
    return block.connection_elements // CONNECTIONS * 2 + hidden_size if block.connection_elements else 0


MIXER_KERNELS = {SoftmaxAttention: 2, LatentAttention: 5, CompressedAttention: 19, RecurrentMixer: 15}
"""Kernels that an engine launches for a token mixer that sees prompts: the write to the cache and attention; with a
latent cache also the copies into keys, and the product that expands it. A recurrence is a chain (convolution, gates,
norms, sums over a chunk, its triangular inverse, states, outputs): a prompt of 256 tokens through 30 gated delta nets
and 10 attentions launched 473 kernels outside graphs (vLLM 0.20.1, a profile in ai-dynamo/aiconfigurator,
collector/layerwise/fpm_ground_truth/DECODE_FIDELITY_CHECK.md). Compressed attention (window, compressor, indexer): what
the steps of 128 tokens there take (fpm_golden_runs), at the time of a launch that the other models' say."""

EXPERT_KERNELS = 7
"""The same for experts: counting and sorting the tokens, a product, the activation, quantising between, a product, the
sum, as vLLM's Triton experts do (fused_moe.py of 0.22)."""

COMPILED_EXPERTS, COMPILED_EXPERT_KERNELS = frozenset({"trtllm-gen", "cutlass"}), 3
"""Experts that one call of a compiled operator runs, and what an engine launches for them: the router's choice,
quantising, and the call. What it launches inside costs the host little beside the Python around a launch."""


def num_kernels(deployment: Deployment) -> float:
    """Kernels that a pass through all layers launches on each device."""
    cut = shard(deployment)
    reduces = cut.num_reduces + cut.num_norm_reduces if deployment.layout.tp > 1 else 0.0
    if deployment.engine.runs_modules:
        return reduces + sum(b.count * num_operators(deployment, b) for b in deployment.model.blocks)
    return (
        sum(x.count * (2 if rounds_blocks(x) else 1) for x in cut.linears)
        + sum(mixer_kernels(x) * x.count for x in cut.mixers)
        + sum(expert_kernels(x) * x.count for x in cut.experts)
        + CONNECTION_KERNELS * cut.num_connections
        + cut.num_norms
        + cut.num_activations
        + reduces
    )


def num_operators(deployment: Deployment, block: Block) -> int:
    """The same of one layer whose operators a Python library's modules launch one by one."""
    layer, bits = operators(block, deployment.model.hidden_size), get_format(deployment.formats.weights).element_bits
    narrow = {4: deployment.engine.num_launches_4bit, 8: deployment.engine.num_launches_8bit}
    return layer.num_launches + layer.num_products * narrow.get(round(bits), 0)


def rounds_blocks(linear: LinearShard) -> bool:
    """Whether a kernel of its own rounds the inputs of a product: with a scale for each block of them, which follows
    their values (one scale a tensor is known before, and the kernel that makes the input rounds it)."""
    format = get_format(linear.format)
    return not format.weight_only and not is_16bit(linear.format) and format.block_elements > 0


def num_pieces(deployment: Deployment) -> float:
    """The same where all between two token mixers is one graph: the mixers' own kernels, and a piece after each."""
    return sum((mixer_kernels(x) + 1) * x.count for x in shard(deployment).mixers)


def expert_kernels(experts: ExpertsShard) -> int:
    """Kernels of one layer's experts, of a step with prompts."""
    return COMPILED_EXPERT_KERNELS if experts.backends[-1].backend in COMPILED_EXPERTS else EXPERT_KERNELS


def mixer_kernels(mixer: MixerShard) -> int:
    """Kernels of one layer's token mixer."""
    return MIXER_KERNELS[type(mixer.mixer)]


def has_exchange(deployment: Deployment) -> bool:
    """Whether tokens travel to their experts: ranks that hold different tokens share one set of experts."""
    return deployment.layout.shares_experts


def stored_format(deployment: Deployment, role: str) -> str:
    """The format that the weights of a role are stored in: quantised, or what the recipe keeps in 16 bits."""
    weights, model = deployment.formats.weights, deployment.model
    if weights == model.weights_format and (own := dict[str, str](model.role_formats).get(role)):
        return own
    if is_16bit(weights) or role not in model.kept_roles(weights):
        return weights
    return (get_format(weights).head_format if role == "head" else "") or kept_format(deployment)


def kept_format(deployment: Deployment) -> str:
    """The format of weights that are not quantised with the others: 16 bits, but files of some engines round all."""
    formats, is_plain = deployment.formats, is_16bit(deployment.formats.weights)
    if not is_plain and get_format(formats.weights).head_format:
        return formats.weights
    if not is_plain and deployment.engine.kept_format:
        return deployment.engine.kept_format
    return formats.activations if is_16bit(formats.activations) else "bf16"


def _linear(deployment: Deployment, block: Block | None, linear: Linear) -> LinearShard:
    tp, stored = deployment.layout.tp, stored_format(deployment, linear.role)
    groups = linear.groups
    n, k = linear.out_features // groups, linear.in_features // groups
    if groups > 1:
        groups = groups if linear.shard == "replicated" else max(1, groups // tp)
    elif linear.shard in ("column", "vocab"):
        n = _columns(linear, block.mixer if block else None, tp)
    elif linear.shard == "row":
        k = ceil(k / tp)
    active = deployment.formats.activations if stored == deployment.formats.weights else stored
    bias_bytes = wide_bytes(active) * n * groups if linear.has_bias else 0.0
    pattern = deployment.sparsity if block and linear.role != "router" else None
    kept_frac, index_bits = (pattern.kept_frac, float(pattern.index_bits)) if pattern else (1.0, 0.0)
    return LinearShard(
        name=linear.name,
        block=block.name if block else "",
        n=n,
        k=k,
        groups=groups,
        count=float(block.count if block else 1),
        format=dense_format(stored, active, deployment.cluster.device),
        weight_bytes=groups * n * k * kept_frac * (bytes_per_element(stored) + index_bits / 8.0) + bias_bytes,
        kept_frac=kept_frac,
        index_bits=index_bits,
        is_head=block is None,
        is_shared=linear.role == "shared_expert",
        copies=linear.copies,
    )


def _pieces(deployment: Deployment, block: Block, linear: Linear) -> Iterator[LinearShard]:
    """The layer; or, of a narrow one some of whose features run in a wider format, both products. Blocks of two widths
    are one product."""
    whole = _linear(deployment, block, linear)
    if whole.format == MIXED_PRODUCT:
        yield replace(whole, wide_frac=deployment.wide_frac)
        return
    k = round(whole.k * deployment.wide_frac)
    if not k or is_16bit(whole.format):
        yield whole
        return
    stored = bytes_per_element(stored_format(deployment, linear.role))
    elements = whole.groups * whole.n * k
    if k < whole.k:
        yield replace(whole, k=whole.k - k, weight_bytes=whole.weight_bytes - elements * stored)
    bias_bytes = 0.0 if k < whole.k else whole.weight_bytes - elements * stored
    wide = deployment.wide_format
    yield replace(
        whole,
        name=f"{linear.name} wide",
        k=k,
        format=compute_format(wide, wide, deployment.cluster.device),
        weight_bytes=elements * bytes_per_element(wide) + bias_bytes,
    )


def _columns(linear: Linear, mixer: Mixer | None, tp: int) -> int:
    """Outputs on one device; key/value heads are never cut below one."""
    if linear.kv_heads and isinstance(mixer, SoftmaxAttention):
        head = mixer.head_size + (0 if mixer.keys_are_values else mixer.value_head_size)
        kv = linear.kv_heads * head
        return ceil((linear.out_features - kv) / tp) + max(1, ceil(linear.kv_heads / tp)) * head
    return ceil(linear.out_features / tp)


def _mixer(deployment: Deployment, block: Block, mixer: Mixer) -> MixerShard:
    tp = deployment.layout.tp
    kv = mixer.num_kv_heads if isinstance(mixer, SoftmaxAttention) else 1
    return MixerShard(
        block=block.name,
        mixer=mixer,
        num_heads=max(1, ceil(mixer.num_heads / tp)),
        num_kv_heads=max(1, ceil(kv / tp)),
        count=float(block.count),
    )


def _experts(deployment: Deployment, block: Block, experts: Experts) -> ExpertsShard:
    layout, weights = deployment.layout, stored_experts(deployment)
    backends = choices(deployment, "moe", weights)
    tp = layout.expert_tp
    places = experts.num_experts + deployment.num_redundant_experts
    held = places * experts.num_parameters_each / (tp * layout.ep)
    if rule := deployment.host_experts:
        held *= kept_frac(rule, experts.num_experts, float(block.count))
    return ExpertsShard(
        block=block.name,
        experts=experts,
        tp=tp,
        ep=layout.ep,
        count=float(block.count),
        format=compute_format(weights, _expert_activations(deployment, backends), deployment.cluster.device),
        weight_bytes=held * bytes_per_element(weights),
        backends=backends,
    )


def _expert_activations(deployment: Deployment, backends: tuple[Choice, ...]) -> str:
    """Format of the activations that experts' weights are multiplied with: as requested, as the back end's, or the
    default.
    """
    formats = deployment.formats
    return formats.expert_activations or backends[-1].activations or formats.activations


def _weight_bytes(
    deployment: Deployment,
    linears: list[LinearShard],
    head: list[LinearShard],
    experts: list[ExpertsShard],
    share: float,
) -> float:
    """Stored weights on the fullest device: its stage's layers, all that they share with others, and the embedding or
    the head."""
    model, tp = deployment.model, deployment.layout.tp
    own = [x for x in linears if not x.copies]
    layers = sum(x.count * x.weight_bytes for x in own) + sum(x.count * x.weight_bytes for x in experts)
    shared = sum(x.copies * x.weight_bytes for x in linears)
    plain, rows = wide_bytes(deployment.formats.activations), bytes_per_element(kept_format(deployment))
    other = plain * (sum(b.count * b.other_parameters for b in model.blocks) + model.other_parameters)
    table = model.table_parameters
    looked_up = rows * (model.embedding_parameters - table) + bytes_per_element(_table_format(deployment)) * table
    embedding = looked_up / tp + plain * model.tower_parameters
    top = sum(x.weight_bytes for x in head) if not model.is_head_tied or deployment.layout.pp > 1 else 0.0
    encoder = sum(b.num_parameters for b in model.encoder) * bytes_per_element(deployment.formats.weights) / tp
    ends = embedding + top if deployment.layout.pp == 1 else max(embedding, top)
    resting = model.resting_parameters * bytes_per_element(deployment.formats.weights) / tp
    return (layers + other + resting) * share + shared + ends + encoder


def _table_format(deployment: Deployment) -> str:
    """The format of tables of word sequences: quantised checkpoints hold them in FP8, and so do engines that keep
    other rows in 16 bits (Qwen3.8-Flash-Next's own FP8 and the NVFP4 made from it)."""
    others = kept_format(deployment)
    return "fp8" if is_16bit(others) and not is_16bit(deployment.formats.weights) else others


KEPT_BYTES = 2.0
"""Bytes of an element that a short convolution keeps, whole on every device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Cache of sequences on the fullest device, by growth."""

    bytes_per_token: float  # layers that keep every token
    windows: tuple[tuple[int, float], ...]  # (tokens, bytes per token) of layers that keep only the last ones
    bytes_per_sequence: float  # recurrent states: the same at any length

    def sequence_bytes(self, tokens: float) -> float:
        """Cache of one sequence of that many tokens."""
        bounded = sum(min(tokens, window) * each for window, each in self.windows)
        return tokens * self.bytes_per_token + bounded + self.bytes_per_sequence


@lru_cache(maxsize=512)
def cache_of(deployment: Deployment) -> Cache:
    """The cache of the deployment's fullest device."""
    kv, tp = bytes_per_element(deployment.formats.kv), deployment.layout.tp
    share = shard(deployment).stage_share / deployment.layout.cp * deployment.num_contexts
    per_token = per_sequence = 0.0
    windows: dict[int, float] = {}
    for m in shard(deployment).mixers:
        if deployment.engine.caches_shared_layers and isinstance(m.mixer, SoftmaxAttention):
            m = replace(m, mixer=replace(m.mixer, owns_cache=True))
        window, each = _kept_tokens(m, kv)
        if window:
            windows[window] = windows.get(window, 0.0) + m.count * each * share
        else:
            per_token += m.count * each * share
        if isinstance(m.mixer, CompressedAttention):
            near = m.mixer.window_tokens
            windows[near] = windows.get(near, 0.0) + m.count * m.mixer.head_size * kv * share
        if isinstance(m.mixer, RecurrentMixer):
            state = m.mixer.state_elements * m.mixer.state_bytes_per_element + 2.0 * m.mixer.conv_elements
            per_sequence += m.count * state / tp * share
    per_sequence += KEPT_BYTES * sum(b.count * b.kept_elements for b in deployment.model.blocks) * share
    return Cache(bytes_per_token=per_token, windows=tuple(sorted(windows.items())), bytes_per_sequence=per_sequence)


def _kept_tokens(m: MixerShard, kv_bytes: float) -> tuple[int, float]:
    """How many tokens one layer keeps (0 = all), and the bytes of each; an indexer keeps its own keys beside."""
    mixer = m.mixer
    if isinstance(mixer, RecurrentMixer):
        return 0, 0.0
    each, index = mixer.cache_elements_per_token * kv_bytes, index_bytes(mixer)
    if isinstance(mixer, SoftmaxAttention):
        return mixer.window_tokens or mixer.chunk_tokens, each * m.num_kv_heads / mixer.num_kv_heads + index
    return 0, each + index


def index_bytes(mixer: SoftmaxAttention | LatentAttention | CompressedAttention) -> float:
    """Bytes of its indexer's keys that a layer keeps for each token."""
    return mixer.index_head_size * bytes_per_element(mixer.index_format) / mixer.index_ratio
