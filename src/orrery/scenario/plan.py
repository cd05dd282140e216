"""Planning from a scenario: its devices, formats and traffic as a search space and a goal."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from orrery.base.errors import ScenarioError
from orrery.base.units import figures
from orrery.execution.experts.all_to_all import get_dispatcher
from orrery.execution.experts.placed import placed_note
from orrery.execution.layout import TREE_METHODS, DraftHead
from orrery.execution.memory import Infeasible
from orrery.fleet.power.phases import clocked
from orrery.numerics.registry import get_format
from orrery.planner.budget import weight_of
from orrery.planner.detail import detail
from orrery.planner.goal import Goal, Objectives
from orrery.planner.money import tariff_of
from orrery.planner.plan import Operation, Plan, SearchResult
from orrery.planner.search import search
from orrery.planner.space import Fixed, Option, Space, candidates
from orrery.planner.workers import HERE, Workers
from orrery.scenario.clock import clock_fracs
from orrery.scenario.cuts import cut_of, degrees_of
from orrery.scenario.draft_trees import plan_heads
from orrery.scenario.drafting import draft_head_of, draft_notes
from orrery.scenario.expert_loads import expert_loads, expert_routes
from orrery.scenario.forms import check_knobs, overlap_knobs, unused_knobs, with_policy
from orrery.scenario.images import images_of
from orrery.scenario.kept_cache import compression_of
from orrery.scenario.kernel_backends import product_notes
from orrery.scenario.levers.found import has_experts, ranks_of_experts
from orrery.scenario.levers.idle import NOTED_OF_LAYOUTS, NOTED_OF_PLANS, SOME, Found, idle_notes
from orrery.scenario.money import is_money_asked, money_of
from orrery.scenario.narrow_products import (
    check_mixed_widths,
    mixes_widths,
    online_rotation_of,
    wide_format_of,
    wide_frac_of,
)
from orrery.scenario.objectives import read_objectives
from orrery.scenario.own_price import own_usd_per_hour
from orrery.scenario.plan_answer import PlanAnswer, nothing_works
from orrery.scenario.power_row import power_row_of
from orrery.scenario.reasoning import unused
from orrery.scenario.resolve import (
    REDUNDANCY,
    Parts,
    backends_of,
    device_names,
    find,
    placement_of,
    recv_interval_of,
    words,
)
from orrery.scenario.schema import Scenario
from orrery.scenario.sparse_weights import sparsity_notes, sparsity_of
from orrery.scenario.traffic import traffic_of
from orrery.scenario.users import think_s, users_rate
from orrery.scenario.weight_offload import weight_offload_of

MAX_DEVICES = 8
"""Without --max-devices: one usual server."""

MAX_BUDGET_DEVICES = 100_000
"""Where dollars or watts bound a plan, and no number of devices does."""

IN_FULL = 5
"""Plans that are worked out in full, beside the best of each device; the rest are counted."""

EVERY_PLAN = 1_000_000
"""A search never has more."""


NOT_PAID = "ways to pay (api_price, buy_usd, …): not compared where plans are simulated"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Searched:
    """Result of the closed form for a scenario, before its plans are worked out in full."""

    scenario: Scenario
    goal: Goal
    space: Space
    found: SearchResult
    notes: tuple[str, ...]
    started_s: float  # on the clock of time.perf_counter

    def answer(self, plans: Sequence[Plan], infeasible: Infeasible | None) -> PlanAnswer:
        """The answer with these plans, best first."""
        found, tariffs = self.found, tuple({o.device.name: o.tariff for o in self.space.options}.items())
        return PlanAnswer(
            goal=self.goal,
            plans=tuple(plans),
            num_plans=len(found.plans),
            rejected=found.rejected,
            front=found.front,
            infeasible=infeasible,
            evaluated=found.evaluated,
            num_candidates=found.num_candidates,
            seconds=time.perf_counter() - self.started_s,
            tariffs=tariffs,
            notes=self.notes,
            settings=self.scenario.written(),
        )


def plan_scenario(
    scenario: Scenario,
    count: int = IN_FULL,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    workers: Workers = HERE,
) -> PlanAnswer:
    """Search the space of a scenario for its goal; ``on_progress`` is told (done, total)."""
    searched = searched_for(scenario, on_progress=on_progress, workers=workers)
    ranks = worth_detail(searched.found.plans, count)
    plans = tuple(detail(searched.goal, searched.found.plans[rank - 1]) for rank in ranks)
    answer = replace(searched.answer(plans, None if plans else nothing_works(searched.found.rejected)), ranks=ranks)
    if plans and (scenario.power_budget_w is not None or scenario.power_cap is not None):
        row = power_row_of(scenario, plans[0])
        answer = replace(answer, power_row=row, notes=(*answer.notes, *row.notes))
    if not plans or not is_money_asked(scenario):
        return answer
    tariff = dict(answer.tariffs)[plans[0].operation.deployment.cluster.device.name]
    found = money_of(scenario, plans[0], tariff)
    return replace(answer, money=found, notes=(*answer.notes, *found.notes))


def worth_detail(found: Sequence[Operation], count: int) -> tuple[int, ...]:
    """Ranks, from 1, of the best ``count`` plans and of the best of each device."""
    best_of: dict[str, int] = {}
    for rank, operation in enumerate(found, 1):
        best_of.setdefault(operation.deployment.cluster.device.name, rank)
    return tuple(sorted({*range(1, min(count, len(found)) + 1), *best_of.values()}))


def searched_for(
    scenario: Scenario,
    is_simulated: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    workers: Workers = HERE,
) -> Searched:
    """The search alone. Where plans are simulated afterwards, percentiles are searched for as if they were means."""
    started_s = time.perf_counter()
    found_parts = [find(scenario, name) for name in device_names(scenario)]
    goal, traffic_notes = goal_of(scenario, is_simulated)
    space = space_of(scenario, found_parts, goal.max_devices)
    goal = within_budget(goal, scenario, space.options)
    space = replace(space, max_devices=goal.max_devices)
    found = search(goal, candidates(space), on_progress, workers)
    if scenario.users is not None:
        goal, users_note = _at_users(scenario, goal, found)
        traffic_notes = (*traffic_notes, users_note)
    if not found.num_candidates:
        raise ScenarioError(_empty(scenario, goal))
    notes = [n for p in found_parts for n in p.notes] + [*traffic_notes, *_scope_notes(scenario, goal, is_simulated)]
    notes += [n for option in space.options for n in option.tariff.notes]
    notes += [*_draft_notes(scenario, space, found), *sparsity_notes(space.fixed.sparsity)]
    notes += _unused_notes(scenario, found_parts[0], found)
    return Searched(
        scenario=scenario, goal=goal, space=space, found=found, notes=tuple(dict.fromkeys(notes)), started_s=started_s
    )


def _at_users(scenario: Scenario, goal: Goal, found: SearchResult) -> tuple[Goal, str]:
    """The goal with the rate of people who also wait for their replies, as the best plan gives them."""
    if found.plans:
        goal = replace(goal, traffic=replace(goal.traffic, request_rate_per_s=found.plans[0].requests_per_s))
    rate = figures(goal.traffic.request_rate_per_s)
    return goal, f"users: {scenario.users:,} who think {figures(think_s(scenario))} s send {rate} requests/s"


def goal_of(scenario: Scenario, is_simulated: bool = False) -> tuple[Goal, tuple[str, ...]]:
    """The goal of a scenario, and what was assumed about its traffic."""
    traffic, notes = traffic_of(scenario)
    if scenario.users is not None:
        rate = users_rate(scenario)
        traffic = replace(traffic, num_users=float(scenario.users), think_s=think_s(scenario), request_rate_per_s=rate)
    most = scenario.max_devices or scenario.devices or MAX_DEVICES
    if scenario.objective == "latency" and not traffic.request_rate_per_s:
        raise ScenarioError("objective: latency is of a load; write rate or users.")
    best = "throughput" if scenario.objective == "throughput" or not traffic.request_rate_per_s else "cost"
    if scenario.objective in ("latency", "energy"):
        best = scenario.objective
    return Goal(
        objectives=_objectives(scenario, is_simulated),
        traffic=traffic,
        max_devices=most,
        best=best,
        max_usd_per_hour=inf if scenario.max_usd_per_hour is None else scenario.max_usd_per_hour,
    ), notes


def within_budget(goal: Goal, scenario: Scenario, options: Sequence[Option]) -> Goal:
    """The goal with as many devices as its dollars and watts hold, where nobody says how many there are."""
    if goal.max_usd_per_hour < inf:
        for option in options:
            if option.tariff.usd_per_hour is None:
                raise ScenarioError(
                    f"max_usd_per_hour: no price of {option.device.name} is known; write usd_per_hour, or leave it out."
                )
    if goal.budget.is_by_devices or scenario.max_devices or scenario.devices:
        return goal
    free = replace(goal, max_devices=MAX_BUDGET_DEVICES).budget
    most = max(free.most(weight_of(option, 1)) for option in options)
    if not most:
        raise ScenarioError("max_usd_per_hour, power_budget_w: not enough for one device; write more.")
    return replace(goal, max_devices=most)


def _objectives(scenario: Scenario, is_simulated: bool) -> Objectives:
    """Limits on means. Of several percentiles the widest limit counts, as the mean must be within that at least."""
    limits_s: dict[str, float] = {}
    for one in read_objectives(scenario.slo):
        if one.percent and not is_simulated:
            raise ScenarioError(
                f"slo: {one.written!r} asks for a percentile, and the closed form knows means only; "
                f"add --simulate, or write {one.metric}:{one.limit_s * 1e3:.12g} for the mean."
            )
        name = f"{one.metric}_s"
        limits_s[name] = max(one.limit_s, limits_s.get(name, 0.0))
    return Objectives(**limits_s)


def space_of(scenario: Scenario, parts: Sequence[Parts], max_devices: int) -> Space:
    """Search space: everything that the scenario does not fix."""
    check_knobs(scenario)
    if scenario.expert_placement == REDUNDANCY and not scenario.num_redundant_experts:
        raise ScenarioError("expert_placement: redundancy needs a number of copies here; write num_redundant_experts.")
    options = [
        Option(
            device=clocked(p.device, clock),
            clock_frac=clock,
            engine=with_policy(scenario, p.engine),
            tariff=tariff_of(p.device, own_usd_per_hour(scenario, p.device.name), scenario.electricity),
        )
        for p in parts
        for clock in clock_fracs(scenario)
    ]
    cut = cut_of(scenario, parts[0].model)
    degrees = degrees_of(cut) if cut else {}
    held = _formats(scenario.weights) or (parts[0].model.weights_format,)
    if mixes_widths(scenario):
        check_mixed_widths(scenario, held, parts[0].model, [p.device for p in parts])
    fixed = Fixed(
        tp=scenario.tp or degrees.get("tp", 0),
        pp=scenario.pp or 0,
        dp=scenario.dp or degrees.get("dp", 0),
        ep=scenario.ep or degrees.get("ep", 0),
        etp=degrees.get("etp", 0),
        cuts="any" if scenario.cut and not cut else "",
        cp=scenario.cp or 1,
        weights=_formats(scenario.weights),
        kv=_formats(scenario.kv),
        activations=get_format(scenario.activations).name if scenario.activations else "",
        max_num_seqs=scenario.max_num_seqs or 0,
        max_num_batched_tokens=scenario.max_num_batched_tokens or 0,
        max_model_tokens=scenario.max_model_len or 0,
        memory_utilization_frac=scenario.gpu_memory_utilization or 0.0,
        backends=backends_of(scenario),
        mode="open",
        draft_heads=_draft_heads(scenario),
        compression=compression_of(scenario, parts[0].model),
        expert_loads=expert_loads(scenario.expert_loads, parts[0].model),
        overlap=scenario.overlap or "",
        overlap_knobs=overlap_knobs(scenario),
        expert_placement=placement_of(scenario, parts[0].model),
        expert_routes=expert_routes(scenario.expert_loads, parts[0].model),
        weight_offload=weight_offload_of(scenario, parts[0].device),
        online_rotation=online_rotation_of(scenario, held),
        wide_frac=wide_frac_of(scenario, held, parts[0].model),
        sparsity=sparsity_of(scenario, parts[0].model, [p.device for p in parts]),
        wide_format=wide_format_of(scenario, held),
        scheduler_recv_interval=recv_interval_of(scenario, parts[0].engine),
        dispatcher=get_dispatcher(scenario.all2all_backend or ""),
        num_redundant_experts=scenario.num_redundant_experts or 0,
        images=images_of(scenario, parts[0].model),
    )
    return Space(model=parts[0].model, options=options, max_devices=max_devices, fixed=fixed)


def _draft_heads(scenario: Scenario) -> tuple[DraftHead, ...]:
    """The head that is asked for, or the trees that every layout tries."""
    head = draft_head_of(scenario)
    if scenario.draft in TREE_METHODS:
        return plan_heads(scenario)
    if given := [name for name in ("draft_model", "draft_tree") if getattr(scenario, name) is not None]:
        raise ScenarioError(f'{given[0]}: a plan takes it for trees alone; write draft = "tree", or leave it out.')
    return (head,) if head else ()


def _draft_notes(scenario: Scenario, space: Space, found: SearchResult) -> tuple[str, ...]:
    """Assumptions about a draft head; of trees, the one of the best plan."""
    heads = space.fixed.draft_heads
    if scenario.draft not in TREE_METHODS:
        return draft_notes(scenario, heads[0] if heads else None)
    if not found.plans or (best := found.plans[0].deployment.draft_head) is None:
        return ()
    levels = "+".join(str(n) for n in best.level_nodes if n)
    return (
        f"draft: the best plan verifies {best.method} of {levels} draft tokens, {best.tokens_per_step:.3g} tokens a "
        f"step; {len(heads)} trees were tried on every layout",
    )


def _formats(text: str | None) -> tuple[str, ...]:
    return tuple(get_format(word).name for word in words(text)) if text else ()


def _unused_notes(scenario: Scenario, parts: Parts, found: SearchResult) -> tuple[str, ...]:
    """Notes on settings that change no number of any plan."""
    given = scenario.written()
    facts = Found(has_experts=has_experts(parts.model), has_pauses="users" in given, tp=SOME, ep=SOME)
    if not found.plans:
        return (*idle_notes(given, facts, NOTED_OF_PLANS), *unused(scenario))
    deployments = [plan.deployment for plan in found.plans]
    widest = max(deployments, key=lambda d: ranks_of_experts(d.layout))
    facts = replace(facts, tp=max(d.layout.tp for d in deployments), ep=ranks_of_experts(widest.layout))
    of_kernels = product_notes(widest) if scenario.gemm_backend else ()
    of_placed = placed_note(widest) if widest.expert_placement else ""
    return (
        *idle_notes(given, facts, NOTED_OF_LAYOUTS),
        *of_kernels,
        *([of_placed] if "no effect" in of_placed else ()),
        *unused_knobs(scenario),
        *unused(scenario),
    )


def _scope_notes(scenario: Scenario, goal: Goal, is_simulated: bool) -> tuple[str, ...]:
    notes: list[str] = []
    if scenario.max_devices is None and scenario.devices is None:
        why = "one usual server" if goal.budget.is_by_devices else "what the dollars hold of the cheapest"
        notes.append(f"max_devices: {goal.max_devices} ({why})")
    if goal.objectives.limits() and not is_simulated:
        notes.append("objectives are held against mean latencies; --simulate holds them against every request")
    if scenario.devices is not None and scenario.max_devices is not None:
        notes.append("devices: not used; max_devices bounds the plan")
    for name in ("batch", "concurrency"):
        if getattr(scenario, name) is not None:
            notes.append(f"{name}: not used; a plan finds its own")
    if is_simulated and scenario.power_budget_w is not None:
        notes.append("power_budget_w: not used where plans are simulated")
    if scenario.spare_frac is not None:
        notes.append("spare_frac: not used; add --mix")
    for name in ("prefill_device", "decode_device", "layerwise_transfer", "max_prefill_queue"):
        if getattr(scenario, name) is not None:
            notes.append(f"{name}: not used; add --disaggregate")
    for name in ("attainment", "num_requests"):
        if getattr(scenario, name) is not None and not is_simulated:
            notes.append(f"{name}: not used; add --simulate")
    if is_simulated and is_money_asked(scenario):
        notes.append(
            "ways to pay (api_price, buy_usd, …): not compared with --simulate or --disaggregate; leave it out"
        )
    if not goal.traffic.request_rate_per_s:
        notes.append("no rate is given: plans are ranked by output tokens/s per device")
    return tuple(notes)


def _empty(scenario: Scenario, goal: Goal) -> str:
    degrees = ", ".join(f"{d} = {n}" for d in ("tp", "pp", "dp", "ep") if (n := getattr(scenario, d)))
    degrees_text = degrees or "these degrees"
    return f"No layout of at most {goal.max_devices} devices has {degrees_text}; raise max_devices, or free one."
