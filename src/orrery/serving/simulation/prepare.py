"""From a service to what the loop is given: the fleet's tables, the switches, the rules and their knobs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from orrery.base.technique import Technique
from orrery.execution.memory import Infeasible
from orrery.execution.overlap import OVERLAPS, device_knobs
from orrery.execution.speculation import drafting_s, level_chances, verified_tokens
from orrery.execution.techniques.encrypted_pipelined import HIT_FRAC
from orrery.execution.transfer import TRANSFERS
from orrery.serving.batching import EVICTS_BY_KEY, READS_ADAPTERS, READS_PREFIXES, Batching
from orrery.serving.filling_passes import layer_back_s
from orrery.serving.requests import Floats
from orrery.serving.simulation.assemble import Assembled, Sizes, assemble, parts_of
from orrery.serving.simulation.rules import (
    POLICIES,
    QUEUES,
    ROUTERS,
    batching_of,
    knobs_of,
    policy_of,
    rule_of,
    values_of,
)
from orrery.serving.simulation.service import Filling, Service
from orrery.serving.simulation.tables import _kernel as tables

UNBOUNDED_TOKENS = 2**40
"""The budget of policies that know no budget."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A service as the loop takes it, but for the requests."""

    assembled: Assembled
    switches: tables.Rules
    knobs: Floats
    calls: tuple[Callable[..., Any], ...]  # the techniques' rules, in the order in which the loop takes them
    block_tokens: int
    blocks_each: int  # of a shared prefix block; 0 = no prefix cache
    budget_tokens: int  # in place of the lanes' own; 0 = as they are


def blocks_of(service: Service, prefix_block_tokens: int) -> tuple[int, int]:
    """Tokens of a cache block, and blocks of a shared prefix block of the traffic (0: nothing is shared).

    The cache block is the engine's, or the traffic's where those are smaller or do not divide into the engine's.
    """
    engine, shared = service.pools[0].deployment.engine, prefix_block_tokens
    fits = not shared or shared % engine.block_tokens == 0
    block_tokens = engine.block_tokens if fits else int(np.gcd(shared, engine.block_tokens))
    has_prefix = engine.has_prefix_caching if service.prefix_caching is None else service.prefix_caching
    shares = has_prefix and shared > 0 and service.compression.kept_tokens_frac == 1.0
    return block_tokens, shared // block_tokens if shares else 0


def prepare(
    service: Service, sizes: Sizes, *, blocks_each: int, concurrency: int = 0, reports: bool = False
) -> Prepared | Infeasible:
    """The tables and rules of a service; Infeasible where a model does not fit."""
    assembled = assemble(service, sizes)
    if isinstance(assembled, Infeasible):
        return assembled
    engine = service.pools[0].deployment.engine
    policy = POLICIES.get(service.policy or policy_of(engine))
    batching = batching_of(policy, service.policy_knobs, engine)
    queue, router, overlap = QUEUES.get(service.queue), ROUTERS.get(service.router), OVERLAPS.get(service.overlap)
    description = device_knobs(overlap, service.pools[0].deployment)
    called = [
        (queue, service.queue_knobs),
        (router, _route_knobs(service, router, blocks_each * sizes.block_tokens)),
        (overlap, description | dict(service.overlap_knobs)),
        (TRANSFERS.get(service.transfer), service.transfer_knobs),
        (TRANSFERS.get(service.swap), service.swap_knobs),
    ]
    rows = [values_of(knobs_of(technique, knobs)) for technique, knobs in called]
    return Prepared(
        assembled=assembled,
        switches=_switches(service, batching, queue, router, concurrency, reports),
        knobs=_table([[float(batching.chunk_tokens)], *rows, _acceptances(service)]),
        calls=tuple(rule_of(t) for t in (policy, *(technique for technique, _ in called))),
        block_tokens=sizes.block_tokens,
        blocks_each=blocks_each,
        budget_tokens=UNBOUNDED_TOKENS if batching.waits_for_empty else 0,
    )


def _route_knobs(service: Service, router: Technique, shared_tokens: int) -> Mapping[str, float]:
    """The router's knobs; one that counts cached tokens is told how many a shared block of the traffic has."""
    is_told = shared_tokens > 0 and "block_tokens" in {f.name for f in fields(router.knobs)}
    return {**({"block_tokens": float(shared_tokens)} if is_told else {}), **service.router_knobs}


def _table(rows: list[list[float]]) -> Floats:
    table = np.zeros((len(rows), max(map(len, rows)) + 1))
    for to, row in zip(table, rows, strict=True):
        to[: len(row)] = row
    return table


def _acceptances(service: Service) -> list[float]:
    s = service.speculation
    return list(level_chances(s)) if s else []


def _guess_knob(service: Service) -> int:
    """Which knob of the swap's rule says how often the next transfer was guessed; -1 where none does, or the user says
    it, or nothing is swapped."""
    names = [f.name for f in fields(TRANSFERS.get(service.swap).knobs)]
    is_guessed = service.preemption == "swap" and HIT_FRAC in names and HIT_FRAC not in service.swap_knobs
    return names.index(HIT_FRAC) if is_guessed else -1


def _layer_back_s(service: Service, filling: Filling) -> float:
    """Time of a layer's way back beside a step."""
    return layer_back_s(service.pools[0].deployment, filling.sequence_tokens, filling.pass_ratio)


def _switches(
    service: Service, batching: Batching, queue: Technique, router: Technique, concurrency: int, reports: bool
) -> tables.Rules:
    s, filling = service.speculation, service.filling
    layered = filling if filling and filling.backward_layers else None
    base_s = drafting_s(s, 0.0) if s else 0.0
    return tables.Rules(
        mixes=batching.mixes,
        alternates=batching.alternates,
        waits_for_empty=batching.waits_for_empty,
        holds_batch=batching.holds_batch,
        returns_together=batching.returns_together,
        pads_prompts=batching.pads_prompts,
        reserves_output=batching.reserves_output,
        guess_knob=_guess_knob(service),
        swaps=service.preemption == "swap",
        evicts_by_key=EVICTS_BY_KEY in queue.traits,
        layer_group_tokens=batching.layer_group_tokens,
        draft_levels=len(s.widths) if s else 0,
        checked_tokens=verified_tokens(s) - 1 if s else 0,
        draft_s=base_s,
        draft_sequence_s=drafting_s(s, 1.0) - base_s if s else 0.0,
        fill_tokens=filling.step_tokens if filling else 0,
        fill_until_s=filling.until_s if filling else 0.0,
        fill_sequence=layered.sequence_tokens if layered else 0,
        fill_layers=filling.backward_layers if filling else 0,
        fill_layer_s=_layer_back_s(service, layered) if layered else 0.0,
        target_s=service.split.target_s if service.split else 0.0,
        load_hides=service.load_hides,
        transfer_layers=parts_of(service),
        prefill_queue=service.max_prefill_queue,
        has_overlap=service.overlap != "sequential",
        overlaps_sends=service.overlaps_sends,
        prompts_stream_first=service.prompts_stream_first,
        concurrency=concurrency,
        needs_prefix=READS_PREFIXES in router.traits,
        needs_adapter=READS_ADAPTERS in router.traits,
        turn_s=service.turn_s,
        max_queue=service.max_queue,
        reports=reports,
    )
