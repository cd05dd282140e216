"""Fewer sequences run together than were sent: a limit below the concurrency, so that the rest waits."""

from collections.abc import Sequence

import numpy as np

from orrery.calibrate.compare.cause import Cause, only_serving
from orrery.calibrate.compare.change import deployment_of, on_deployments, with_fields
from orrery.calibrate.compare.run import Run
from orrery.execution.memory import max_num_seqs

NODES = 6


def ladder(runs: Sequence[Run]) -> Sequence[float]:
    """Counts from just below the largest batch down to one."""
    most = max((_together(run) for run in runs), default=0)
    return tuple(sorted({float(round(v)) for v in np.geomspace(1.0, max(1.0, 0.9 * most), NODES)}, reverse=True))


def _together(run: Run) -> int:
    """The most sequences that the prediction lets run together in a replica."""
    if not (one := only_serving(run)):
        return 0
    d, w = deployment_of(one), one.workload
    limit = max_num_seqs(d)
    requested = w.concurrency or w.batch_size
    return min(limit, -(-requested // d.layout.dp)) if requested else limit


def change(run: Run, severity: float) -> Run | None:
    """At most ``severity`` sequences in a replica's batch."""
    limit = max(1, round(severity))
    return on_deployments(one, lambda d: with_fields(d, max_num_seqs=limit)) if (one := only_serving(run)) else None


def describe(run: Run, severity: float) -> str:
    """The limit beside the assumed one."""
    assumed = max_num_seqs(deployment_of(one)) if (one := only_serving(run)) else 0
    return f"at most {severity:.0f} sequences in a batch (assumed: {assumed:,})"


CAUSE = Cause(
    name="batch-limit",
    title="a batch limit below the concurrency",
    ladder=ladder,
    change=change,
    describe=describe,
    shows="Above some concurrency throughput stands still, first tokens wait in a queue, and tokens come faster than "
    "predicted once they do; below it all is as predicted. Lengths do not matter.",
    hides="Runs below the limit come out as predicted.",
    checks=(
        "vLLM --max-num-seqs, SGLang --max-running-requests, TensorRT-LLM max_batch_size, Triton instance groups",
        "metrics: vllm:num_requests_running stands at one value while vllm:num_requests_waiting is above 0",
        "the client: --max-concurrency of the load generator, connection pools, a proxy's limit on open streams",
    ),
    is_whole=True,
)
