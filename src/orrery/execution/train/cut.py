"""Compute and memory of one device by layer, for many layouts at once.

Arrays have one entry a ``Choice``: degrees that decide what a layer costs. Everything is of one layer of a block;
``share`` weighs blocks into the average layer that every pipeline stage is taken to be made of.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.models.model import Block, Linear, Mixer, SoftmaxAttention

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Choice:
    """Degrees and sizes that a layer's cost depends on, one entry a choice."""

    tp: Ints
    cp: Ints
    ep: Ints
    etp: Ints
    micro_batch: Ints
    is_sequence_parallel: NDArray[np.bool_]
    is_ring: NDArray[np.bool_]

    @property
    def norm_ways(self) -> Ints:
        """Ways in which tensor parallelism cuts the residual stream: all of them, or none."""
        return np.where(self.is_sequence_parallel, self.tp, 1)


def choice_of(layouts: Iterable[TrainingLayout]) -> Choice:
    """One entry a layout."""
    rows = list(layouts)
    tp, cp, ep, etp, mb = (
        np.array([getattr(x, name) for x in rows], dtype=np.int64) for name in ("tp", "cp", "ep", "etp", "micro_batch")
    )
    return Choice(
        tp=tp,
        cp=cp,
        ep=ep,
        etp=etp,
        micro_batch=mb,
        is_sequence_parallel=np.array([x.is_sequence_parallel for x in rows]),
        is_ring=np.array([x.context_kind == "ring" for x in rows]),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Product:
    """One linear layer on one device: (tokens x k) by (k x n), ``groups`` times; arrays of the choices."""

    linear: Linear
    n: Ints
    k: Ints
    groups: Ints

    @property
    def parameters(self) -> Floats:
        """Weights (and bias) that the device holds."""
        bias = self.n * self.groups if self.linear.has_bias else 0
        return (self.n * self.k * self.groups + bias).astype(np.float64)


def tokens(job: TrainingJob, choice: Choice) -> Ints:
    """Tokens of one micro-batch that pass through a device's linear layers."""
    return _tokens(choice, job.seq_len)


@lru_cache(maxsize=32)  # everything that a layer costs asks for them
def _tokens(choice: Choice, seq_len: int) -> Ints:
    return np.maximum(choice.micro_batch * seq_len // choice.cp, 1)


def is_latent(job: TrainingJob, product: Product) -> bool:
    """Whether a product expands a latent vector: it reads neither the residual stream nor what another one made."""
    linear = product.linear
    return linear.role == "attention" and linear.shard == "column" and linear.in_features != job.model.hidden_size


def product(linear: Linear, mixer: Mixer | None, tp: Ints) -> Product:
    """Cut by columns, rows or vocabulary; key/value heads are never cut below one. [shoeybi-2019]"""
    ones = np.ones_like(tp)
    n, k = ones * (linear.out_features // linear.groups), ones * (linear.in_features // linear.groups)
    groups = ones * linear.groups
    if linear.groups > 1:
        groups = groups if linear.shard == "replicated" else np.maximum(1, groups // tp)
    elif linear.shard in ("column", "vocab"):
        n = _columns(linear, mixer, tp)
    elif linear.shard == "row":
        k = -(-k // tp)
    return Product(linear=linear, n=n, k=k, groups=groups)


def _columns(linear: Linear, mixer: Mixer | None, tp: Ints) -> Ints:
    if linear.kv_heads and isinstance(mixer, SoftmaxAttention):
        head = mixer.head_size + (0 if mixer.keys_are_values else mixer.value_head_size)
        rest = linear.out_features - linear.kv_heads * head
        return -(-rest // tp) + np.maximum(1, -(-linear.kv_heads // tp)) * head
    return -(-(np.ones_like(tp) * linear.out_features) // tp)


def heads(mixer: Mixer, tp: Ints) -> tuple[Ints, Ints]:
    """Query heads and key/value heads of one device."""
    kv = mixer.num_kv_heads if isinstance(mixer, SoftmaxAttention) else 1
    return np.maximum(1, -(-mixer.num_heads // tp)), np.maximum(1, -(-np.full_like(tp, kv) // tp))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShardParameters:
    """Parameters of one layer that one device holds: what all data ranks share, and experts. Arrays of the choices."""

    dense_parameters: Floats
    expert_parameters: Floats


def held(block: Block, products: list[Product], choice: Choice) -> ShardParameters:
    """Parameters of one layer on one device: cut linear layers (its part of those that layers share), whole norms and
    gates; num_experts / ep experts cut etp ways, none copied."""
    mine = (p.parameters * block.sets(p.linear) / block.count for p in products)
    dense = sum(mine, np.zeros(choice.tp.shape)) + float(block.other_parameters)
    experts = np.zeros(choice.tp.shape)
    if block.experts:
        experts = block.experts.num_experts * block.experts.num_parameters_each / (choice.ep * choice.etp)
    return ShardParameters(dense_parameters=dense, expert_parameters=np.asarray(experts, dtype=np.float64))


def adapted(job: TrainingJob, products: list[Product]) -> list[Product]:
    """Products that get low-rank additions."""
    return [p for p in products if is_adapted(job, p.linear)]


def is_adapted(job: TrainingJob, linear: Linear) -> bool:
    """Whether a linear layer gets a low-rank addition, by the framework's targets."""
    targets = job.framework.adapter_targets
    if targets == "all-linear":
        return linear.role != "router"
    return linear.role == "attention" and (targets == "attention" or linear.shard == "column")
