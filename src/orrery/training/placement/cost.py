"""Cost of an operator on every device of a mesh, forward and backward, for a given split.

Kernels are timed at the sizes that one device sees. Backward of a product is two products; of attention five products
for the two of the forward pass, 2.5 times its time [flash-attention-2]; of everything else as many bytes again.
"""

from dataclasses import dataclass

from orrery import kernels
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm
from orrery.training.placement.graph import Graph, Op, Tensor
from orrery.training.placement.mesh import Mesh
from orrery.training.placement.signature import MeshSignature, input_placement, output_placement
from orrery.training.placement.state import local_shape

ATTENTION_BACKWARD_RATIO = 2.5
VECTOR_BYTES = 4.0
"""A 32-bit number a token, of a sum inside a norm or a softmax."""

STATE_BYTES = 16.0
"""Bytes of state per trained parameter: 16-bit weight and gradient, 32-bit copy and two moments of Adam."""

UPDATE_BYTES = 28.0
"""Traffic of Adam a parameter: reads gradient, copy and moments (14), writes copy, moments and weight (14)."""

ELEMENTWISE = {"norm": "norm", "add": "add", "activation": "norm", "embedding": "embedding", "cross_entropy": "softmax"}
"""Kernels by what they move: an activation reads and writes every element once, as a norm does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpCost:
    """Seconds of one device."""

    compute_s: float
    inner_s: float  # sums inside the operator that a cut norm or softmax takes

    @property
    def total_s(self) -> float:
        """Both, in turn."""
        return self.compute_s + self.inner_s


def op_cost(op: Op, chosen: MeshSignature, graph: Graph, mesh: Mesh) -> OpCost:
    """Forward and backward of one operator."""
    inputs = [
        local_shape(graph.tensors[name].shape, input_placement(chosen, i), mesh.shape)
        for i, name in enumerate(op.inputs)
    ]
    result = local_shape(graph.tensors[op.output].shape, output_placement(chosen), mesh.shape)
    return OpCost(compute_s=_compute_s(op, inputs, result, mesh), inner_s=_inner_s(op, chosen, result, mesh))


def _compute_s(op: Op, inputs: list[tuple[int, ...]], result: tuple[int, ...], mesh: Mesh) -> float:
    if op.kind == "matmul":
        (m, k), n = inputs[0], inputs[1][1]
        return sum(_gemm_s(*sizes, mesh) for sizes in ((m, n, k), (m, k, n), (k, n, m)))
    if op.kind == "attention" and op.heads:
        return (1.0 + ATTENTION_BACKWARD_RATIO) * _attention_s(op, result, mesh)
    tokens, width = (result if op.kind != "cross_entropy" else inputs[0])[:2]
    work = Elementwise(kind=ELEMENTWISE[op.kind], tokens=tokens, width=width)
    return 2.0 * float(kernels.predict(work, mesh.device).time_s)


def _gemm_s(m: int, n: int, k: int, mesh: Mesh) -> float:
    return float(kernels.predict(Gemm(m=m, n=n, k=k, format="bf16"), mesh.device).time_s)


def _attention_s(op: Op, result: tuple[int, ...], mesh: Mesh) -> float:
    assert op.heads is not None
    heads, tokens = result[1] // op.heads.head_size, op.heads.sequence_tokens
    work = AttentionPrefill(
        batch=result[0] // tokens,
        query_tokens=tokens,
        context_tokens=tokens,
        num_heads=heads,
        num_kv_heads=heads,
        head_size=op.heads.head_size,
        format="bf16",
        kv_format="bf16",
    )
    return float(kernels.predict(work, mesh.device).time_s)


def _inner_s(op: Op, chosen: MeshSignature, result: tuple[int, ...], mesh: Mesh) -> float:
    """Forward and backward sums over every axis of the mesh that cuts the inner letter."""
    axes = [i for i, s in enumerate(chosen) if op.inner and s.letter == op.inner and mesh.shape[i] > 1]
    message_bytes = VECTOR_BYTES * result[0]
    return 2 * op.num_inner_vectors * sum(mesh.exchange_s("all_reduce", i, message_bytes) for i in axes)


def update_s(weight: Tensor, slices: int, mesh: Mesh) -> float:
    """The optimizer's pass over the parameters that a device keeps, at the speed of its memory."""
    return UPDATE_BYTES * weight.num_elements / slices / mesh.device.memory_bandwidth_bytes_per_s
