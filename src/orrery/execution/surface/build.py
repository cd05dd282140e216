"""From a deployment to its surface: a step is costed at some hundred sizes of each kind, its parts told apart."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from orrery.execution.batch import Batch, Ints, Part, slower
from orrery.execution.experts.placed import crowded
from orrery.execution.host import captured
from orrery.execution.layout import Deployment
from orrery.execution.mixing import mixer_parts
from orrery.execution.shard import has_exchange, shard
from orrery.execution.step import step
from orrery.execution.surface import nodes
from orrery.execution.surface._kernel import CHANNELS, Floats, Surface
from orrery.execution.surface.channels import channels
from orrery.execution.vision import vision_parts

DECODE_STEPS, CONTEXT_STEPS = 32, 2
"""Nodes to a doubling of the sequences that decode (which fill a device in waves; so, every one up to 46), and of
their context."""

PROMPT_STEPS, NEW_STEPS, CACHED_STEPS = 1, 5, 2
"""The same of a step's prompts, of the new tokens of each (whose own pairs grow with their square), and of the cached
tokens before them."""

FIRST_CONTEXT_TOKENS, MAX_PROMPTS, MAX_SHARED_TOKENS = 16, 64, 65536
"""Below the first context decodes cost what they cost there; beyond so many prompts, or so many tokens of all ranks,
the surface goes on in proportion."""

SHARED_PARTS, ROW_PARTS = ("experts", "dispatch", "combine"), ("sampling", "gather logits")


def surface_of(
    deployment: Deployment,
    *,
    most_tokens: int,
    most_sequences: int,
    most_context_tokens: int,
    most_prompt_tokens: int,
    guesses: int = 0,
) -> Surface:
    """The tables of one attention rank, for steps up to these sizes (each rounded up to a power of two).

    Every decoding sequence has ``guesses`` draft tokens verified, whose attention its decode counts.
    """
    sizes = (most_tokens, most_sequences, most_context_tokens, most_prompt_tokens)
    return _surface(deployment, *(1 << max(1, int(size) - 1).bit_length() for size in sizes), guesses)


@lru_cache(maxsize=64)
def _surface(
    deployment: Deployment, most_tokens: int, sequences: int, context: int, prompt: int, guesses: int
) -> Surface:
    engine = deployment.engine
    each, shared, rows = _linear_tables(deployment, most_tokens, sequences)
    padded = captured(np.arange(most_tokens + 1)) if engine.has_cuda_graphs else np.arange(most_tokens + 1)
    decodes = nodes.ladder(1, sequences, DECODE_STEPS)
    contexts = nodes.ladder(FIRST_CONTEXT_TOKENS, context, CONTEXT_STEPS)
    prompts, new = nodes.ladder(1, min(sequences, MAX_PROMPTS), PROMPT_STEPS), nodes.ladder(1, prompt, NEW_STEPS)
    cached = np.append(0, nodes.ladder(FIRST_CONTEXT_TOKENS, context, CACHED_STEPS))
    return Surface(
        tokens=each,
        graph_tokens=each[np.minimum(padded, most_tokens)],
        shared=shared,
        rows=rows,
        decode_nodes=decodes.astype(np.float64),
        decode_context_nodes=contexts.astype(np.float64),
        decode=_decode_table(deployment, decodes, contexts, guesses),
        prompt_nodes=prompts.astype(np.float64),
        prompt_token_nodes=new.astype(np.float64),
        prompt_context_nodes=cached.astype(np.float64),
        prompt=_prompt_table(deployment, prompts, new, cached),
    )


def stacked(surfaces: Sequence[Surface]) -> Surface:
    """The tables of several deployments as one, for loops that take any of them; made with the same sizes."""
    if len(surfaces) == 1:  # megabytes that nobody changes are not copied for every run
        return Surface(*(table[np.newaxis] for table in surfaces[0]))
    longest = max(s.shared.shape[0] for s in surfaces)
    padded = [s._replace(shared=np.pad(s.shared, ((0, longest - s.shared.shape[0]), (0, 0)))) for s in surfaces]
    return Surface(*(np.ascontiguousarray(np.stack(tables)) for tables in zip(*padded, strict=True)))


def _linear_tables(deployment: Deployment, most_tokens: int, most_sequences: int) -> tuple[Floats, Floats, Floats]:
    """By tokens of a rank, by tokens of all ranks, by sampled sequences: everything but the token mixers.

    A batch of decodes only, whose tokens are its sampled sequences, tells all three. Where ranks step together, one
    without work passes a token of its own, so fewer tokens than ranks cost as much as one each.
    """
    at = nodes.tokens(max(most_tokens, most_sequences))
    none = np.zeros_like(at)
    held = replace(deployment, weight_offload=None)  # fetches run beside everything, the mixers too
    parts = step(held, _batch(none, none, none, at, none + 1)).parts
    exchanging = has_exchange(deployment)
    kinds = [_kind(p, exchanging) for p in parts]

    def table(kind: str) -> Floats:
        return channels(deployment, [p for p, k in zip(parts, kinds, strict=True) if k == kind], at.size)

    shared = np.zeros((1, CHANNELS))
    if exchanging:
        ranks = deployment.layout.dp
        shared = nodes.dense(at * ranks, table("shared"), min(most_tokens * ranks, MAX_SHARED_TOKENS))
    return nodes.dense(at, table("tokens"), most_tokens), shared, nodes.dense(at, table("rows"), most_sequences)


def _kind(p: Part, exchanging: bool) -> str:
    """Which table a part belongs to."""
    if p.group == "head" or p.name in ROW_PARTS:
        return "rows"
    if exchanging and p.name in SHARED_PARTS:
        return "shared"
    is_mixer = p.once is not None and p.op not in ("gemm", "moe", "elementwise")
    return "mixer" if is_mixer else "tokens"


def _decode_table(deployment: Deployment, decodes: Ints, contexts: Ints, guesses: int) -> Floats:
    """Mixers of decodes, each with its draft tokens: (sequences, context, channel)."""
    d, c = np.meshgrid(decodes, contexts, indexing="ij")
    none = np.zeros(d.size, np.int64)
    table = _mixer_channels(deployment, replace(_batch(none, none, none, d.ravel(), c.ravel()), guesses=guesses))
    return table.reshape(*d.shape, CHANNELS)


def _prompt_table(deployment: Deployment, prompts: Ints, new: Ints, cached: Ints) -> Floats:
    """Mixers of prompts: (prompts, new tokens of each, cached tokens before them, channel)."""
    n, q, c = np.meshgrid(prompts, new, cached, indexing="ij")
    none = np.zeros(n.size, np.int64)
    table = _mixer_channels(deployment, _batch(n.ravel(), q.ravel(), (q + c).ravel(), none, none))
    return table.reshape(*n.shape, CHANNELS)


def _mixer_channels(deployment: Deployment, batch: Batch) -> Floats:
    """The channels of token mixers and of the tower that encodes images, as a step has them."""
    engine, own = deployment.engine, crowded(deployment, batch) if deployment.expert_placement else batch
    parts = list(mixer_parts(deployment, shard(deployment).mixers, own, own.largest()))
    if deployment.images:
        parts += vision_parts(deployment, deployment.images, batch)
    scaled = [slower(p, engine) for p in parts]
    return channels(deployment, scaled, batch.num_tokens.size)


def _batch(prompts: Ints, new: Ints, ends: Ints, decodes: Ints, contexts: Ints) -> Batch:
    return Batch(
        prompt_sequences=prompts,
        prompt_tokens=new,
        prompt_context_tokens=ends,
        decode_sequences=decodes,
        decode_context_tokens=contexts,
    )
