"""A decoder on a device that lays tasks out in space: all layers streamed, or every task a kernel of its own."""

from orrery.base.errors import OutOfRange
from orrery.execution.dataflow.chain import Machine, Task, in_turn_s, streamed_s
from orrery.execution.dataflow.layer import layer_tasks
from orrery.hardware.device import Device
from orrery.models.model import Model

REACHED_FRAC = 0.75
"""Share of both roofs that streams reach: over 75 % of peak while tokens are generated (SambaNova SN40L, DAC 2025
programme, abstract of the talk)."""

START_S = 5e-6
"""To start a kernel. Assumed: what a launch takes on other accelerators."""

BYTES = 2.0
"""An element in 16 bits."""


def pass_s(
    model: Model,
    device: Device,
    tokens: int,
    context_tokens: int,
    *,
    ranks: int = 1,
    is_fused: bool = True,
    reached_frac: float = REACHED_FRAC,
    start_s: float = START_S,
) -> float:
    """Time (s) of ``tokens`` new tokens of one sequence through all layers and the head, on ``ranks`` devices.

    Sums over devices stream with the layer; their latency alone is added, in both ways of running.
    """
    if device.kind != "dataflow":
        raise OutOfRange(f"{device.name} is a {device.kind}: it lays out no layers; write a dataflow device.")
    if model.head is None:
        raise OutOfRange(f"{model.name} has no head that makes tokens.")
    machine = Machine(
        flops_per_s=reached_frac * device.dense_flops_per_s["bf16"],
        memory_bytes_per_s=reached_frac * device.memory_bandwidth_bytes_per_s,
        buffer_bytes=device.last_level_cache_bytes if is_fused else 0.0,
        start_s=start_s,
    )
    run = streamed_s if is_fused else in_turn_s
    outputs = model.head.in_features * model.head.out_features / ranks
    total_s = run((Task(name="head", flops=2.0 * outputs, weight_bytes=BYTES * outputs),), machine)
    for block in model.blocks:
        tasks = layer_tasks(block, model.hidden_size, tokens, context_tokens, bytes_each=BYTES, ranks=ranks)
        sums_s = block.num_reduces * device.scaleup.latency_s
        total_s += block.count * (run(tasks, machine) + sums_s)
    return total_s
