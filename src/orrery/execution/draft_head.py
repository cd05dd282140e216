"""Heads that guess a model's next tokens from its own last state: what they are, what they yield, what they cost.

MTP heads come with the checkpoint: one of its own layers behind a projection of state and token [deepseek-v3-2024].
EAGLE's is trained beside it: one dense decoder layer behind such a projection [eagle-2024]; EAGLE-3's takes states of
three layers [eagle-3-2025]. All share the model's embedding and output head. A step guesses k tokens, one pass each:
the first over all tokens that the model has just checked, the others over one token a sequence. The model then checks
k + 1 tokens a sequence at once. With the chances a_1 … a_k that a guess holds where those before it did, a step yields

    1 + a_1 + a_1 a_2 + … + a_1 … a_k   tokens of a sequence.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.batch import Batch, Part, decodes_of
from orrery.execution.layout import TREE_METHODS, Deployment, DraftHead
from orrery.execution.shard import Cache, cache_of, shard
from orrery.execution.step import Step, step
from orrery.models.model import Block, Linear, Model

USUAL: dict[str, tuple[float, float]] = {"mtp": (0.85, 0.85), "eagle": (0.75, 0.95), "eagle3": (0.8, 1.0)}
"""Assumed where nothing is given: the first guess's chance, and what each further one keeps of it. DeepSeek-V3's report
states 0.85 to 0.9 for the second token and trains one head, which is used again for later ones; EAGLE's and EAGLE-3's
papers show chances near 0.75, slowly falling, and near 0.8, level, on conversations. Traffic decides: measure it."""

STATES = {"mtp": 2, "eagle": 2, "eagle3": 3}
"""How many vectors of the model's width the projection takes."""


def usual_acceptances(method: str, num_tokens: int) -> tuple[float, ...]:
    """The assumed chances by position."""
    first, following = USUAL[method]
    return tuple(first * following**i for i in range(num_tokens))


def acceptances_of(length: float, num_tokens: int) -> tuple[float, ...]:
    """One chance for every position, by which a step of so many guesses keeps ``length`` tokens, its own with them:
    1 + a + a^2 + .. + a^n = length.
    """
    if not 1 <= length <= num_tokens + 1:
        raise ScenarioError(
            f"acceptance_length: got {length:g}; a step of {num_tokens} guesses keeps 1 to {num_tokens + 1} tokens."
        )
    coefficients = [1.0] * num_tokens + [1 - length]
    roots = np.roots(coefficients)
    chance = next((r.real for r in roots if abs(r.imag) < 1e-9 and r.real > -1e-9), 0.0)
    return (min(1.0, max(0.0, chance)),) * num_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadMemory:
    """Memory of a draft head on the device that holds it."""

    weight_bytes: float
    cache: Cache


@lru_cache(maxsize=256)
def head_of(deployment: Deployment) -> Deployment:
    """The head as a deployment of its own, which ends in the model's output head; on one pipeline stage."""
    model, head = deployment.model, deployment.draft_head
    if head is None or (head.method in TREE_METHODS and head.draft_model is None):
        raise ScenarioError("draft: this deployment has no drafting head.")
    own = replace(deployment, draft_head=None, weight_offload=None)
    if head.draft_model is not None:
        return replace(own, model=head.draft_model, layout=replace(deployment.layout, pp=1))
    if head.method == "mtp" and not model.draft_parameters:
        raise ScenarioError(f'draft: {model.name} ships no MTP layer; write draft = "eagle3" for a head of its own.')
    block = replace(model.draft_block or model.blocks[-1], count=1) if head.method == "mtp" else _dense(model.blocks)
    width = model.hidden_size
    join = Linear(
        name="draft projection",
        in_features=STATES[head.method] * width,
        out_features=width,
        shard="column",
        role="mlp",
    )
    whole = replace(block, name="draft head", linears=(join, *block.linears))
    small = replace(
        model,
        blocks=(whole,),
        embedding_parameters=0,
        other_parameters=0,
        tower_parameters=0,
        resting_parameters=0,
        tower=None,
        draft_parameters=0,
        draft_block=None,
        encoder=(),
    )
    return replace(own, model=small, layout=replace(deployment.layout, pp=1))


