"""ZeRO-Infinity: states in any tier; each rank reads its part of a layer over its own link, and ranks gather it."""

from dataclasses import dataclass
from typing import ClassVar

from orrery.base.errors import ScenarioError
from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.execution.offload.knobs import OffloadKnobs
from orrery.execution.offload.lanes import FP32_BYTES, STAGED_LAYERS, Fetch, Lanes, staged, walk
from orrery.execution.offload.step import OffloadedStep, backward_s, finished
from orrery.execution.offload.tiers import MemoryUse, Tiers
from orrery.execution.offload.work import Work

PLACES = ("gpu", "host", "nvme")


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroInfinityKnobs(OffloadKnobs):
    """Where parameters, optimizer states (with their gradients) and checkpoints of activations lie.

    ``num_pieces``: a layer is gathered weight by weight, the largest of a GPT layer being a third of it. The update
    goes through the states in subgroups; ``pipelines_update`` False reads, updates and writes each in turn, the
    documented default of DeepSpeed's swapper (pipeline_read, pipeline_write).
    """

    shares_states: ClassVar[bool] = True
    rung: ClassVar[int] = 4
    fetches_from: ClassVar[str] = "nvme"
    always_recomputes: ClassVar[str] = "whole layers"
    recompute: ClassVar[str] = "full"
    parameters: str = "nvme"
    states: str = "nvme"
    activations: str = "host"
    num_pieces: int = 3
    num_subgroup_parameters: float = 1e9
    pipelines_update: bool = False

    def __post_init__(self) -> None:
        check_above(self, "num_pieces", 0)
        check_above(self, "num_subgroup_parameters", 0)
        for name in ("parameters", "states", "activations"):
            if (got := getattr(self, name)) not in PLACES:
                raise ScenarioError(f"{name} = {got!r} in ZeroInfinityKnobs; write one of {', '.join(PLACES)}.")


def rule(work: Work, tiers: Tiers, knobs: ZeroInfinityKnobs) -> OffloadedStep:
    """Layers are fetched one ahead for the forward and for the backward pass; the update follows the backward pass."""
    lanes, n, ranks = Lanes(tiers), work.num_layers, tiers.num_ranks
    layer = work.layer_bytes

    on_drives, on_gpu = knobs.parameters == "nvme", knobs.parameters == "gpu"
    up = 0.0 if knobs.activations == "gpu" else work.boundary_bytes
    up_read = up if knobs.activations == "nvme" else 0.0

    def fetch(inputs: float, inputs_read: float) -> Fetch:
        def read(free_s: float) -> float:
            return lanes.read(layer / ranks * on_drives + inputs_read, free_s)

        def copy(read_s: float) -> float:
            return lanes.share(layer, lanes.to_gpu(layer / ranks * (not on_gpu) + inputs, read_s))

        return staged(read, copy)

    def keep(done_s: float) -> None:
        if knobs.activations != "gpu":
            down_s = lanes.to_host(work.boundary_bytes, done_s)
            if knobs.activations == "nvme":
                lanes.write(work.boundary_bytes, down_s)

    def sink(done_s: float) -> None:
        part = work.num_layer_parameters / ranks
        scattered_s = lanes.share(work.num_layer_parameters * work.gradient_bytes, done_s)
        down_s = lanes.to_host(part * work.gradient_bytes, scattered_s) if knobs.states != "gpu" else scattered_s
        if knobs.states == "nvme":
            lanes.write(part * FP32_BYTES, down_s)

    for _ in range(work.num_micro_batches):
        end_s = walk(lanes, n, work.forward_s, fetch(0.0, 0.0), keep, start_s=lanes.run("gpu", 0.0))
        turn_s = lanes.run("gpu", work.outer_forward_s + work.outer_backward_s, end_s)
        walk(lanes, n, backward_s(work, True), fetch(up, up_read), sink, start_s=turn_s)
    passes_s = lanes.end_s
    _update(work, tiers, knobs, lanes)
    return finished(
        lanes, _held(work, tiers, knobs), choices={"passes_s": passes_s, "update_s": lanes.end_s - passes_s}
    )


def _update(work: Work, tiers: Tiers, knobs: ZeroInfinityKnobs, lanes: Lanes) -> None:
    """States and FP32 gradients in, states and 16-bit parameters out, one subgroup after another."""
    part = work.num_parameters / tiers.num_ranks
    count = max(1, round(part / knobs.num_subgroup_parameters))
    each, before_s = part / count, lanes.end_s
    for _ in range(count):
        start_s = before_s if knobs.pipelines_update else lanes.end_s
        if knobs.states == "gpu":
            lanes.device_update(each, work.update_bytes, start_s)
            continue
        read_s = lanes.read(each * (work.state_bytes + FP32_BYTES), start_s) if knobs.states == "nvme" else start_s
        updated_s = lanes.host_update(each, work.update_bytes, read_s)
        if knobs.states == "nvme":
            lanes.write(each * work.state_bytes, updated_s)
        if knobs.parameters == "nvme":
            lanes.write(each * work.parameter_bytes, updated_s)
        elif knobs.parameters == "gpu":
            lanes.to_gpu(each * work.parameter_bytes, updated_s)


def _held(work: Work, tiers: Tiers, knobs: ZeroInfinityKnobs) -> MemoryUse:
    """Parts of all states where the knobs say; two pieces of a layer, one's gradient and one layer's activations."""
    part = work.num_parameters / tiers.num_ranks
    at: dict[str, float] = dict.fromkeys(PLACES, 0.0)
    at["gpu"] += 3.0 * work.layer_bytes / knobs.num_pieces + 2.0 * work.boundary_bytes
    at["gpu"] += max(work.activation_bytes, work.logits_bytes)
    at[knobs.parameters] += part * work.parameter_bytes
    at[knobs.states] += part * (work.state_bytes + FP32_BYTES)
    at[knobs.activations] += work.checkpoint_bytes
    if knobs.parameters == "nvme":
        at["host"] += STAGED_LAYERS * work.layer_bytes / tiers.num_ranks
    if knobs.states == "nvme":
        subgroup = min(knobs.num_subgroup_parameters, part) * (work.state_bytes + FP32_BYTES)
        at["host"] += subgroup * (2.0 if knobs.pipelines_update else 1.0)
    return MemoryUse(gpu_bytes=at["gpu"], host_bytes=at["host"], nvme_bytes=at["nvme"])


TECHNIQUE = Technique(
    name="zero-infinity",
    extension_point="execution.offload",
    rule=rule,
    knobs=ZeroInfinityKnobs,
    gains="Drives and host memory of all ranks hold the model, and all their links carry every layer together.",
    costs="Layers cross the slowest link in both passes, and the device idles while the host updates.",
    claims=("rajbhandari-2021",),
)
