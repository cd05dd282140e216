"""Two rules that cut the weight matrices of any transformer over devices, with nothing written by hand. [redco-2023]

1. Fully connected layers: a matrix is cut by its outputs, and the next one, which reads what it made, by its inputs,
   in turn. Matrices that read the same thing (gate and up) have the same shape and are cut alike.
2. Attention: what makes queries, keys and values is cut by its outputs, which are the heads; the output projection by
   its inputs.

The rules see names and shapes, in order. A side that does not divide by the devices is not cut; the other one is tried.
Embeddings are cut by their rows where they divide. Compared with ``Linear.shard``, which every family writes by hand.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

from orrery.base.errors import ScenarioError
from orrery.models.model import Block, Linear, Model, SoftmaxAttention

Cut = Literal["column", "row", "replicated"]
"""By outputs, by inputs, or not at all."""

ATTENTION_SCORES = 2
"""Matrices of tokens by tokens that a head leaves without a fused kernel: scores and weights."""

RESIDUAL_OUTPUTS = 6
"""Outputs of a layer per token, as wide as the model, whole on every device: two norms, two projections, two sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A weight as a checkpoint lists it, without what engines fuse."""

    name: str
    in_features: int
    out_features: int
    is_attention: bool = False

    @property
    def num_parameters(self) -> int:
        """Its elements."""
        return self.in_features * self.out_features


def fully_connected(matrices: Sequence[Matrix]) -> Iterator[tuple[Matrix, Cut]]:
    """Rule 1, over the matrices outside attention."""
    cut: Cut = "row"
    before: Matrix | None = None
    for m in (x for x in matrices if not x.is_attention):
        is_sibling = before and (before.in_features, before.out_features) == (m.in_features, m.out_features)
        if not is_sibling:
            cut = "row" if cut == "column" else "column"
        before = m
        yield m, cut


def attention(matrices: Sequence[Matrix]) -> Iterator[tuple[Matrix, Cut]]:
    """Rule 2, over the matrices of attention: the output projection is called by an o."""
    for m in (x for x in matrices if x.is_attention):
        yield m, "row" if _last_word(m.name).startswith("o") else "column"


RULES: tuple[Callable[[Sequence[Matrix]], Iterator[tuple[Matrix, Cut]]], ...] = (fully_connected, attention)
"""Each answers for its own matrices; together for all."""


def _last_word(name: str) -> str:
    return name.rsplit("_", 1)[-1]


def cuts(matrices: Sequence[Matrix], num_shards: int) -> dict[str, Cut]:
    """Name -> cut of every matrix of one layer."""
    return {m.name: _divisible(m, cut, num_shards) for rule in RULES for m, cut in rule(matrices)}


def _divisible(m: Matrix, preferred: Cut, num_shards: int) -> Cut:
    """The wanted cut, else the other one, else none."""
    sides: dict[Cut, int] = {"column": m.out_features, "row": m.in_features}
    tried: tuple[Cut, Cut] = ("column", "row") if preferred == "column" else ("row", "column")
    for cut in tried:
        if sides[cut] % num_shards == 0:
            return cut
    return "replicated"


def matrices(block: Block) -> tuple[Matrix, ...]:
    """The matrices of one layer as its checkpoint lists them: fused products taken apart."""
    if block.experts is not None:
        raise ScenarioError(f"{block.name}: the two rules are for dense layers; write a model without experts.")
    return tuple(m for linear in block.linears for m in _apart(block, linear))


def _apart(block: Block, linear: Linear) -> Iterator[Matrix]:
    is_attention = linear.role == "attention"
    for name, out_features in _outputs(block, linear):
        yield Matrix(name=name, in_features=linear.in_features, out_features=out_features, is_attention=is_attention)


def _outputs(block: Block, linear: Linear) -> list[tuple[str, int]]:
    """(name, outputs) of the matrices that are one product here."""
    prefix, last, mixer = linear.name[: -len(_last_word(linear.name))], _last_word(linear.name), block.mixer
    if last in ("qkv", "kv") and isinstance(mixer, SoftmaxAttention):
        sizes = {
            "q": mixer.num_heads * mixer.head_size,
            "k": mixer.num_kv_heads * mixer.head_size,
            "v": mixer.num_kv_heads * mixer.value_head_size,
        }
        return [(prefix + letter, sizes[letter]) for letter in last]
    if linear.name == "gate_up":
        return [("gate", linear.out_features // 2), ("up", linear.out_features // 2)]
    return [(linear.name, linear.out_features)]


def hand_written(block: Block) -> dict[str, str]:
    """Name -> cut, as the model's family writes it."""
    return {m.name: linear.shard for linear in block.linears for m in _apart(block, linear)}


