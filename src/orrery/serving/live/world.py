"""The loop's tables for requests that are not known yet: rows that requests take, and give back when they end."""

import numpy as np

from orrery.execution.memory import Infeasible
from orrery.serving.live.prefixes import FIRST_IDS
from orrery.serving.live.recent import MAX_NAMES
from orrery.serving.requests import Requests
from orrery.serving.simulation.assemble import Sizes, memories_of
from orrery.serving.simulation.prepare import Prepared
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.tables import _kernel as tables
from orrery.serving.simulation.world import Window, build

ROWS = 65_536
"""Tokens that are told before the loop pauses, at least."""


def sizes_of(service: Service, block_tokens: int) -> Sizes | Infeasible:
    """The longest sequences that may come: the model's context, or what the largest cache holds; the usual one is taken
    to be a quarter of that, and at most 4,096 tokens."""
    memories = memories_of(service)
    if isinstance(memories, Infeasible):
        return memories
    fits = [m.kv_capacity_tokens for m in memories]
    most = sum(fits) * max(p.replicas for p in service.pools) if service.lends_cache else max(fits)
    longest = max(2, int(min(service.pools[0].deployment.model.max_context_tokens, most)))
    return Sizes(
        block_tokens=block_tokens,
        longest_prompt_tokens=longest - 1,
        longest_tokens=longest,
        mean_context_tokens=float(min(4096, longest / 4)),
    )


def empty_world(service: Service, prepared: Prepared, rows: int, seed: int) -> tables.SimulationState:
    """Tables for ``rows`` requests at a time; none has come."""
    nobody, none = np.zeros(rows, dtype=np.int64), np.zeros(0, dtype=np.int64)
    world = build(
        service,
        Requests(
            arrive_s=np.zeros(rows),
            input_tokens=nobody + 1,
            output_tokens=nobody + 1,
            prefix_start=np.zeros(rows + 1, dtype=np.int64),
            prefix_ids=np.array([FIRST_IDS - 1]),
        ),
        prepared,
        seed=seed,
        window=Window(),
    )
    most = 4 * world.seats.shape[0] * world.seats.shape[2] + rows  # a token and an end for each seat, or all are lost
    return world._replace(
        order=none,
        prefix_start=nobody.copy(),
        prefix_end=nobody.copy(),
        prefix_ids=np.zeros(FIRST_IDS, dtype=np.int64),
        home=np.full(MAX_NAMES, -1, dtype=np.int64),
        tag=np.zeros(1 + MAX_NAMES),
        emitted=np.zeros((ROWS + most, 3), dtype=np.int64),
        emitted_s=np.zeros(ROWS + most),
    )
