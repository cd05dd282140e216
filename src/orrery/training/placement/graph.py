"""Operators and the tensors between them, named by letters as in an einsum: "th,ha->ta" is a product that sums over h.

From the letters alone follows how an operator can be cut (see ``signature``); the rest of this file builds the pieces
of a transformer out of them. Letters: t tokens, h hidden, a heads times their size, f feed-forward, v vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orrery.base.errors import ScenarioError

Role = Literal["value", "weight", "input"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One letter an axis. Inputs and weights are placed by choice, values come out of an operator."""

    name: str
    letters: str
    shape: tuple[int, ...]
    role: Role = "value"
    has_gradient: bool = True
    bytes_per_element: float = 2.0

    @property
    def num_elements(self) -> int:
        """Elements of the whole tensor."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def bytes(self) -> float:
        """Bytes of the whole tensor."""
        return self.num_elements * self.bytes_per_element


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Attention's parameters beyond the shapes of its operands."""

    sequence_tokens: int
    head_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operator. ``splits`` are the letters that may be cut; ``linear`` lists the operands that may be partial
    together (the result is then partial too). Cutting ``inner`` takes ``num_inner_vectors`` sums over the devices of
    one 32-bit number a token (row maxima, sums and the like), forward and again backward.
    """

    name: str
    kind: str  # "matmul", "norm", "add", "activation", "attention", "embedding", "cross_entropy"
    inputs: tuple[str, ...]
    output: str
    splits: str
    linear: tuple[tuple[int, ...], ...] = ()
    inner: str = ""
    num_inner_vectors: int = 0
    indexed: str = ""  # a letter that another operand points into: a device must know which part of it is its own
    heads: Heads | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Graph:
    """Operators in the order of execution. ``pieces``: into how many equal parts a letter can be cut at most.

    ``loops`` are (value, input) pairs: the input of the next copy of this graph is this value, so their placements
    must be brought together too.
    """

    tensors: Mapping[str, Tensor]
    ops: tuple[Op, ...]
    pieces: Mapping[str, int]
    loops: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        known = {t.name for t in self.tensors.values() if t.role != "value"}
        for op in self.ops:
            if missing := [name for name in op.inputs if name not in known]:
                raise ScenarioError(f"graph: {op.name} reads {', '.join(missing)} before it is made; reorder the ops.")
            known.add(op.output)

    @property
    def num_parameters(self) -> int:
        """Elements of all weights."""
        return sum(t.num_elements for t in self.tensors.values() if t.role == "weight")


def matmul(name: str, x: str, weight: str, output: str, letters: str) -> Op:
    """x[m, k] weight[k, n]; ``letters`` are "mkn"."""
    return Op(name=name, kind="matmul", inputs=(x, weight), output=output, splits=letters, linear=((0,), (1,)))


def add(name: str, left: str, right: str, output: str, letters: str = "th") -> Op:
    """An element-wise sum."""
    return Op(name=name, kind="add", inputs=(left, right), output=output, splits=letters, linear=((0, 1),))


def norm(name: str, x: str, output: str) -> Op:
    """Layer norm over h: mean and variance when h is cut."""
    return Op(name=name, kind="norm", inputs=(x,), output=output, splits="th", inner="h", num_inner_vectors=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """A transformer layer and the batch that passes it."""

    num_sequences: int
    sequence_tokens: int
    hidden_size: int
    num_heads: int
    ffn_size: int
    vocab_size: int = 0

    @property
    def num_tokens(self) -> int:
        """Tokens of the batch."""
        return self.num_sequences * self.sequence_tokens

    @property
    def pieces(self) -> dict[str, int]:
        """Tokens are cut between sequences, projections between heads, the rest anywhere."""
        return {
            "t": self.num_sequences,
            "h": self.hidden_size,
            "a": self.num_heads,
            "f": self.ffn_size,
            "v": self.vocab_size,
        }


def transformer_layer(s: Sizes) -> Graph:
    """Norm, attention, sum; norm, feed-forward, sum; the result is the next layer's input."""
    t, h, a, f = s.num_tokens, s.hidden_size, s.hidden_size, s.ffn_size
    tensors = (
        Tensor(name="x", letters="th", shape=(t, h), role="input"),
        Tensor(name="normed", letters="th", shape=(t, h)),
        Tensor(name="w_qkv", letters="ha", shape=(h, 3 * a), role="weight"),
        Tensor(name="qkv", letters="ta", shape=(t, 3 * a)),
        Tensor(name="attended", letters="ta", shape=(t, a)),
        Tensor(name="w_out", letters="ah", shape=(a, h), role="weight"),
        Tensor(name="mixed", letters="th", shape=(t, h)),
        Tensor(name="middle", letters="th", shape=(t, h)),
        Tensor(name="normed_again", letters="th", shape=(t, h)),
        Tensor(name="w_up", letters="hf", shape=(h, f), role="weight"),
        Tensor(name="up", letters="tf", shape=(t, f)),
        Tensor(name="active", letters="tf", shape=(t, f)),
        Tensor(name="w_down", letters="fh", shape=(f, h), role="weight"),
        Tensor(name="down", letters="th", shape=(t, h)),
        Tensor(name="y", letters="th", shape=(t, h)),
    )
    heads = Heads(sequence_tokens=s.sequence_tokens, head_size=h // s.num_heads)
    ops = (
        norm("norm", "x", "normed"),
        matmul("qkv", "normed", "w_qkv", "qkv", "tha"),
        Op(name="attention", kind="attention", inputs=("qkv",), output="attended", splits="ta", heads=heads),
        matmul("out", "attended", "w_out", "mixed", "tah"),
        add("add", "x", "mixed", "middle"),
        norm("norm_again", "middle", "normed_again"),
        matmul("up", "normed_again", "w_up", "up", "thf"),
        Op(name="activation", kind="activation", inputs=("up",), output="active", splits="tf"),
        matmul("down", "active", "w_down", "down", "tfh"),
        add("add_again", "middle", "down", "y"),
    )
    return Graph(tensors={x.name: x for x in tensors}, ops=ops, pieces=s.pieces, loops=(("y", "x"),))
