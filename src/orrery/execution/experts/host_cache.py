"""Weights that stream from the host while the host keeps the cache and attends to it: how many tokens a pass can serve.

Every pass brings all weights over the link once, whatever its batch, so tokens a second follow from how many sequences
the host's memory holds. A pass takes the longest of::

    link: weights / link rate     device: products of all its tokens     host: cache of its decodes / memory rate

In the long run C cached tokens hold N = C / (p + g/2) sequences of p prompt and g answer tokens, of which N/g prompts
enter in every pass (stage one of [moe-lens-2025]); a finite run fills and drains too, and blocks are part empty (stage
two). ``played`` goes through the passes one by one, with prompts of all lengths.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCached:
    """A model on one device and its host, and requests of one size."""

    weights_s: float  # all weights over the link
    products_s: Callable[[float], float]  # all products of a pass with so many tokens
    attention_s_per_tokens: float  # the host reads a cached token of all layers
    cache_tokens: float  # that the host's memory holds
    input_tokens: int
    output_tokens: int
    block_tokens: int = 16
    prompt_attention_s_per_tokens: float = 0.0  # of the device, to a prompt's own tokens

    def __post_init__(self) -> None:
        if self.cache_tokens < self.input_tokens + self.output_tokens:
            raise ScenarioError(
                f"cache_tokens = {self.cache_tokens:g} hold no request of {self.input_tokens} and "
                f"{self.output_tokens} tokens; give the host more memory."
            )

    @property
    def mean_tokens(self) -> float:
        """Mean cached tokens of a sequence while it is answered, with the empty half of its last block."""
        return self.input_tokens + 0.5 * self.output_tokens + 0.5 * self.block_tokens

    def pass_s(self, prompt_tokens: float, decodes: float, cached_tokens: float) -> float:
        """One pass through all layers."""
        device_s = self.products_s(prompt_tokens + decodes) + prompt_tokens * self.prompt_attention_s_per_tokens
        return max(self.weights_s, device_s, cached_tokens * self.attention_s_per_tokens)


def limit_tokens_per_s(x: HostCached) -> float:
    """Answer tokens a second of an endless run whose prompts enter beside decodes: no schedule does better."""
    sequences = x.cache_tokens / (x.input_tokens + 0.5 * x.output_tokens)
    entering = sequences / x.output_tokens
    cached = sequences * (x.input_tokens + 0.5 * x.output_tokens)
    return sequences / x.pass_s(entering * x.input_tokens, sequences, cached)


def finite_s(x: HostCached, num_requests: int) -> float:
    """Seconds of a run of so many requests: N/g of them enter in every pass; an answer's length of passes, half full,
    goes by until the cache is full, and another one until it is empty.
    """
    sequences = min(x.cache_tokens / x.mean_tokens, float(num_requests))
    entering = sequences / x.output_tokens
    prompts, half = entering * x.input_tokens, 0.5 * sequences
    read = x.input_tokens + 0.5 * x.output_tokens  # the empty half of a block takes room and is not read
    full_s = x.pass_s(prompts, sequences, sequences * read)
    filling_s, draining_s = (x.pass_s(n, half, half * read) for n in (prompts, 0.0))
    full_passes = num_requests / entering - x.output_tokens
    return full_passes * full_s + x.output_tokens * (filling_s + draining_s)


def bound_by(x: HostCached) -> str:
    """Which of the three takes longest in a pass of an endless run."""
    sequences = x.cache_tokens / (x.input_tokens + 0.5 * x.output_tokens)
    prompts = sequences / x.output_tokens * x.input_tokens
    alone = replace(x, weights_s=0.0, attention_s_per_tokens=0.0)
    found = {
        "link to the host": x.weights_s,
        "device": alone.pass_s(prompts, sequences, 0.0),
        "host memory": x.cache_tokens * x.attention_s_per_tokens,
    }
    return max(found, key=found.__getitem__)


def played(x: HostCached, input_tokens: Ints, output_tokens: Ints | None = None) -> float:
    """Seconds of a run of requests of those prompts and answers (``x.output_tokens`` each where left out), pass by
    pass.

    A pass lets in as many prompt tokens as the long run does, while there are blocks; where answers outgrow the cache,
    the youngest leave it and start again.
    """
    answers = np.full_like(input_tokens, x.output_tokens) if output_tokens is None else output_tokens
    waiting = list(zip(input_tokens[::-1].tolist(), answers[::-1].tolist(), strict=True))
    budget = min(x.cache_tokens / x.mean_tokens, float(len(waiting))) / x.output_tokens * x.input_tokens
    prompt, age, answer = np.zeros(0), np.zeros(0), np.zeros(0)
    total_s = saved = 0.0
    while waiting or prompt.size:
        saved = min(saved + budget, 2.0 * budget + float(input_tokens.max()))
        entering = list[tuple[int, int]]()
        free = x.cache_tokens - _blocks(prompt + age + 1.0, x.block_tokens).sum()
        while waiting and waiting[-1][0] <= saved and _blocks(waiting[-1][0] + 1.0, x.block_tokens) <= free:
            entering.append(waiting.pop())
            saved -= entering[-1][0]
            free -= _blocks(entering[-1][0] + 1.0, x.block_tokens)
        read = [float(tokens) for tokens, _ in entering]
        total_s += x.pass_s(sum(read), float(prompt.size), float((prompt + age).sum()))
        prompt, age = np.append(prompt, read), np.append(age + 1.0, np.zeros(len(read)))
        answer = np.append(answer, [float(tokens) for _, tokens in entering])
        stays = age < answer
        prompt, age, answer = prompt[stays], age[stays], answer[stays]
        fits = np.cumsum(_blocks(prompt + age + 1.0, x.block_tokens)) <= x.cache_tokens
        waiting += zip(prompt[~fits].astype(int).tolist(), answer[~fits].astype(int).tolist(), strict=True)
        prompt, age, answer = prompt[fits], age[fits], answer[fits]
    return total_s


def _blocks(tokens: Any, block_tokens: int) -> Any:
    """Tokens of whole blocks."""
    return np.ceil(tokens / block_tokens) * block_tokens


def phased_s(x: HostCached, num_requests: int, longest_tokens: int) -> float:
    """Seconds where all prompts of a batch are read first, every sequence reserves room for the longest prompt and its
    whole answer, and prompts are padded to the longest. [moe-lightning-2024]
    """
    room = longest_tokens + x.output_tokens
    batch = min(float(num_requests), x.cache_tokens // room)
    first_s = x.pass_s(batch * longest_tokens, 0.0, 0.0)
    ages = np.arange(1, x.output_tokens)
    later_s = sum(x.pass_s(0.0, batch, batch * (longest_tokens + age)) for age in ages.tolist())
    return num_requests / batch * (first_s + later_s)
