"""Facts from the plain commands' answers that techniques act on."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orrery.execution.layout import Deployment, Layout
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.models.model import Model
from orrery.scenario.levers.idle import Found
from orrery.serving.metrics import Summary
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Service

FAILURES = ("device_mtbf_s", "node_mtbf_s", "slow_mtbf_s")
"""Settings by which something fails in training."""

SPREADS = ("input_tokens_std", "output_tokens_std")
UNLIKE = (*SPREADS, "trace", "turns", "calls", "lora_adapters", "concurrency")
"""Settings by which requests differ from each other."""


def of_job(job: TrainingJob, layout: TrainingLayout, given: Mapping[str, Any]) -> Found:
    """Collect what techniques can act on in a training job."""
    return Found(
        tp=layout.tp,
        pp=layout.pp,
        dp=layout.dp * layout.cp,
        ep=layout.ep,
        cp=layout.cp,
        sums_by_layer=layout.sharding == "zero3" and layout.pp == 1,
        has_experts=has_experts(job.model),
        has_failures=any(name in given for name in FAILURES),
        takes_turns=layout.vp > 1 if layout.pp > 1 else job.global_batch > layout.dp * layout.micro_batch,
    )


def of_run(service: Service, simulated: Simulated, summary: Summary, given: Mapping[str, Any]) -> Found:
    """Collect what techniques can act on in a simulated run."""
    return replace(
        of_service(service, given),
        waiting_requests=summary.waiting_mean_requests,
        preemptions=summary.preemptions,
        hidden_s=simulated.counters.get("hidden_s", 1.0),
    )


def of_service(service: Service, given: Mapping[str, Any]) -> Found:
    """Collect what techniques can act on in a service, whatever its run brings."""
    pools, layout = service.pools, service.pools[-1].deployment.layout
    return Found(
        tp=max(p.deployment.layout.tp for p in pools),
        pp=layout.pp,
        dp=layout.dp,
        ep=ranks_of_experts(layout),
        replicas=sum(p.replicas for p in pools),
        has_pools=len(pools) > 1,
        has_experts=has_experts(pools[-1].deployment.model),
        has_host_cache="host_cache_bytes" in given or "lora_adapters" in given,
        has_pauses=any(name in given for name in ("users", "turns", "calls", "trace")),
        shares_beginnings=any(name in given for name in ("prefix_tokens", "turns", "calls", "trace")),
        has_prefix="prefix_tokens" in given,
        has_adapters="lora_adapters" in given,
        has_objectives="slo" in given,
        requests_alike=not any(name in given for name in UNLIKE),
        has_spread=any(name in given for name in SPREADS) or any(name in given for name in ("trace", "turns", "calls")),
        spreads_inputs=given.get("lengths") != "constant",
        spreads_outputs=given.get("lengths") != "constant",
        has_host_experts="expert_offload" in given,
        swaps=given.get("preemption") == "swap",
        has_rate="rate" in given and "concurrency" not in given,
    )


def of_deployment(deployment: Deployment, given: Mapping[str, Any]) -> Found:
    """Collect what techniques can act on in an estimate."""
    layout = deployment.layout
    return Found(
        tp=layout.tp,
        pp=layout.pp,
        dp=layout.dp,
        ep=ranks_of_experts(layout),
        has_experts=has_experts(deployment.model),
        has_pauses="users" in given,
        spreads_inputs=False,
        spreads_outputs="concurrency" in given or "users" in given,
        has_host_experts="expert_offload" in given,
    )


def has_experts(model: Model) -> bool:
    """Whether any layer of a model has routed experts."""
    return any(block.experts for block in model.blocks)


def ranks_of_experts(layout: Layout) -> int:
    """Ranks over which experts lie: ``ep``, or all that share them."""
    return max(layout.ep, layout.dp if layout.shares_experts else 1)
