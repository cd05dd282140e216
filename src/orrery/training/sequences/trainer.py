"""Work of a training rank on a batch of sequences: products, attention, and keys and values passed round a ring.

A rank is ``tp`` devices that cut every layer between them; a group of c ranks shares the tokens of its sequences in
equal parts, two of each sequence's 2 c pieces a rank, so that causal attention is shared out too. Keys and values then
pass round the ring of ranks in c - 1 steps [liu-2023], each under the attention of the step before; what takes longer
than that is waited for. Backward: twice the products, 2.5 times the attention, keys and values and their gradients.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import numpy as np

from orrery import kernels, network
from orrery.base.errors import ScenarioError
from orrery.hardware.device import Device
from orrery.kernels.ops import AttentionPrefill, Gemm, MoE
from orrery.models.model import Block, Linear, Model, SoftmaxAttention
from orrery.network import Collective
from orrery.training.sequences.lengths import Floats, Ints

PRODUCTS_BACKWARD_RATIO, ATTENTION_BACKWARD_RATIO, RING_BACKWARD_RATIO = 2.0, 2.5, 2.0
"""Against the forward pass; attention makes five products for two [flash-attention-2]."""

ELEMENT_BYTES, STATE_BYTES = 2.0, 16.0
"""Bytes of an activation, and of a parameter with gradient, copy and moments."""

TILE_TOKENS = 256
"""Ranks fill their tokens up to whole tiles of the products."""

REDUCES = 4
"""All-reduces of a layer among the devices of a rank, forward and backward."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trainer:
    """A model on ``num_devices`` devices in ranks of ``tp``; optimizer state and weights are dealt out over all.

    ``reserve_frac`` of the memory is not for activations (buffers, the layer at hand, fragmentation: assumed).
    ``host_bytes`` is the host memory for each device.
    """

    model: Model
    device: Device
    num_devices: int
    tp: int = 8
    devices_per_node: int = 8
    reserve_frac: float = 0.2
    host_bytes: float = 200e9

    @property
    def num_ranks(self) -> int:
        """Ranks that sequences can be dealt to."""
        return self.num_devices // self.tp

    @property
    def kept_bytes(self) -> float:
        """Memory of one device for activations."""
        state_bytes = STATE_BYTES * self.model.num_parameters / self.num_devices
        room = self.device.memory_capacity_bytes * (1.0 - self.reserve_frac) - state_bytes
        if room <= 0.0:
            raise ScenarioError(f"trainer: {self.model.name} leaves no room for activations; use more devices.")
        return room

    @property
    def token_bytes(self) -> float:
        """Activations that one token leaves on each device of its rank, attention and norms computed again."""
        return sum(b.count * _kept_elements(self.model, b) for b in self.model.blocks) * ELEMENT_BYTES / self.tp

    @property
    def capacity_tokens(self) -> int:
        """Tokens that a rank can hold at once without offloading."""
        return int(self.kept_bytes / self.token_bytes)


def mixer_of(block: Block) -> SoftmaxAttention:
    """The block's attention, which must be of the plain kind."""
    if not isinstance(block.mixer, SoftmaxAttention):
        raise ScenarioError(f"{block.name}: sequences are dealt out for plain attention only.")
    return block.mixer


def _kept_elements(model: Model, block: Block) -> float:
    """Elements kept per token and layer: two residuals, queries, keys, values, attention output, gate, up, product."""
    mixer = mixer_of(block)
    heads = 2 * mixer.num_heads * mixer.head_size + 2 * mixer.num_kv_heads * mixer.head_size
    ffn = block.activation_elements
    if block.experts:
        ffn += block.experts.experts_per_token * block.experts.ffn_size
    return 2 * model.hidden_size + heads + 3 * ffn


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Seconds of a group of ranks on its sequences, forward and backward."""

    products_s: float  # with the all-reduces inside a rank
    attention_s: float
    ring_s: float  # waited for

    @property
    def time_s(self) -> float:
        """All of it."""
        return self.products_s + self.attention_s + self.ring_s

    @property
    def forward_s(self) -> float:
        """Time of the forward pass."""
        return self.products_s / (1.0 + PRODUCTS_BACKWARD_RATIO) + self.attention_s / (1.0 + ATTENTION_BACKWARD_RATIO)


def split_work(trainer: Trainer, tokens: int, forward_attention_s: float, degree: int) -> Work:
    """The same, from the sequences' tokens and what their attention takes on one rank."""
    local = max(1, ceil(tokens / degree))
    attention = forward_attention_s / degree
    send_s = ring_step_s(trainer, local, degree) if degree > 1 else 0.0
    under_s = attention / degree  # of each of the ring's steps
    backward_s = RING_BACKWARD_RATIO * send_s - ATTENTION_BACKWARD_RATIO * under_s
    waited_s = (degree - 1) * (max(0.0, send_s - under_s) + max(0.0, backward_s))
    return Work(
        products_s=products_s(trainer, TILE_TOKENS * ceil(local / TILE_TOKENS)),
        attention_s=(1.0 + ATTENTION_BACKWARD_RATIO) * attention,
        ring_s=waited_s,
    )


