"""One decoder layer as a chain of tasks, cut over devices by heads and columns, for new tokens against a context."""

from orrery.base.errors import OutOfRange
from orrery.execution.dataflow.chain import Task
from orrery.models.model import Block, Linear, SoftmaxAttention

NORM_FLOPS, SOFTMAX_FLOPS, ACTIVATION_FLOPS = 4.0, 5.0, 5.0
"""Operations an element; they bind nothing, but each of these tasks is a kernel of its own where nothing is fused."""


def layer_tasks(
    block: Block, hidden_size: int, tokens: int, context_tokens: int, *, bytes_each: float = 2.0, ranks: int = 1
) -> tuple[Task, ...]:
    """The tasks in order for ``tokens`` new tokens of one sequence that see ``context_tokens``, on one of ``ranks``.

    Scores are a tensor between tasks; keys and values of the context come from memory. Norms and sums are computed
    by every rank, the rest is shared out.
    """
    mixer = block.mixer
    if not isinstance(mixer, SoftmaxAttention) or block.experts is not None:
        raise OutOfRange(f"layer {block.name}: only softmax attention with dense linear layers is a chain of tasks.")
    seen = float(context_tokens)
    wide = tokens * hidden_size * bytes_each
    heads = mixer.num_heads / ranks
    scores = heads * tokens * seen
    mixed = heads * tokens * mixer.value_head_size * bytes_each
    keys = mixer.num_kv_heads / ranks * seen * mixer.head_size * bytes_each
    values = mixer.num_kv_heads / ranks * seen * mixer.value_head_size * bytes_each
    inner = block.activation_elements / ranks * tokens
    norm_flops = NORM_FLOPS * tokens * hidden_size
    tasks = [Task(name="norm 1", flops=norm_flops, input_bytes=wide, output_bytes=wide)]
    tasks += [_linear(x, tokens, bytes_each, ranks) for x in _of(block, "attention", is_row=False)]
    queries = tasks[-1].output_bytes
    tasks += [
        Task(
            name="scores",
            flops=2.0 * scores * mixer.head_size,
            weight_bytes=keys,
            input_bytes=queries,
            output_bytes=scores * bytes_each,
        ),
        Task(
            name="softmax",
            flops=SOFTMAX_FLOPS * scores,
            input_bytes=scores * bytes_each,
            output_bytes=scores * bytes_each,
        ),
        Task(
            name="mix",
            flops=2.0 * scores * mixer.value_head_size,
            weight_bytes=values,
            input_bytes=scores * bytes_each,
            output_bytes=mixed,
        ),
    ]
    tasks += [_linear(x, tokens, bytes_each, ranks) for x in _of(block, "attention", is_row=True)]
    tasks += [_sum("add 1", wide), Task(name="norm 2", flops=norm_flops, input_bytes=wide, output_bytes=wide)]
    tasks += [_linear(x, tokens, bytes_each, ranks) for x in _of(block, "mlp", is_row=False)]
    tasks += [
        Task(
            name="activation",
            flops=ACTIVATION_FLOPS * inner,
            input_bytes=tasks[-1].output_bytes,
            output_bytes=inner * bytes_each,
        )
    ]
    tasks += [_linear(x, tokens, bytes_each, ranks) for x in _of(block, "mlp", is_row=True)]
    return (*tasks, _sum("add 2", wide))


def _of(block: Block, role: str, *, is_row: bool) -> list[Linear]:
    return [x for x in block.linears if x.role == role and (x.shard == "row") == is_row]


def _linear(linear: Linear, tokens: int, bytes_each: float, ranks: int) -> Task:
    """A product, cut by outputs, or by inputs where it takes what others cut."""
    cut_in, cut_out = (ranks, 1) if linear.shard == "row" else (1, ranks)
    inputs, outputs = linear.in_features / cut_in, linear.out_features / cut_out
    return Task(
        name=linear.name,
        flops=2.0 * tokens * inputs * outputs,
        weight_bytes=inputs * outputs * bytes_each,
        input_bytes=tokens * inputs * bytes_each,
        output_bytes=tokens * outputs * bytes_each,
    )


def _sum(name: str, wide_bytes: float) -> Task:
    """A residual sum: two tensors in, one out."""
    return Task(name=name, flops=wide_bytes, input_bytes=2.0 * wide_bytes, output_bytes=wide_bytes)
