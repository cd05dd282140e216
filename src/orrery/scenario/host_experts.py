"""Experts in the host's memory, as a user says it."""

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.execution.experts.offloaded import GRID
from orrery.execution.host_experts import CACHES, SCHEDULES, HostExperts
from orrery.execution.layout import Deployment, Layout
from orrery.execution.shard import shard
from orrery.execution.step import from_host
from orrery.models.model import Model
from orrery.scenario.schema import Scenario

HOST, HOST_COMPUTE = "host", "host-compute"
BESIDE = (
    "host_kv_bytes",
    "expert_cached",
    "expert_cache",
    "expert_schedule",
    "expert_prefetch",
    "expert_repeat",
    "host_flops_per_s",
)

HOST_EXPERTS = ("expert_offload", *BESIDE)
"""Settings of experts on the host."""


def host_experts_of(scenario: Scenario, model: Model, layout: Layout) -> HostExperts | None:
    """Return who keeps and computes experts that lie on the host; None where they are on the devices."""
    if scenario.expert_offload is None:
        if name := next((n for n in BESIDE if getattr(scenario, n) is not None), ""):
            raise ScenarioError(f"{name}: experts lie on the devices; write expert_offload = {HOST} beside it.")
        return None
    if scenario.expert_offload == "host-attention":
        raise ScenarioError(
            "expert_offload: host-attention is a run of requests that are all there at the start; orrery estimate and "
            "a single orrery simulate answer for it, without sweeps and other questions."
        )
    if scenario.host_kv_bytes is not None:
        raise ScenarioError("host_kv_bytes: the device keeps the cache; write expert_offload = host-attention.")
    for name, known in (
        ("expert_offload", (HOST, HOST_COMPUTE)),
        ("expert_cache", CACHES),
        ("expert_schedule", SCHEDULES),
    ):
        if (word := getattr(scenario, name)) is not None and word not in known:
            raise ScenarioError(f"{name}: got {word!r}; write one of {', '.join(known)}.")
    computes = scenario.expert_offload == HOST_COMPUTE
    if not any(b.experts for b in model.blocks):
        raise ScenarioError(f"expert_offload: {model.name} has no experts; leave expert_offload out.")
    if layout.ep > 1 or scenario.num_redundant_experts:
        raise ScenarioError("expert_offload: every device must reach every expert through its host; write ep = 1.")
    if scenario.expert_schedule and not computes:
        raise ScenarioError(f"expert_schedule: the host computes nothing; write expert_offload = {HOST_COMPUTE}.")
    if scenario.expert_prefetch and scenario.expert_cache in ("static", "layers"):
        raise ScenarioError(
            f"expert_prefetch: nothing takes another's place with expert_cache = {scenario.expert_cache}; write lru or "
            "score, or leave it out."
        )
    return HostExperts(
        computes=computes,
        cached_frac=0.5 if scenario.expert_cached is None else scenario.expert_cached,
        cache=scenario.expert_cache or "lru",  # pyright: ignore[reportArgumentType]
        schedule=scenario.expert_schedule or "greedy",  # pyright: ignore[reportArgumentType]
        prefetch_frac=scenario.expert_prefetch or 0.0,
        repeat_frac=scenario.expert_repeat or 0.0,
        host_flops_per_s=(scenario.host_flops_per_s or 0.0) if computes else 0.0,
        host_memory_bytes_per_s=(scenario.host_memory_bytes_per_s or 0.0) if computes else 0.0,
    )


def host_experts_note(deployment: Deployment) -> str:
    """Cost of experts on the host by the batch, beside the bound; blank where all lie on the devices."""
    if (rule := deployment.host_experts) is None:
        return ""
    where = "the layers keep their experts" if rule.cache == "layers" else "each layer's experts"
    text = f"expert_offload: {percent(rule.cached_frac)} of {where} on the device ({rule.cache})"
    if rule.cached_frac >= 1.0:
        return f"{text}: no effect on this deployment: none is missing"
    found = from_host(deployment, shard(deployment).experts[0])
    shown = [
        f"{tokens} {found.shown_ratio[i]:.2f} (bound {found.bound_ratio[i]:.2f})"
        for i, tokens in enumerate(GRID)
        if tokens in (1, 16, 256, 4096)
    ]
    return f"{text}; experts take, over all on the device, by tokens in a step: {', '.join(shown)}"
