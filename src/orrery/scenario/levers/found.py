"""Facts from the plain commands' answers that techniques act on."""

from collections.abc import Mapping
from typing import Any

from orrery.execution.layout import Layout
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.scenario.levers.idle import Found
from orrery.serving.metrics import Summary
from orrery.serving.simulation.service import Service


def of_job(job: TrainingJob, layout: TrainingLayout) -> Found:
    """Collect what techniques can act on in a training job."""
    return Found(
        tp=layout.tp,
        pp=layout.pp,
        dp=layout.dp * layout.cp,
        ep=layout.ep,
        sums_by_layer=layout.sharding == "zero3" and layout.pp == 1,
        has_experts=any(b.experts for b in job.model.blocks),
    )


def of_service(service: Service, summary: Summary, given: Mapping[str, Any]) -> Found:
    """Collect what techniques can act on in a simulated run."""
    pools, layout = service.pools, service.pools[-1].deployment.layout
    return Found(
        tp=max(p.deployment.layout.tp for p in pools),
        pp=layout.pp,
        dp=layout.dp,
        ep=ranks_of_experts(layout),
        replicas=sum(p.replicas for p in pools),
        has_pools=len(pools) > 1,
        has_experts=any(b.experts for b in pools[-1].deployment.model.blocks),
        has_host_cache="host_cache_bytes" in given or "lora_adapters" in given,
        has_pauses=any(name in given for name in ("users", "turns", "calls", "trace")),
        swaps=given.get("preemption") == "swap",
        waiting_requests=summary.waiting_mean_requests,
        preemptions=summary.preemptions,
    )


def ranks_of_experts(layout: Layout) -> int:
    """Ranks over which experts lie: ``ep``, or all that share them."""
    return max(layout.ep, layout.dp if layout.shares_experts else 1)
