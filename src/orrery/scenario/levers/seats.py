"""Extension points whose techniques a command takes: by a setting of a scenario, or by a command of their own."""

from collections.abc import Mapping
from dataclasses import dataclass

from orrery.scenario.levers.lever import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """The setting that names a technique, and what a deployment that has it on already is compared with."""

    setting: str
    instead: str | None = None  # None: the setting is left out
    beside: str = ""  # flags that the setting needs, as typed
    needs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    is_choice: bool = True
    questions: tuple[Question, ...] = ()  # where not every command that reads the setting takes this point's techniques


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
    "execution.gradient_overlap": Seat(
        setting="gradient_overlap", instead="gradient-serial", beside="--dp N", inputs=("node_link_bytes_per_s",)
    ),
    "execution.expert_placement": Seat(
        setting="expert_placement", instead="in-order", beside="--ep N", questions=("train",)
    ),
    "execution.offload": Seat(
        setting="offload", instead="all-on-device", inputs=("host_memory_bytes_per_s", "nvme_write_bytes_per_s")
    ),
    "training.checkpoint": Seat(
        setting="checkpoint",
        instead="blocking",
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
        beside="--dp N --worker-times FILE",
        needs=("worker_times",),
        inputs=("max_stragglers",),
    ),
    "training.partition": Seat(setting="partition", inputs=("node_link_bytes_per_s",)),
    "reasoning.shape": Seat(
        setting="reasoning", beside="--success P", needs=("success",), inputs=("success", "verifier_accuracy")
    ),
}
"""Extension point -> the setting of a scenario that names a technique there; commands are those that read it."""

COMMANDS: Mapping[str, str] = {
    "fleet.autoscaler": "orrery fleet --autoscaler {name}",
    "fleet.region_router": "orrery fleet FLEET.toml --region-router {name}",
    "fleet.power_cap": "orrery plan --power-budget-w W --power-cap {name}",
    "reasoning.prune": "orrery estimate --reasoning tree-search --reasoning-knob prune={name}",
    "training.learning_rule": "orrery experiment mono-forward",
    "execution.mapping": "orrery experiment memory-mapping",
    "planner.rlhf": "orrery train --rl --prompts-per-step N --generations-per-prompt N --rl-placement {name}",
    "numerics.recipe": "orrery quantize FILE --formats FORMAT --recipes {name}",
    "predictors.cell-latency": "orrery experiment cell-latency",
    "predictors.machine-score": "orrery experiment cpu-scores",
    "predictors.slowdown": "orrery experiment noisy-neighbours",
    "numerics.linear": "orrery experiment fp4-recipes",
    "network.collective": "orrery kernel all-reduce --device NAME --devices N --message-bytes BYTES --variant {name}",
    "numerics.attention": "orrery kernel attention --device NAME --query-tokens N --num-heads N --format fp8 "
    "--tensors FILE",
}
"""Extension point -> the command that takes a technique there, or compares all of them by itself."""

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
"""Extension point -> what must be measured of its techniques that say nothing of their own."""
