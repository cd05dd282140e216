"""The parts a model is made of. Sizes are per whole model; cutting it over devices is the execution floor's work.

A model is a tuple of blocks. A block is a run of equal layers: the linear layers that every token passes through,
one token mixer (attention, latent attention, or a recurrent state), and possibly routed experts.
"""

from dataclasses import dataclass, field
from typing import Literal

from orrery.models.rotation import Rotation
from orrery.models.vision import Tower

Shard = Literal["column", "row", "vocab", "replicated"]
"""Split of a linear layer by tensor parallelism: by outputs, by inputs, by vocabulary, or none."""

Role = Literal["attention", "mlp", "shared_expert", "router", "head", "mixer", "other"]
"""Purpose of a linear layer; quantisation recipes leave some roles in 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """y = W x (+ b), W of shape (out_features, in_features); ``groups`` > 1 for block-diagonal weights."""

    name: str
    in_features: int
    out_features: int
    shard: Shard
    role: Role
    has_bias: bool = False
    groups: int = 1
    kv_heads: int = 0  # a fused q/k/v projection: how many key/value heads it makes (they replicate when tp is larger)
    copies: int = 0  # sets of these weights where the block's layers share them; 0: each has its own

    @property
    def num_parameters(self) -> int:
        """Weights and bias."""
        return self.in_features * self.out_features // self.groups + self.out_features * self.has_bias


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxAttention:
    """Multi-head, grouped-query or multi-query attention; ``window_tokens`` = 0 looks at everything."""

    num_heads: int
    num_kv_heads: int
    head_size: int
    value_head_size: int
    window_tokens: int = 0
    chunk_tokens: int = 0  # chunked (Llama 4 local) attention
    is_causal: bool = True
    owns_cache: bool = True  # False where a layer reuses another layer's keys and values
    keys_are_values: bool = False  # one tensor serves as both
    has_sinks: bool = False
    rotary: bool = True
    index_heads: int = 0  # an indexer picks ``top_tokens`` tokens in blocks (MiniMax-M3); 0 = attends to all it sees
    index_head_size: int = 0
    top_tokens: int = 0
    index_ratio: int = 1  # tokens whose keys the indexer keeps as one (their average, in Qwen4)
    index_format: str = "fp8"  # of the keys that it keeps

    @property
    def cache_elements_per_token(self) -> float:
        """Elements of key/value cache that one token adds in one layer."""
        if not self.owns_cache:
            return 0.0
        value = 0 if self.keys_are_values else self.value_head_size
        return float(self.num_kv_heads * (self.head_size + value))


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """DeepSeek's MLA: one latent vector a token is cached, expanded (prefill) or absorbed (decode).

    ``index_*`` describe a sparse-attention indexer (DeepSeek-V3.2's lightning indexer); ``top_tokens`` = 0 is dense.
    """

    num_heads: int
    q_lora_rank: int  # 0 = queries are projected directly
    kv_lora_rank: int
    nope_head_size: int
    rope_head_size: int
    value_head_size: int
    index_heads: int = 0
    index_head_size: int = 0
    top_tokens: int = 0
    index_ratio: int = 1  # tokens whose keys the indexer keeps as one (GLM-5-Next pools them)
    index_format: str = "fp8"

    @property
    def cache_elements_per_token(self) -> float:
        """The latent and the shared rotary key (the indexer's FP8 key is counted apart, in bytes)."""
        return float(self.kv_lora_rank + self.rope_head_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention:
    """Attention over compressed history (DeepSeek-V4): a full window, then one entry per ``ratio`` tokens.

    One shared key/value head of ``head_size`` (keys serve as values); ``top_tokens`` = 0 attends to every entry.
    """

    num_heads: int
    head_size: int
    window_tokens: int
    ratio: int  # tokens per compressed entry; 0 = window only
    index_heads: int = 0
    index_head_size: int = 0
    top_tokens: int = 0
    index_format: str = "fp8"

    @property
    def index_ratio(self) -> int:
        """Tokens per key of the indexer: it keeps one for each compressed entry."""
        return max(self.ratio, 1)

    @property
    def cache_elements_per_token(self) -> float:
        """Compressed entries only; the window is a constant the execution floor adds."""
        return self.head_size / self.ratio if self.ratio else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentMixer:
    """A state-space or linear-attention layer: a fixed state per sequence instead of a cache.

    ``state_elements`` (FP32 or 16-bit by ``state_bytes_per_element``) and ``conv_elements`` are per sequence and layer;
    ``flops_per_token`` counts the recurrence itself, without the projections; ``width`` elements of a token enter it.
    """

    kind: str  # "mamba1", "mamba2", "gated-delta-net", "lightning", "kimi-delta", …
    num_heads: int
    state_elements: int
    conv_elements: int
    flops_per_token: float
    width: int = 0
    state_bytes_per_element: float = 4.0

    @property
    def cache_elements_per_token(self) -> float:
        """None: the state does not grow."""
        return 0.0


Mixer = SoftmaxAttention | LatentAttention | CompressedAttention | RecurrentMixer


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Routed experts of equal size; shared experts are ordinary linear layers of the block."""

    num_experts: int
    experts_per_token: int
    hidden_size: int  # width that the experts read and write
    ffn_size: int
    is_gated: bool = True
    has_bias: bool = False
    is_clamped: bool = False  # what enters the activation is held within limits

    @property
    def num_parameters_each(self) -> int:
        """Parameters of one expert."""
        ups = 2 if self.is_gated else 1
        biases = (ups * self.ffn_size + self.hidden_size) if self.has_bias else 0
        return (ups + 1) * self.hidden_size * self.ffn_size + biases


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Element-wise work of a layer beside norms and activations: ``kind`` is a kind of kernel, ``elements`` a token."""

    name: str
    kind: str
    elements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """``count`` equal layers; ``other_parameters`` (norms, gates, sinks, convolutions) stay in 16 bits and whole."""

    name: str  # "dense", "moe", "sliding", "mamba", …
    count: int
    linears: tuple[Linear, ...]
    mixer: Mixer | None
    experts: Experts | None = None
    other_parameters: int = 0
    norm_elements: int = 0  # elements that pass through a norm, per token and layer
    activation_elements: int = (
        0  # elements that leave the (gated) activation, per token and layer, shared experts included
    )
    num_reduces: int = 2  # all-reduces that tensor parallelism needs a layer
    num_norm_reduces: int = 0  # and of sums of squares, for a norm over what the ranks share out
    connection_elements: int = 0  # of all residual streams at a layer's two hyper-connections, per token
    passes: tuple[Pass, ...] = ()  # further element-wise work
    kept_elements: int = 0  # inputs of convolutions outside the mixer that a sequence keeps, in 16 bits, per layer

    @property
    def normed_elements(self) -> int:
        """Elements that pass through a norm, per token and layer: a hyper-connection norms all streams."""
        return self.norm_elements + self.connection_elements

    def sets(self, linear: Linear) -> int:
        """Sets of a linear layer's weights in all ``count`` layers."""
        return linear.copies or self.count

    @property
    def num_parameters(self) -> int:
        """Parameters of all ``count`` layers; what they share counts once."""
        experts = self.experts.num_experts * self.experts.num_parameters_each if self.experts else 0
        linears = sum(self.sets(x) * x.num_parameters for x in self.linears)
        return linears + self.count * (experts + self.other_parameters)

    @property
    def num_active_parameters(self) -> int:
        """Parameters that one token passes through; those that layers share at each use."""
        experts = self.experts.experts_per_token * self.experts.num_parameters_each if self.experts else 0
        return self.count * (sum(x.num_parameters for x in self.linears) + experts + self.other_parameters)


FEW_LAYERS = 3
"""Leading dense layers are no more than this, or than a tenth of all: DeepSeek-V3 has three. More of them alternate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A whole language model, as its published config describes it."""

    name: str  # "meta-llama/Llama-3.1-70B"
    family: str  # "llama", "deepseek_v3", … (config's model_type)
    hidden_size: int
    vocab_size: int
    max_context_tokens: int
    blocks: tuple[Block, ...]  # decoder layers (encoder layers of encoder-decoder models: ``encoder``)
    embedding_parameters: int  # token (and learned position) embeddings, and tables that layers look rows up in
    head: Linear | None  # output projection; None for encoders
    is_head_tied: bool  # the head shares the embedding's weights: counted once
    other_parameters: int = 0  # final norm and the like
    table_parameters: int = 0  # of the embedding's, those in tables of word sequences
    encoder: tuple[Block, ...] = ()
    tower_parameters: int = 0  # vision or audio towers and their projectors
    resting_parameters: int = 0  # of layers that text alone passes over: held, and never read
    tower: Tower | None = None  # the vision tower layer by layer, where it is known so
    draft_parameters: int = 0  # multi-token-prediction layers that the checkpoint carries and serving may leave out
    draft_block: Block | None = None  # one of these layers, where it is not like the last of the model
    weights_format: str = "bf16"  # what the published checkpoint holds
    experts_format: str = ""  # what the routed experts are stored in where it differs from ``weights_format``
    kept_16bit_roles: frozenset[Role] = field(default_factory=lambda: frozenset[Role]({"router", "head"}))
    role_formats: tuple[tuple[Role, str], ...] = ()  # roles stored in a format of their own beside ``weights_format``
    cache_format: str = ""  # of the cache that the checkpoint holds scales for
    kept_elsewhere: tuple[tuple[str, frozenset[Role]], ...] = ()  # the same of its checkpoints in other formats
    rotation: Rotation | None = None  # of queries and keys; None where the config names no base
    published: tuple[tuple[str, str], ...] = ()  # provenance: (field, where), for `orrery why`

    def kept_roles(self, format: str) -> frozenset[Role]:
        """Roles that stay in 16 bits where weights are ``format``: as the checkpoint in it, else as the model's own."""
        if format == self.weights_format:
            return self.kept_16bit_roles
        return dict(self.kept_elsewhere).get(format, self.kept_16bit_roles)

    @property
    def num_layers(self) -> int:
        """Decoder layers."""
        return sum(b.count for b in self.blocks)

    @property
    def num_leading_dense_layers(self) -> int:
        """Layers without experts that stand before all others of a mixture; 0 where both kinds alternate."""
        first, *others = self.blocks
        if self.encoder or first.experts or not others or not all(b.experts for b in others):
            return 0
        return first.count if first.count <= FEW_LAYERS or 10 * first.count <= self.num_layers else 0

    @property
    def num_parameters(self) -> int:
        """All parameters as transformers counts them: a tied head once, draft layers not."""
        head = self.head.num_parameters if self.head and not self.is_head_tied else 0
        blocks = sum(b.num_parameters for b in (*self.blocks, *self.encoder))
        resting = self.tower_parameters + self.resting_parameters
        return blocks + self.embedding_parameters + head + self.other_parameters + resting

    @property
    def has_latent_attention(self) -> bool:
        """Whether any layer caches one latent vector a token."""
        return any(isinstance(b.mixer, LatentAttention) for b in self.blocks)

    @property
    def num_active_parameters(self) -> int:
        """Parameters that one token passes through; embeddings look up one row and do not count, the head does."""
        head = self.head.num_parameters if self.head else 0
        return sum(b.num_active_parameters for b in self.blocks) + head + self.other_parameters