@lru_cache(maxsize=65536)
def products_s(trainer: Trainer, tokens: int) -> float:
    """Every product of the model on so many tokens of one rank, and the all-reduces between its devices."""
    return float(products_many_s(trainer, np.array([tokens]))[0])


def products_many_s(trainer: Trainer, tokens: Ints) -> Floats:
    """The same for many numbers of tokens."""
    model, total = trainer.model, np.zeros(len(tokens))
    for block in model.blocks:
        layer = sum((_linear_s(trainer, x, tokens) for x in block.linears), np.zeros(len(tokens)))
        if block.experts:
            e = block.experts
            op = MoE(
                tokens=tokens,
                hidden_size=e.hidden_size,
                ffn_size=e.ffn_size,
                num_experts=e.num_experts,
                experts_per_token=e.experts_per_token,
                format="bf16",
                tp=trainer.tp,
                is_gated=e.is_gated,
            )
            layer += kernels.predict(op, trainer.device).time_s
        total += block.count * ((1.0 + PRODUCTS_BACKWARD_RATIO) * layer + _reduces_s(trainer, tokens))
    if model.head:
        total += (1.0 + PRODUCTS_BACKWARD_RATIO) * _linear_s(trainer, model.head, tokens)
    return total


def _linear_s(trainer: Trainer, linear: Linear, tokens: Ints) -> Floats:
    n, k = linear.out_features, linear.in_features
    n = ceil(n / trainer.tp) if linear.shard in ("column", "vocab") else n
    k = ceil(k / trainer.tp) if linear.shard == "row" else k
    return kernels.predict(Gemm(m=tokens, n=n, k=k, format="bf16"), trainer.device).time_s


def _reduces_s(trainer: Trainer, tokens: Ints) -> Floats:
    message_bytes = tokens.astype(np.float64) * (trainer.model.hidden_size * ELEMENT_BYTES)
    work = Collective(
        kind="all_reduce",
        num_devices=trainer.tp,
        message_bytes=message_bytes,
        devices_per_node=trainer.devices_per_node,
    )
    return REDUCES * np.asarray(network.predict(work, trainer.device).time_s)


def attention_s(trainer: Trainer, lengths: Ints) -> Floats:
    """Forward attention of each whole sequence in all layers, on one rank."""
    total = np.zeros(len(lengths))
    for block in trainer.model.blocks:
        m = mixer_of(block)
        op = AttentionPrefill(
            batch=1,
            query_tokens=lengths,
            context_tokens=lengths,
            num_heads=ceil(m.num_heads / trainer.tp),
            num_kv_heads=ceil(m.num_kv_heads / trainer.tp),
            head_size=m.head_size,
            window_tokens=m.window_tokens,
            format="bf16",
            kv_format="bf16",
        )
        total += block.count * kernels.predict(op, trainer.device).time_s
    return total


@lru_cache(maxsize=65536)
def ring_step_s(trainer: Trainer, local_tokens: int, degree: int) -> float:
    """One step of the ring in all layers: keys and values of a rank's tokens to the next rank, forward."""
    ranks_per_node = max(1, trainer.devices_per_node // trainer.tp)
    total = 0.0
    for block in trainer.model.blocks:
        m = mixer_of(block)
        elements = ceil(m.num_kv_heads / trainer.tp) * (m.head_size + m.value_head_size)
        work = Collective(
            kind="send_recv",
            num_devices=2,
            message_bytes=local_tokens * elements * ELEMENT_BYTES,
            devices_per_node=2 if degree <= ranks_per_node else 1,
        )
        total += block.count * float(network.predict(work, trainer.device).time_s)
    return total


def sync_s(trainer: Trainer) -> float:
    """Gradients summed and new weights handed out over all ranks, once a step, in turn with everything else."""
    shard_bytes = ELEMENT_BYTES * trainer.model.num_parameters / trainer.tp
    work = Collective(
        kind="all_reduce",
        num_devices=trainer.num_ranks,
        message_bytes=shard_bytes,
        devices_per_node=max(1, trainer.devices_per_node // trainer.tp),
    )
    return float(network.predict(work, trainer.device).time_s)
