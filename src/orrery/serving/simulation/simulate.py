"""Serve requests step by step: dataclasses to arrays, the loop, arrays to dataclasses."""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.execution.overlap import device_knobs
from orrery.execution.speculation import drafting_s, verified_tokens
from orrery.serving.batching import Batching
from orrery.serving.requests import Floats, Requests
from orrery.serving.simulation import _kernel
from orrery.serving.simulation.assemble import Sizes, assemble
from orrery.serving.simulation.outcome import result_of
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.rules import batching_of, knobs_of, named, policy_of, rule_of, values_of
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.tables import _kernel as tables
from orrery.serving.simulation.world import Window, build

UNBOUNDED_TOKENS = 2**40
"""The budget of policies that know no budget."""


def simulate(
    service: Service, requests: Requests, *, concurrency: int = 0, seed: int = 0, window: Window | None = None
) -> Simulated | Infeasible:
    """Serve ``requests`` with ``service``; with a ``concurrency``, each enters as an earlier one leaves.

    Infeasible where a model does not fit, or where not one request fits into the cache.
    """
    engine = service.pools[0].deployment.engine
    check(requests)
    block_tokens = _block_tokens(engine.block_tokens, requests)
    has_prefix = engine.has_prefix_caching if service.prefix_caching is None else service.prefix_caching
    shares = has_prefix and requests.prefix_block_tokens > 0 and service.compression.kept_tokens_frac == 1.0
    blocks_each = requests.prefix_block_tokens // block_tokens if shares else 0
    assembled = assemble(service, Sizes.of(requests, block_tokens))
    if isinstance(assembled, Infeasible):
        return assembled
    policy = named("serving.policy", service.policy or policy_of(engine))
    batching = batching_of(policy, service.policy_knobs, engine)
    told = device_knobs(named("execution.overlap", service.overlap), service.pools[0].deployment)
    overlap_knobs = told | dict(service.overlap_knobs)
    seams = [
        ("serving.queue", service.queue, service.queue_knobs), ("serving.route", service.router, service.router_knobs),
        ("execution.overlap", service.overlap, overlap_knobs),
        ("execution.transfer", service.transfer, service.transfer_knobs),
        ("execution.transfer", service.swap, service.swap_knobs),
    ]  # fmt: skip
    found = [named(seam, name) for seam, name, _ in seams]
    rows = [
        [float(batching.chunk_tokens)],
        *(values_of(knobs_of(t, k)) for t, (_, _, k) in zip(found, seams, strict=True)),
    ]
    world = build(
        service, requests, assembled, _rules(service, batching, concurrency), _table([*rows, _acceptances(service)]),
        block_tokens=block_tokens, blocks_each=blocks_each, seed=seed, window=window or Window(),
        budget_tokens=UNBOUNDED_TOKENS if batching.waits_for_empty else 0,
    )  # fmt: skip
    _kernel.run(world, rule_of(policy), *(rule_of(t) for t in found))
    return result_of(service, requests, assembled, world)


def _table(rows: list[list[float]]) -> Floats:
    table = np.zeros((len(rows), max(map(len, rows)) + 1))
    for to, row in zip(table, rows, strict=True):
        to[: len(row)] = row
    return table


def _acceptances(service: Service) -> list[float]:
    s = service.speculation
    return [1.0 - (1.0 - s.acceptance_frac) ** w for w in s.widths] if s else []


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


def _block_tokens(engine_tokens: int, requests: Requests) -> int:
    """The engine's block, or the traffic's where those are smaller or do not divide into the engine's."""
    shared = requests.prefix_block_tokens
    return engine_tokens if not shared or shared % engine_tokens == 0 else int(np.gcd(shared, engine_tokens))


def _rules(service: Service, batching: Batching, concurrency: int) -> tables.Rules:
    s, filling = service.speculation, service.filling
    base_s = drafting_s(s, 0.0) if s else 0.0
    return tables.Rules(
        mixes=batching.mixes, waits_for_empty=batching.waits_for_empty, holds_batch=batching.holds_batch,
        returns_together=batching.returns_together, pads_prompts=batching.pads_prompts,
        reserves_output=batching.reserves_output, swaps=service.preemption == "swap",
        evicts_by_key=service.queue == "priority", layer_group_tokens=batching.layer_group_tokens,
        draft_levels=len(s.widths) if s else 0, checked_tokens=verified_tokens(s) - 1 if s else 0, draft_s=base_s,
        draft_sequence_s=drafting_s(s, 1.0) - base_s if s else 0.0,
        fill_tokens=filling.step_tokens if filling else 0, fill_until_s=filling.until_s if filling else 0.0,
        target_s=service.split.target_s if service.split else 0.0, load_hides=service.load_hides,
        transfer_hidden_frac=service.transfer_hidden_frac, has_overlap=service.overlap != "sequential",
        overlaps_sends=service.overlaps_sends, concurrency=concurrency, needs_prefix=service.router == "prefix-aware",
    )  # fmt: skip
