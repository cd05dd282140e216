"""Seams whose techniques a command takes: by a setting of a scenario, or by a command of their own."""

from collections.abc import Mapping
from dataclasses import dataclass

from orrery.scenario.levers.lever import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The setting that names a technique of a seam, and what a deployment that has it on already is compared with."""

    setting: str
    instead: str | None = None  # None: the setting is left out
    prefix: str = ""  # of the file's name, that the setting leaves out
    suffixes: tuple[str, ...] = ()  # likewise
    beside: str = ""  # flags that the setting needs, as typed
    needs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    is_choice: bool = True
    questions: tuple[Question, ...] = ()  # where not every command that reads the setting takes this seam's techniques


SEATS: Mapping[str, Seat] = {
    "serving.policy": Seat(setting="policy", instead="prefill-first", questions=("simulate",)),
    "serving.queue": Seat(setting="queue", instead="fcfs"),
    "serving.route": Seat(setting="router", instead="round-robin", inputs=("replicas",)),
    "serving.arrivals": Seat(setting="arrivals", instead="poisson", is_choice=False),
    "execution.overlap": Seat(setting="overlap", instead="sequential"),
    "execution.transfer": Seat(setting="transfer", instead="plain-copy", beside="--prefill-replicas N"),
    "training.schedule": Seat(setting="schedule", instead="1f1b", beside="--pp N", inputs=("pp",)),
    "execution.tensor_overlap": Seat(setting="tensor_overlap", instead="serial", beside="--tp N"),
    "execution.expert_overlap": Seat(setting="expert_overlap", instead="expert-serial", beside="--ep N"),
    "execution.expert_placement": Seat(
        setting="expert_placement", instead="in-order", beside="--ep N", questions=("train",)
    ),
    "execution.offload": Seat(
        setting="offload", instead="all-on-device", inputs=("host_memory_bytes_per_s", "nvme_write_bytes_per_s")
    ),
    "training.checkpoint": Seat(
        setting="checkpoint",
        instead="blocking",
        prefix="checkpoint-",
        beside="--train-tokens N --node-mtbf-s S",
        needs=("node_mtbf_s", "device_mtbf_s"),
        inputs=("storage_bytes_per_s", "node_mtbf_s", "device_mtbf_s"),
    ),
    "training.local_updates": Seat(
        setting="local_updates",
        instead="synchronous",
        beside="--dp N",
        inputs=("node_link_bytes_per_s", "site_link_bytes_per_s", "local_steps"),
    ),
    "training.straggler": Seat(
        setting="straggler_coding",
        suffixes=("-coding", "-repetition"),
        beside="--dp N --worker-times FILE",
        needs=("worker_times",),
        inputs=("max_stragglers",),
    ),
    "training.partition": Seat(setting="partition", suffixes=("-partition",), inputs=("node_link_bytes_per_s",)),
    "reasoning.shape": Seat(
        setting="reasoning", beside="--success P", needs=("success",), inputs=("success", "verifier_accuracy")
    ),
}
"""Seam -> the setting of a scenario that names a technique there; the commands are those that read the setting."""

EXTRA: Mapping[str, Mapping[str, int]] = {"interleaved": {"vp": 2}, "zero-bubble-v": {"vp": 2}}
"""Technique -> settings that it cannot do without, where the deployment does not give its own."""

COMMANDS: Mapping[str, str] = {
    "fleet.autoscaler": "orrery fleet --autoscaler {name}",
    "fleet.power_cap": "orrery plan --power-budget-w W --power-cap {name}",
    "training.outage": "orrery train --train-tokens N --node-mtbf-s S --repair-s S --checkpoint reshape --reshape-to "
    "DEGREES",
    "reasoning.prune": "orrery estimate --reasoning tree-search --reasoning-knob prune={name}",
    "numerics.recipe": "orrery quantize FILE --formats FORMAT --recipes {name}",
    "predictors.cell-latency": "orrery experiment cell-latency",
    "predictors.machine-score": "orrery experiment cpu-scores",
    "predictors.slowdown": "orrery experiment noisy-neighbours",
    "numerics.linear": "orrery experiment fp4-recipes",
    "network.collective": "orrery kernel all-reduce --device NAME --devices N --message-bytes BYTES --variant {name}",
    "numerics.attention": "orrery kernel attention --device NAME --query-tokens N --num-heads N --format fp8 "
    "--tensors FILE",
}
"""Seam -> the command that takes a technique there, or compares all of them, and is no comparison of deployments."""

_SOFTMAX = "orrery kernel softmax --device NAME --tokens N --width N --variant "
_GEMM = "orrery kernel gemm --device NAME --m N --n N --k N "

_PATCHES = "orrery estimate --model flux.1-dev --patch-parallel N --patch-context "

APART: Mapping[str, str] = {
    "patch-neighbour-context": f"{_PATCHES}neighbour",
    "patch-whole-context": f"{_PATCHES}whole",
    "pairwise": "orrery kernel all-to-all --device NAME --devices N --message-bytes BYTES --variant pairwise",
    "two-pass": f"{_SOFTMAX}two-pass",
    "three-pass-reload": f"{_SOFTMAX}reload",
    "three-pass-recompute": f"{_SOFTMAX}recompute",
    "matmul-bit-decomposed": f"{_GEMM}--weights bipolar2 --activations bipolar2",
    "matmul-mixed-blocks": f"{_GEMM}--activations int4+int8 --wide-frac FRAC",
    "matmul-ternary": f"{_GEMM}--weights ternary",
    "hardware-embedding": "orrery experiment few-shot-latency",
    "physics-refit": "orrery experiment few-shot-latency",
    "fp8-linear": "orrery experiment fp8-and-bf16",
    "gaussian-weights-linear": "orrery experiment gaussian-weights",
    "integer-linear": "orrery experiment symmetric-clipping",
}
"""Technique -> its command, where its seam's is another."""

