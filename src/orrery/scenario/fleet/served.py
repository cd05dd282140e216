"""Cost, energy and time of a request in each region, by the analytical estimate, as routers compare them."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.fleet.regions.region_map import Served
from orrery.fleet.service.setup import PoolTerms
from orrery.scenario.fleet.capacity import capacity_of
from orrery.serving.estimate import estimate
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool
from orrery.serving.workload import Workload

FAINT = 1e-3
"""Part of a replica's capacity at which a request is alone."""

NEAR_FULL = 0.95
"""Part of the highest rate at which a replica is full where no limit makes it so before: there its queue has no end."""


def served_of(
    regions: Sequence[str],
    pools: Sequence[Pool],
    terms: Sequence[PoolTerms],
    requests: Requests,
    limits_s: dict[str, float],
) -> Served:
    """Capacity, latency, energy and rent of a request in every region, of the first of its pools."""
    rows = [
        _row([(p, t) for p, t in zip(pools, terms, strict=True) if t.region == name], requests, limits_s)
        for name in regions
    ]
    columns = zip(*rows, strict=True)
    names = (
        "capacity_requests_per_s",
        "prefill_capacity_requests_per_s",
        "capacity_requests",
        "ttft_s",
        "usd_per_request",
        "energy_j_per_request",
        "pays_electricity",
    )
    return Served(**{name: np.array(column) for name, column in zip(names, columns, strict=True)})


def _row(
    mine: Sequence[tuple[Pool, PoolTerms]], requests: Requests, limits_s: dict[str, float]
) -> tuple[float, float, float, float, float, float, bool]:
    """One region's figures; a region whose replicas sustain nothing has no room and infinite cost."""
    pools = [p for p, _ in mine]
    capacity = capacity_of(pools, ("all", "answers"), requests, limits_s)
    prefill = capacity_of(pools, ("prompts",), requests, limits_s)
    entry = min(c for c in (capacity, prefill) if c > 0.0) if max(capacity, prefill) > 0.0 else 0.0
    pool, terms = mine[0]
    means = float(requests.input_tokens.mean()), float(requests.output_tokens.mean())
    full = _estimated(pool, *means, entry) or _estimated(pool, *means, NEAR_FULL * entry)
    faint = _estimated(pool, *means, FAINT * entry)
    if full is None or faint is None:
        return capacity, prefill, np.inf, 0.0, 0.0, 0.0, True
    usd = sum(t.usd_per_s for _, t in mine) / len(mine) / entry
    watts = full[2] + terms.host_power_w
    return capacity, prefill, full[0], faint[1], usd, watts / entry, terms.purchase == "owned"


@lru_cache(maxsize=512)
def ttft_alone_s(deployment: Deployment, input_tokens: float) -> float:
    """Time to first token of a prompt on an idle replica; infinite where the model does not fit."""
    load = Workload(mode="open", input_tokens=input_tokens, output_tokens=1.0, request_rate_per_s=FAINT)
    found = estimate(deployment, load)
    return np.inf if isinstance(found, Infeasible) else found.ttft_s


def _estimated(pool: Pool, input_tokens: float, output_tokens: float, rate: float) -> tuple[float, float, float] | None:
    """Requests in flight, TTFT, and power of the devices of a replica at a rate; None where it carries none."""
    if rate <= 0.0:
        return None
    load = Workload(mode="open", input_tokens=input_tokens, output_tokens=output_tokens, request_rate_per_s=rate)
    found = estimate(pool.deployment, load)
    if isinstance(found, Infeasible):
        return None
    return found.concurrency, found.ttft_s, found.power_w
