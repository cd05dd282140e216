"""The cache is smaller than assumed: requests wait for room, or are evicted and computed again."""

from orrery.base.units import percent, text
from orrery.calibrate.compare.cause import Cause, between, only_serving
from orrery.calibrate.compare.change import deployment_of, on_deployments, with_fields
from orrery.calibrate.compare.run import Run
from orrery.execution.layout import Deployment
from orrery.execution.memory import USABLE_FRAC, Infeasible, memory_of


def change(run: Run, severity: float) -> Run | None:
    """The engine's share of memory so low that a share ``severity`` of the assumed cache is left."""
    return on_deployments(one, lambda d: _smaller(d, severity)) if (one := only_serving(run)) else None


def _smaller(deployment: Deployment, severity: float) -> Deployment:
    memory, engine = memory_of(deployment), deployment.engine
    if isinstance(memory, Infeasible):
        return deployment
    frac = deployment.memory_utilization_frac or engine.memory_utilization_frac
    lost = (1.0 - severity) * memory.kv_capacity_bytes
    capacity = deployment.cluster.device.memory_capacity_bytes * USABLE_FRAC
    left = frac * severity if engine.is_utilization_of_free else frac - lost / capacity
    return with_fields(deployment, memory_utilization_frac=left)


def describe(run: Run, severity: float) -> str:
    """The cache that is left, in tokens."""
    memory = memory_of(deployment_of(one)) if (one := only_serving(run)) else None
    if memory is None or isinstance(memory, Infeasible):
        return f"{percent(severity)} of the assumed cache"
    tokens, size = memory.kv_capacity_tokens, text(memory.kv_capacity_bytes * severity, "bytes")
    return f"a cache of {tokens * severity:,.0f} tokens, {size} a device (assumed: {tokens:,.0f} tokens)"


CAUSE = Cause(
    name="kv-preemption",
    title="a smaller cache than assumed (requests wait, or are evicted)",
    ladder=between(0.85, 0.02, 6),
    change=change,
    describe=describe,
    shows="Long requests at high concurrency suffer: first tokens wait, throughput stands still; it is the product of "
    "length and concurrency that decides.",
    hides="Runs whose sequences fit into the smaller cache come out as predicted.",
    checks=(
        "the engine's log: 'GPU KV cache size: N tokens' and 'Maximum concurrency'; --gpu-memory-utilization",
        "metrics: vllm:num_preemptions_total rises, vllm:kv_cache_usage_perc is near 1",
        "nvidia-smi: do other processes hold memory? --max-model-len, --kv-cache-dtype, --enforce-eager",
    ),
)
