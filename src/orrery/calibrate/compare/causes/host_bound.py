"""The host is slower than predicted: its work for a step (scheduling, sampling, launches) takes a multiple.

Serving: step_s, per_sequence_s and the launches of each layer x s, hidden behind the device as the engine hides them.
Training: the least time of a layer's launches and collectives x s.
"""

from dataclasses import replace

from orrery.base.units import text
from orrery.calibrate.compare.cause import Cause, between
from orrery.calibrate.compare.change import deployment_of, on_engine, with_fields
from orrery.calibrate.compare.run import Run, TrainingRun


def change(run: Run, severity: float) -> Run:
    """All times of the host ``severity`` times as long."""
    if isinstance(run, TrainingRun):
        f = run.job.framework
        slow = with_fields(f, host_layer_s=f.host_layer_s * severity, host_collective_s=f.host_collective_s * severity)
        return replace(run, job=with_fields(run.job, framework=slow))
    e = deployment_of(run).engine
    return on_engine(
        run,
        step_s=e.step_s * severity,
        per_sequence_s=e.per_sequence_s * severity,
        per_layer_s=e.per_layer_s * severity,
        launch_s=e.launch_s * severity,
        sampling_s=e.sampling_s * severity,
    )


def describe(run: Run, severity: float) -> str:
    """The host's time of a step or of a layer."""
    if isinstance(run, TrainingRun):
        own = run.job.framework.host_layer_s
        what = "a layer's launches"
    else:
        d, what = deployment_of(run), "a step"
        own = d.engine.step_s + d.model.num_layers * d.engine.per_layer_s
    return f"the host at {severity:.2g} x its time: {text(own * severity, 's')} for {what}, not {text(own, 's')}"


CAUSE = Cause(
    name="host-bound",
    title="a slow host (CPU, scheduling, launches without graphs)",
    ladder=between(1.3, 60.0),
    change=change,
    describe=describe,
    shows="Steps that are short on the device suffer most: few sequences, short contexts, small or well-cut models; "
    "a floor under the time per token that does not move with the batch.",
    hides="Long prompts and large batches, whose steps the device takes longer for, come out as predicted.",
    checks=(
        "top -H: is one thread of the engine at 100 % while nvidia-smi dmon -s u shows the GPU below 100 %?",
        "cpupower frequency-info: governor performance? lscpu and numactl -H: are the process and the GPU on one node?",
        "vLLM: no --enforce-eager; --async-scheduling on; other processes and cgroup CPU limits off these cores",
    ),
)
