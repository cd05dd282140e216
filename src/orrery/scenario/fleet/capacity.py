"""Sustainable rate of one replica of a pool within the limits, by the analytical estimate for mean lengths."""

from collections.abc import Mapping, Sequence

import numpy as np

from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.planner.pools import decode_rate
from orrery.serving.online import LADDER, open_loop
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Role
from orrery.serving.steady import batch_limit


def capacity_of(
    pools: Sequence[Pool], roles: tuple[Role, ...], requests: Requests, limits_s: Mapping[str, float]
) -> float:
    """Requests/s that a replica of the first pool of some roles sustains; 0 where there is none, or it does not fit."""
    pool = next((p for p in pools if p.role in roles), None)
    if pool is None:
        return 0.0
    means = float(requests.input_tokens.mean()), float(requests.output_tokens.mean())
    if pool.role == "answers":
        return _decode_requests_per_s(pool.deployment, *means, limits_s)
    if pool.role == "prompts":  # the first token is all that they write
        first = {metric: limit_s for metric, limit_s in limits_s.items() if metric == "ttft"}
        return _requests_per_s(pool.deployment, means[0], 1.0, first)
    return _requests_per_s(pool.deployment, *means, limits_s)


def _requests_per_s(
    deployment: Deployment, input_tokens: float, output_tokens: float, limits_s: Mapping[str, float]
) -> float:
    """The highest rate of an open loop within limits on mean TTFT and TPOT."""
    memory = memory_of(deployment)
    if isinstance(memory, Infeasible):
        return 0.0
    most = batch_limit(deployment, memory, input_tokens, output_tokens) * deployment.layout.dp
    ladder = np.geomspace(1.0, max(1.0, most), 4 * LADDER)
    points = open_loop(deployment, memory, input_tokens, output_tokens, ladder)
    good = (points.ttft_s <= limits_s.get("ttft", np.inf)) & (points.tpot_s <= limits_s.get("tpot", np.inf))
    rates = points.requests_per_s[good] if good.any() else points.requests_per_s
    return float(rates.max())


def _decode_requests_per_s(
    deployment: Deployment, input_tokens: float, output_tokens: float, limits_s: Mapping[str, float]
) -> float:
    memory = memory_of(deployment)
    if isinstance(memory, Infeasible):
        return 0.0
    within, most = (
        decode_rate(deployment, memory, input_tokens, output_tokens, limit_s)
        for limit_s in (limits_s.get("tpot", np.inf), np.inf)
    )
    return within or most
