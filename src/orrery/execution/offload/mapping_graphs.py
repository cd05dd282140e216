"""Mapping games of programs: an encoder of transformer layers, and a convolution network with residual blocks.

A program is a row of operations; each reads weights and earlier tensors and writes one. An operation takes the longer
of its arithmetic and its traffic in the slow memory, and what faster tensors save it is shared out by their bytes.
Weights may stay through all runs of the program; activations live from their maker to their last reader.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orrery.execution.offload.mapping import MappingGame, Tensor

ELEMENT_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine that a program runs on."""

    flops_per_s: float
    slow_bytes_per_s: float
    fast_bytes_per_s: float
    fast_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One step of a program: what it writes, reads, and computes; weights are not written by anybody."""

    name: str  # of what it writes
    out_bytes: float
    reads: tuple[str, ...]
    flops: float
    weights: Mapping[str, float] = field(default_factory=dict[str, float])  # bytes by name


def game_of(operations: Sequence[Operation], machine: Machine) -> MappingGame:
    """The game that a program makes on a machine."""
    sizes = {o.name: o.out_bytes for o in operations} | {k: v for o in operations for k, v in o.weights.items()}
    start = {o.name: i for i, o in enumerate(operations)}
    end = dict(start)
    saved = dict.fromkeys(sizes, 0.0)
    base_s = 0.0
    for i, o in enumerate(operations):
        touched = (o.name, *(r for r in o.reads if r in sizes), *o.weights)
        for name in touched:
            if name in start:
                end[name] = i
        moved = sum(sizes[t] for t in touched)
        slow_s, fast_s, compute_s = (
            moved / machine.slow_bytes_per_s,
            moved / machine.fast_bytes_per_s,
            o.flops / machine.flops_per_s,
        )
        base_s += max(slow_s, compute_s)
        gain_s = max(0.0, slow_s - max(fast_s, compute_s))
        for name in touched:
            saved[name] += gain_s * sizes[name] / moved
    last = len(operations) - 1
    tensors = tuple(
        Tensor(name=n, size_bytes=sizes[n], start=start.get(n, 0), end=end.get(n, last), saved_s=saved[n])
        for n in sizes
    )
    return MappingGame(capacity_bytes=machine.fast_bytes, base_s=base_s, tensors=tensors)


def transformer(num_layers: int, hidden_size: int, num_heads: int, sequences: int, tokens: int) -> list[Operation]:
    """Layers of full attention and a feed-forward part of four times the width, scores written out."""
    t, h = float(sequences * tokens), float(hidden_size)
    scores = float(sequences * num_heads * tokens * tokens)
    made: list[Operation] = []
    stream = "in"

    def add(name: str, elements: float, reads: Iterable[str], flops: float, weight: float = 0.0) -> str:
        weights = {f"{name}.w": ELEMENT_BYTES * weight} if weight else dict[str, float]()
        made.append(
            Operation(name=name, out_bytes=ELEMENT_BYTES * elements, reads=tuple(reads), flops=flops, weights=weights)
        )
        return name

    add(stream, t * h, (), 0.0)
    for i in range(num_layers):
        qkv = add(f"{i}.qkv", 3 * t * h, (stream,), 6 * t * h * h, 3 * h * h)
        raw = add(f"{i}.scores", scores, (qkv,), 2 * scores * h / num_heads)
        soft = add(f"{i}.softmax", scores, (raw,), 8 * scores)
        mixed = add(f"{i}.mixed", t * h, (soft, qkv), 2 * scores * h / num_heads)
        out = add(f"{i}.out", t * h, (mixed, stream), 2 * t * h * h, h * h)
        up = add(f"{i}.up", 4 * t * h, (out,), 8 * t * h * h, 4 * h * h)
        stream = add(f"{i}.down", t * h, (up, out), 8 * t * h * h, 4 * h * h)
    return made


def convolutions(channels: Sequence[int], blocks: int, side: int, images: int) -> list[Operation]:
    """Stages of residual blocks of two 3 x 3 convolutions; every stage halves the side and has its own channels."""
    made = [Operation(name="in", out_bytes=ELEMENT_BYTES * images * 3 * side * side, reads=(), flops=0.0)]
    stream, wide, edge = "in", 3, side
    for stage, deep in enumerate(channels):
        edge = max(1, edge // 2)
        for b in range(blocks):
            pixels = float(images * edge * edge)
            names = (f"{stage}.{b}.a", f"{stage}.{b}.b")
            for name, (into, reads) in zip(names, ((wide, (stream,)), (deep, (names[0], stream))), strict=True):
                weight = 9.0 * into * deep
                made.append(
                    Operation(
                        name=name,
                        out_bytes=ELEMENT_BYTES * pixels * deep,
                        reads=reads,
                        flops=2.0 * pixels * weight,
                        weights={f"{name}.w": ELEMENT_BYTES * weight},
                    )
                )
            stream, wide = names[1], deep
    return made


def with_backward(operations: Sequence[Operation]) -> list[Operation]:
    """The program and its gradients: each operation again in reverse, with twice the arithmetic.

    It reads the gradient of what it made and what it read, and writes the gradient of its first input; the last
    operation's own output serves as its gradient.
    """
    sizes = {o.name: o.out_bytes for o in operations}
    made = list(operations)
    gradient = {operations[-1].name: operations[-1].name}
    for o in reversed(operations):
        if not o.reads:
            continue
        first = o.reads[0]
        known = [gradient[n] for n in (o.name, first) if n in gradient]
        name = f"d{o.name}"
        made.append(
            Operation(
                name=name, out_bytes=sizes[first], reads=(*known, *o.reads), flops=2.0 * o.flops, weights=o.weights
            )
        )
        gradient[first] = name
    return made