def _dense(blocks: tuple[Block, ...]) -> Block:
    """One of the model's layers, with a dense part as wide as the experts that a token passes where it has them."""
    plain = [b for b in blocks if b.experts is None and b.mixer is not None]
    last = replace((plain or list(blocks))[-1], count=1)
    if last.experts is None:
        return last
    width = last.experts.experts_per_token * last.experts.ffn_size
    hidden = last.experts.hidden_size
    following = tuple(x for x in last.linears if x.role not in ("router", "shared_expert"))
    up = Linear(name="gate_up", in_features=hidden, out_features=2 * width, shard="column", role="mlp")
    down = Linear(name="down", in_features=width, out_features=hidden, shard="row", role="mlp")
    return replace(last, experts=None, linears=(*following, up, down), activation_elements=width)


@lru_cache(maxsize=256)
def head_memory(deployment: Deployment) -> HeadMemory | None:
    """Weights (the output head is the model's own) and cache of the drafting head; None without one."""
    head = deployment.draft_head
    if head is None or (head.method in TREE_METHODS and head.draft_model is None):
        return None
    small = head_of(deployment)
    bare = small if head.draft_model else replace(small, model=_without_output(small.model))
    return HeadMemory(weight_bytes=shard(bare).weight_bytes, cache=cache_of(small))


def _without_output(model: Model) -> Model:
    return replace(model, head=None)


def both(cache: Cache, more: HeadMemory) -> Cache:
    """The model's cache with the head's."""
    return Cache(
        bytes_per_token=cache.bytes_per_token + more.cache.bytes_per_token,
        windows=tuple(sorted((*cache.windows, *more.cache.windows))),
        bytes_per_sequence=cache.bytes_per_sequence + more.cache.bytes_per_sequence,
    )


def checked(head: DraftHead, batch: Batch) -> Batch:
    """The batch with every guess of a decoding sequence beside its sure token."""
    context = batch.decode_context_tokens
    if head.ahead_tokens:
        context = np.rint(context + head.ahead_tokens).astype(np.int64)
    return replace(batch, guesses=head.num_checked, decode_context_tokens=context)


def with_drafting(deployment: Deployment, batch: Batch) -> Step:
    """The step that checks guesses, and the passes of the head that make the next ones."""
    head = deployment.draft_head
    if head is None:
        return step(deployment, batch)
    whole = checked(head, batch)
    done = step(deployment, whole)
    added = _drafting(deployment, head, whole)
    if not added:
        return done
    added_s = np.sum([p.time_s for p in added], axis=0)
    return Step(parts=(*done.parts, *added), time_s=done.time_s + added_s, stage_s=done.stage_s + added_s)


def _drafting(deployment: Deployment, head: DraftHead, whole: Batch) -> list[Part]:
    """Passes that make the guesses: over all tokens that were verified, then a level each."""
    if head.method in TREE_METHODS and head.draft_model is None:
        return []
    small = head_of(deployment)
    none = np.zeros_like(whole.decode_sequences)
    alone = replace(whole, guesses=0, prompt_sequences=none, prompt_tokens=none, prompt_context_tokens=none)
    if head.level_nodes:
        accepted = ceil(head.tokens_per_step) - 1
        parts = _named(step(small, replace(whole, guesses=accepted)).parts, 1.0)
        for nodes in head.level_nodes[:-1]:
            parts += _named(step(small, replace(alone, guesses=nodes - 1)).parts, 1.0)
        return parts
    parts = _named(step(small, whole).parts, 1.0)
    if head.num_tokens > 1:
        parts += _named(step(small, alone).parts, float(head.num_tokens - 1))
    return parts


def _named(parts: tuple[Part, ...], times: float) -> list[Part]:
    """The head's parts, so often, in a block of their own."""
    return [
        replace(p, name=f"draft: {p.name}", group="draft head", time_s=p.time_s * times, count=p.count * times)
        for p in parts
    ]


def drafting_s(deployment: Deployment, context_tokens: int, sequences: int) -> tuple[float, float]:
    """(base, per sequence) of all of a step's guessing, through 1 and ``sequences`` of them: the simulator's line."""
    batch = decodes_of(np.array([1, max(2, sequences)]), context_tokens)
    counts = batch.decode_sequences
    found = [p.time_s for p in with_drafting(deployment, batch).parts if p.group == "draft head"]
    if not found:
        return 0.0, 0.0
    one_s, many_s = (float(x) for x in np.sum(found, axis=0))
    slope_s = max(0.0, (many_s - one_s) / float(counts[1] - 1))
    return one_s - slope_s, slope_s
