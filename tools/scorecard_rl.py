"""Tables of RL steps on the scorecard: every row counts, for nothing of the model was fitted on such steps.

The rival in the roofline's column multiplies at the dense peak (six operations a parameter and token in an update, two
in a forward pass) and reads an engine's weights once for every token of the longest response. Both add up, and with
staleness K as many steps as K + 1 share their sum, but for what one trainer multiplies.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from orrery.evidence.checked import Checked
from orrery.evidence.rl_row import read_rl_row
from orrery.evidence.rl_rows import TASK
from orrery.evidence.row import Row
from orrery.execution.shard import shard
from orrery.numerics.registry import get_format
from orrery.rl.job import RlJob
from scorecard_rows import Scored

TIME = "step_time_s"


def rl_metrics(tables: Sequence[Checked]) -> Iterator[Scored]:
    """Every metric of the rows of RL steps."""
    for checked in tables:
        if "task" not in checked.table.columns:
            continue
        is_rl = np.char.lower(checked.table.words("task")) == TASK
        for metric in checked.measured:
            numbers = np.flatnonzero(is_rl & checked.scored(metric))
            if numbers.size:
                yield _metric(checked, metric, numbers)


def _metric(checked: Checked, metric: str, numbers: np.ndarray) -> Scored:
    rows = [Row({c: v[n] for c, v in checked.table.columns.items()}) for n in numbers]
    measured, ours = checked.measured[metric][numbers], checked.answers.predicted[metric][numbers]
    least_s = np.array([roofline_s(read_rl_row(row)) for row in rows])
    roofline = least_s if metric == TIME else ours * checked.answers.predicted[TIME][numbers] / least_s
    words = {name: np.array([row.word(name) for row in rows]) for name in ("framework", "device", "rl_policy")}
    inside = [checked.answers.inside(metric, checked.measured[metric], p)[numbers] for p in (80, 95)]
    return Scored(
        table=checked.table.name,
        kind="rl",
        metric=metric,
        words=words,
        measured=measured,
        ours=ours,
        roofline=roofline,
        closed=np.full(len(rows), np.nan),
        physics=ours,
        inside_80=inside[0],
        inside_95=inside[1],
    )


def roofline_s(job: RlJob) -> float:
    """Seconds of a step under the bare roofs."""
    training, engine = job.training, job.generation
    peak = training.cluster.device.peak_flops_per_s(get_format("bf16").rates)[1]
    tokens = job.num_samples * (job.prompt.mean_tokens + job.response.mean_tokens)
    passes = 6.0 * job.num_epochs + 2.0 * (job.has_old_logprobs + job.has_reference)
    trained_s = passes * training.model.num_active_parameters * tokens / (peak * training.cluster.num_devices)
    read_s = shard(engine).weight_bytes * engine.layout.pp / engine.cluster.device.memory_bandwidth_bytes_per_s
    written_s = job.response.most_tokens * read_s
    return max(trained_s, (trained_s + written_s) / (job.max_staleness + 1))
