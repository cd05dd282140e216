"""Fine-tuning beside requests: tokens trained in the room of their steps, against the same devices without requests.

    alone     l tokens / (passes x step of l tokens), l the most that the limits of a step let through; of sequences
              that go back a layer at a time, their tokens / (steps forward + steps back)
    idle      what is trained alone in the moments without requests: their share of the time x alone
    retained  (beside requests + idle) / alone

Attention among the tokens of a sequence is left out alone as it is beside requests.
"""

from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from orrery.execution.layout import Deployment
from orrery.serving.filling_passes import layer_back_s
from orrery.serving.filling_passes import pass_s as _step_s
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Filling, Service

GRAIN_TOKENS = 16
"""Sizes of steps that are tried alone differ by as much."""

MANY = 1_000_000
"""More layers than any model has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finetuned:
    """Rates (tokens a second) of fine-tuning over all devices of a service."""

    tokens_per_s: float  # beside requests
    idle_tokens_per_s: float  # in the moments without any
    alone_tokens_per_s: float  # of the same devices, were there no requests

    @property
    def retained_frac(self) -> float | None:
        """The part of fine-tuning alone that is left; None where not even that fits its limits."""
        if not self.alone_tokens_per_s:
            return None
        return (self.tokens_per_s + self.idle_tokens_per_s) / self.alone_tokens_per_s

    def to_json(self) -> dict[str, float | None]:
        """The rates as plain data."""
        return {
            "tokens_per_s": self.tokens_per_s,
            "idle_tokens_per_s": self.idle_tokens_per_s,
            "alone_tokens_per_s": self.alone_tokens_per_s,
            "retained_frac": self.retained_frac,
        }


def finetuned(service: Service, run: Simulated) -> Finetuned | None:
    """Rates of fine-tuning in a run; None where nothing filled its steps."""
    if service.filling is None:
        return None
    alone = sum(p.replicas * alone_tokens_per_s(p.deployment, service.filling) for p in service.own_pools)
    return Finetuned(
        tokens_per_s=run.counters["finetune_tokens"] / run.duration_s,
        idle_tokens_per_s=run.idle_frac * alone,
        alone_tokens_per_s=alone,
    )


def alone_tokens_per_s(deployment: Deployment, filling: Filling) -> float:
    """Tokens that a replica without requests trains, in the largest steps within the limits; 0 where none is."""
    most = filling.step_tokens
    tokens = np.append(np.arange(GRAIN_TOKENS, most, GRAIN_TOKENS), most)
    time_s = _step_s(deployment, tokens)
    within = time_s <= filling.until_s
    if not within.any():
        return 0.0
    engine, last = deployment.engine, int(np.flatnonzero(within).max())
    host_s = (1.0 - engine.overlap_frac) * engine.step_s
    if not filling.backward_layers:
        return float(tokens[last] / (filling.pass_ratio * (time_s[last] + host_s)))
    layer_s = layer_back_s(deployment, filling.sequence_tokens, filling.pass_ratio)
    each = min(filling.backward_layers, int(filling.until_s / layer_s) if filling.until_s < inf else MANY)
    if not each:
        return 0.0
    layers = deployment.model.num_layers
    ahead_s = ceil(filling.sequence_tokens / int(tokens[last])) * (float(time_s[last]) + host_s)
    back_s = layers * layer_s + ceil(layers / each) * host_s
    return filling.sequence_tokens / (ahead_s + back_s)
