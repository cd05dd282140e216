"""Serve requests step by step: dataclasses to arrays, the loop, arrays to dataclasses."""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.serving.requests import Ints, Requests
from orrery.serving.simulation import _kernel
from orrery.serving.simulation.assemble import Sizes
from orrery.serving.simulation.outcome import result_of
from orrery.serving.simulation.prepare import blocks_of, prepare
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.tables._kernel import FOREVER_S
from orrery.serving.simulation.world import Window, build


def simulate(
    service: Service,
    requests: Requests,
    *,
    concurrency: int = 0,
    seed: int = 0,
    window: Window | None = None,
    counts: Ints | None = None,
) -> Simulated | Infeasible:
    """Serve ``requests`` with ``service``; with a ``concurrency``, each enters as an earlier one leaves.

    Infeasible where a model does not fit, or where not one request fits into the cache. The loop counts in ``counts``
    (``NUM_COUNTS`` numbers, the ``SERVED`` one of them requests that have left), which may be memory that another
    process looks at meanwhile.
    """
    check(requests)
    block_tokens, blocks_each = blocks_of(service, requests.prefix_block_tokens)
    sizes = Sizes.of(requests, block_tokens)
    prepared = prepare(service, sizes, blocks_each=blocks_each, concurrency=concurrency)
    if isinstance(prepared, Infeasible):
        return prepared
    world = build(service, requests, prepared, seed=seed, window=window or Window())
    if counts is not None:
        counts[:] = world.counts
        world = world._replace(counts=counts)
    _kernel.run(world, FOREVER_S, 0, *prepared.calls)
    return result_of(service, requests, prepared.assembled, world)


def check(requests: Requests) -> None:
    """Refuse what no engine could serve."""
    if not requests.count:
        raise ScenarioError("requests: there are none; ask for at least one.")
    for name in ("input_tokens", "output_tokens"):
        least = int(getattr(requests, name).min())
        if least < 1:
            raise ScenarioError(f"{name}: got {least} for a request; every request needs at least 1.")
    if not np.isfinite(requests.arrive_s).all() or float(requests.arrive_s.min()) < 0:
        raise ScenarioError("arrive_s: every arrival must be a finite number of seconds from 0 on.")
    free = requests.arrive_s if not requests.after.size else requests.arrive_s[requests.after < 0]
    if (np.diff(free) < 0).any():
        raise ScenarioError("arrive_s: requests must stand in order of arrival.")
    if requests.after.size and (requests.after >= np.arange(requests.count)).any():
        raise ScenarioError("after: a request can only follow one that stands before it.")