MEASURE: Mapping[str, tuple[str, ...]] = {
    "ladder-residual": ("the quality of a model that was trained or adapted with the changed residual stream",),
    "zeroth-order-streaming": ("how many more steps your task needs without backward passes",),
    "layerwise-update": ("the loss after as many steps, since a group learns once in a round",),
    "adapters-only": ("the quality that updates of low rank reach on your task",),
    "interleaved-update": ("the rate of copies between host and device while the host updates",),
    "expert-pipeline": ("how unevenly tokens choose your experts (--expert-loads)",),
    "shadowing": ("how unevenly tokens choose your experts, and how fast that changes (--expert-loads)",),
    "sparse-materialisation": ("how unevenly tokens choose your experts, and how fast that changes (--expert-loads)",),
    "rearranged": ("how unevenly tokens choose your experts, and how fast that changes (--expert-loads)",),
    "redundancy": ("how unevenly tokens choose your experts, and how fast that changes (--expert-loads)",),
    "prefix-aware": ("how many leading tokens your prompts share",),
    "kv-cost": ("how many leading tokens your prompts share",),
    "shortest-first": ("how well output lengths are known before a request is served",),
    "encrypted-pipelined": ("how often the next transfer is guessed right in your traffic",),
}
"""Technique -> what must be measured that no model of time, memory and energy can know."""

MEASURE_AT: Mapping[str, tuple[str, ...]] = {
    "reasoning.shape": (
        "how often one sample is right on your questions (--success), and how often your verifier is "
        "(--verifier-accuracy)",
    ),
    "reasoning.prune": ("the accuracy of the answers that the pruned tree still finds",),
    "numerics.recipe": ("the quality of your task with these weights: an error of tensors is not yet one of answers",),
    "training.checkpoint": ("how often your nodes fail, and what your storage takes",),
    "training.local_updates": ("the loss after as many tokens: replicas that meet seldom learn less from each",),
    "training.straggler": ("how long each rank takes, round by round (--worker-times)",),
    "training.partition": ("the loss with weights and gradients that travel in few bits",),
}
"""The same by seam, for techniques that have no line of their own."""
