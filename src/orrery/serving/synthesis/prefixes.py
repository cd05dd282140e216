"""Groups of requests that begin alike: k prefixes, each before its share of the prompts."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.serving.arrivals import arrivals
from orrery.serving.requests import Requests
from orrery.serving.synthesis.blocks import shared_then_own
from orrery.serving.synthesis.lengths import Length, draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """How many prefixes, how long, and what follows them; the defaults are those of ``prefix_repetition`` [vllm]."""

    num_prefixes: int = 10
    prefix_tokens: int = 256
    suffix: Length = field(default_factory=lambda: Length(mean_tokens=256.0))
    answer: Length = field(default_factory=lambda: Length(mean_tokens=128.0))
    block_tokens: int = 16  # of the prefix cache

    def __post_init__(self) -> None:
        for name, least in (("num_prefixes", 1), ("prefix_tokens", 0), ("block_tokens", 1)):
            if not least <= (got := getattr(self, name)) <= 100_000_000:
                raise ScenarioError(f"traffic: {name}: got {got}; write a whole number from {least}.")


def shared_prefixes(
    count: int, rate_per_s: float, seed: int = 0, traffic: Prefixes | None = None, law: str = "poisson", **knobs: Any
) -> Requests:
    """``count`` requests whose prefixes come in random order, each round of k requests holding every prefix once."""
    like = traffic or Prefixes()
    size = like.block_tokens
    group = _groups(count, like.num_prefixes, seed)
    inputs = like.prefix_tokens + draw(like.suffix, count, stream(seed, "lengths/input"))
    outputs = draw(like.answer, count, stream(seed, "lengths/output"))
    shared = np.full(count, like.prefix_tokens // size)
    own = (inputs + outputs) // size - shared
    kinds = int(group.max()) + 1 if count else 0
    own_first = kinds * (like.prefix_tokens // size) + np.cumsum(own) - own
    start, ids = shared_then_own(group * (like.prefix_tokens // size), shared, own_first, own, size)
    return Requests(
        arrive_s=arrivals(law, count, rate_per_s, seed, **knobs),
        input_tokens=inputs,
        output_tokens=outputs,
        prefix_start=start,
        prefix_ids=ids,
        prefix_block_tokens=size,
    )


def repeated(requests: Requests, num_prompts: int, block_tokens: int) -> Requests:
    """The same requests, with ``num_prompts`` different prompts asked in turn: all whole blocks before a prompt's last
    token are those of the request ``num_prompts`` before it (the last token is computed again, for its logits)."""
    blocks = (requests.input_tokens - 1) // block_tokens
    longest, none = int(blocks.max(initial=0)), np.zeros_like(blocks)
    prompt = np.arange(requests.count) % num_prompts
    start, ids = shared_then_own(prompt * longest, blocks, none, none, block_tokens)
    return replace(requests, prefix_start=start, prefix_ids=ids, prefix_block_tokens=block_tokens)


def _groups(count: int, num_prefixes: int, seed: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The prefix of each request: shuffled decks of all prefixes, numbered in order of their first use."""
    if num_prefixes >= count:
        return np.arange(count)
    decks = stream(seed, "sessions").random((-(-count // num_prefixes), num_prefixes)).argsort(axis=1)
    number = np.argsort(decks[0])  # the first deck holds every prefix: its order is the numbering
    return number[decks].ravel()[:count]
