"""Weights with Gaussian noise of a narrow format's width, drawn anew for every micro-batch."""

from dataclasses import replace

from orrery.base.errors import ScenarioError
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.changed import Changed, refuse_beside
from orrery.training.columns import columns_of
from orrery.training.step import step_of

PASSES = 3.0
"""Weights read, samples written, gradients of the samples read for the widths of the noise. [gaussws-2025]"""

SAMPLE_BYTES = 2.0
"""A sample is kept in 16 bits for the backward pass."""

SAMPLING = "weight sampling"
"""The part of a step that the passes over the weights take."""

MAX_MICRO_BATCHES = 6


def with_weight_sampling(scenario: Scenario, plain: Changed) -> Changed:
    """One more set of passes over a device's weights for every micro-batch, and the samples beside the weights."""
    if scenario.weight_sampling is None:
        return plain
    refuse_beside(scenario, "weight_sampling", ("partition", "seq_lengths"), "its passes are of the plain step")
    job, layout = plain.job, plain.layout
    if layout.ep > 1 or layout.sharding == "zero3":
        raise ScenarioError(f"weight_sampling: {layout}; write ep = 1, and sharding none, zero1 or zero2.")
    if any(b.experts for b in job.model.blocks):
        raise ScenarioError(f"weight_sampling: {job.model.name} has experts; write a dense model.")
    held_bytes = SAMPLE_BYTES * job.model.num_parameters / (layout.tp * layout.pp)
    pass_s = PASSES * held_bytes / job.cluster.device.memory_bandwidth_bytes_per_s
    changed = plain.with_parts({SAMPLING: job.num_micro_batches(layout) * pass_s})
    changed = changed.with_more("buffers", held_bytes)
    return changed.saying(_curve(plain, pass_s))


def _curve(plain: Changed, pass_s: float) -> Table:
    """Step time added by sampling, over the sequences of a micro-batch."""
    job, layout = plain.job, plain.layout
    each = job.global_batch // layout.dp
    sizes = [n for n in (2**i for i in range(12)) if each % n == 0][:MAX_MICRO_BATCHES]
    if layout.micro_batch not in sizes:
        sizes.append(layout.micro_batch)
    rows: list[dict[str, float | int]] = []
    for size in sorted(sizes):
        at = replace(layout, micro_batch=size)
        step_s = float(step_of(job, columns_of([at])).time_s[0])
        added_s = job.num_micro_batches(at) * pass_s
        rows.append(
            {
                "micro_batch": size,
                "tokens": size * job.seq_len,
                "step_s": step_s + added_s,
                "sampling_s": added_s,
                "overhead_frac": added_s / step_s,
            }
        )
    return Table(kind="sampling", title="What drawing weights adds", rows=tuple(rows))
