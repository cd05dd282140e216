# pyright: basic
"""A step's time and energy for any batch, from tables: what one simulated step costs the clock.

    pass = tokens[T] + rows[S] + prompts[n, mean new tokens, mean context] + decodes[D, mean context]

T tokens pass through the linear layers, S sequences are sampled. Attention is looked up between nodes; within a mesh
cell it is bilinear, which n x tokens x context is. Every table has five channels, of one device over all pipeline
stages: seconds, how many of them are spent in collectives and in memory-bound kernels, and the work of the matrix units
and of the memory, as seconds at their roofs (weighted for the law of power; see ``kernels.energy.steps``).
"""

from typing import NamedTuple

from orrery.base.compiled import Floats, Floats2, Floats3, Floats4, Floats5, compiled

TIME, NETWORK, MEMORY, MATRIX_WORK, MEMORY_WORK = range(5)
CHANNELS = 5


class Surface(NamedTuple):
    """The tables of one attention rank; the last axis is the channel. Stacked, each has a first axis of deployments."""

    tokens: Floats3  # (most tokens + 1, 5) by tokens in the step: linear layers, norms, collectives, gaps
    graph_tokens: Floats3  # the same where the step holds decodes only: padded to the sizes that CUDA graphs hold
    shared: Floats3  # (…, 5) by tokens of all ranks: experts and exchanges of ranks that step together; else zeros
    rows: Floats3  # (most sequences + 1, 5) by sampled sequences: head, sampling
    decode_nodes: Floats2  # sequences
    decode_context_nodes: Floats2
    decode: Floats4  # (sequences, contexts, 5)
    prompt_nodes: Floats2  # prompts in the step
    prompt_token_nodes: Floats2  # new tokens of each
    prompt_context_nodes: Floats2  # tokens each one attends to beyond its own new ones
    prompt: Floats5  # (prompts, tokens, contexts, 5)


def _cell(nodes: Floats2, which: int, x: float) -> tuple[int, float]:
    """The cell [nodes[i], nodes[i + 1]] that holds ``x``, the last one for what lies beyond; and how far into it.

    What lies before the first node is taken there; beyond the last the share exceeds 1, which extrapolates linearly.
    """
    low, size = 0, nodes.shape[1] - 1
    while size > 1:
        half = size >> 1
        low += half * (nodes[which, low + half] <= x)  # no branch to mispredict
        size -= half
    return low, max(0.0, (x - nodes[which, low]) / (nodes[which, low + 1] - nodes[which, low]))


def _add_row(table: Floats3, which: int, out: Floats, size: float) -> None:
    """Add the row of a whole size; beyond the last row in proportion to it."""
    i, last = int(size + 0.5), table.shape[1] - 1
    share = 1.0
    if i > last:
        share = i / max(1, last)
        i = last
    for channel in range(CHANNELS):
        out[channel] += share * table[which, i, channel]


def _add_decodes(table: Floats4, which: int, out: Floats, i: int, u: float, j: int, v: float) -> None:
    """Add the decodes' cell, linear in sequences and in context."""
    for channel in range(CHANNELS):
        low = (1.0 - v) * table[which, i, j, channel] + v * table[which, i, j + 1, channel]
        high = (1.0 - v) * table[which, i + 1, j, channel] + v * table[which, i + 1, j + 1, channel]
        out[channel] += max(0.0, (1.0 - u) * low + u * high)


def _add_prompts(table: Floats5, which: int, out: Floats, i: int, u: float, j: int, v: float, k: int, w: float) -> None:
    """Add the prompts' cell, linear in prompts, in new tokens and in cached ones."""
    for channel in range(CHANNELS):
        a = (1.0 - w) * table[which, i, j, k, channel] + w * table[which, i, j, k + 1, channel]
        b = (1.0 - w) * table[which, i, j + 1, k, channel] + w * table[which, i, j + 1, k + 1, channel]
        c = (1.0 - w) * table[which, i + 1, j, k, channel] + w * table[which, i + 1, j, k + 1, channel]
        d = (1.0 - w) * table[which, i + 1, j + 1, k, channel] + w * table[which, i + 1, j + 1, k + 1, channel]
        out[channel] += max(0.0, (1.0 - u) * ((1.0 - v) * a + v * b) + u * ((1.0 - v) * c + v * d))


@compiled
def device_cost(
    surface: Surface,
    which: int,
    out: Floats,
    prompts: float,
    new_tokens: float,
    pairs_tokens2: float,
    decodes: float,
    context_tokens: float,
    rows: float,
    extra_tokens: float,
) -> None:
    """Fill ``out`` with the channels of one pass of a rank of deployment ``which``: all but shared experts and host.

    ``prompts`` bring ``new_tokens`` in all, whose attention pairs sum to ``pairs_tokens2``: q (c + q/2) for q new
    tokens after c cached ones. The contexts of ``decodes`` sum to ``context_tokens``; ``rows`` sequences are sampled;
    ``extra_tokens`` pass through the linear layers only.
    """
    for channel in range(CHANNELS):
        out[channel] = 0.0
    total = new_tokens + decodes + extra_tokens
    if prompts > 0 or extra_tokens > 0:
        _add_row(surface.tokens, which, out, total)
    else:
        _add_row(surface.graph_tokens, which, out, total)
    _add_row(surface.rows, which, out, rows)
    if decodes > 0:
        i, u = _cell(surface.decode_nodes, which, decodes)
        j, v = _cell(surface.decode_context_nodes, which, context_tokens / decodes)
        _add_decodes(surface.decode, which, out, i, u, j, v)
    if prompts > 0 and new_tokens > 0:
        each = new_tokens / prompts
        i, u = _cell(surface.prompt_nodes, which, prompts)
        j, v = _cell(surface.prompt_token_nodes, which, each)
        k, w = _cell(surface.prompt_context_nodes, which, max(0.0, pairs_tokens2 / new_tokens - 0.5 * each))
        _add_prompts(surface.prompt, which, out, i, u, j, v, k, w)


@compiled
def decode_costs(
    surface: Surface,
    which: int,
    out: Floats2,
    decodes: float,
    context_tokens: float,
    kept_frac: float,
    steps: int,
) -> None:
    """Fill row k of ``out`` with the channels of the k-th of so many passes of the same ``decodes``, as ``device_cost``
    has them: to ``context_tokens`` in all at the first, one more of each at the next; ``kept_frac`` of it is read."""
    i, u = _cell(surface.decode_nodes, which, decodes)
    j, v = _cell(surface.decode_context_nodes, which, context_tokens * kept_frac / decodes)
    for k in range(steps):
        x = (context_tokens + k * decodes) * kept_frac / decodes
        while j + 2 < surface.decode_context_nodes.shape[1] and surface.decode_context_nodes[which, j + 1] <= x:
            j += 1
        low_x, high_x = surface.decode_context_nodes[which, j], surface.decode_context_nodes[which, j + 1]
        v = max(0.0, (x - low_x) / (high_x - low_x))
        row = out[k]
        for channel in range(CHANNELS):
            row[channel] = 0.0
        _add_row(surface.graph_tokens, which, row, decodes)
        _add_row(surface.rows, which, row, decodes)
        _add_decodes(surface.decode, which, row, i, u, j, v)


@compiled
def shared_cost(surface: Surface, which: int, out: Floats, tokens: float) -> None:
    """Add to ``out`` what ranks do together for ``tokens`` of all of them: experts, and the way there and back."""
    _add_row(surface.shared, which, out, tokens)