def differences(model: Model, num_shards: int) -> tuple[str, ...]:
    """Matrices that the rules cut otherwise than the model's family; empty where the layouts are the same."""
    found: list[str] = []
    for block in (*model.encoder, *model.blocks):
        ruled, written = cuts(matrices(block), num_shards), hand_written(block)
        found += [
            f"{block.name} {name}: {ruled[name]}, not {written[name]}" for name in ruled if ruled[name] != written[name]
        ]
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """Training memory of one device."""

    state_bytes: float  # weights, gradients, moments
    activations_bytes: float

    @property
    def total_bytes(self) -> float:
        """Both."""
        return self.state_bytes + self.activations_bytes


def training_memory(
    model: Model, num_shards: int, *, sequence_tokens: int, num_sequences: int = 1, element_bytes: float = 4.0
) -> DeviceMemory:
    """Bytes per device under Adam, nothing recomputed: weight, gradient and two moments, each of ``element_bytes``.

    Cut matrices are shared out; norms and biases are whole on every device, and so are a layer's residual outputs.
    """
    layers = [(b, cuts(matrices(b), num_shards)) for b in (*model.encoder, *model.blocks)]
    ends = [
        Matrix(
            name="words", in_features=model.embedding_parameters // model.hidden_size, out_features=model.hidden_size
        )
    ]
    if model.head and not model.is_head_tied:
        ends.append(Matrix(name="head", in_features=model.head.in_features, out_features=model.head.out_features))
    held = sum(b.count * _held(matrices(b), cut, num_shards) for b, cut in layers)
    held += sum(_held((m,), {m.name: _divisible(m, "row", num_shards)}, num_shards) for m in ends)
    whole = model.num_parameters - sum(b.count * sum(m.num_parameters for m in matrices(b)) for b, _ in layers)
    whole -= sum(m.num_parameters for m in ends)
    tokens = float(sequence_tokens * num_sequences)
    activations = sum(_activations(model, b, cut, num_shards, sequence_tokens) for b, cut in layers)
    return DeviceMemory(
        state_bytes=4.0 * element_bytes * (held + whole), activations_bytes=element_bytes * tokens * activations
    )


def _held(found: Sequence[Matrix], cut: dict[str, Cut], num_shards: int) -> float:
    """Parameters of a layer's matrices on one device."""
    return sum(m.num_parameters / (1 if cut[m.name] == "replicated" else num_shards) for m in found)


def _activations(model: Model, block: Block, cut: dict[str, Cut], num_shards: int, sequence_tokens: int) -> float:
    """Elements that a token leaves in a run of equal layers on one device."""
    made = sum(
        m.out_features / (num_shards if cut[m.name] == "column" else 1) for m in matrices(block) if cut[m.name] != "row"
    )
    mixer = block.mixer
    heads = mixer.num_heads if isinstance(mixer, SoftmaxAttention) else 0
    scores = ATTENTION_SCORES * ceil(heads / num_shards) * sequence_tokens  # whole heads: the last shards are padded
    active = block.activation_elements / num_shards
    return block.count * (RESIDUAL_OUTPUTS * model.hidden_size + made + active + scores)
