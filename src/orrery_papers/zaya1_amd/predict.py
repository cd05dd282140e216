"""ZAYA1 on 1,024 MI300X: what the model holds, how few devices hold it, and the run with saves and failures."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery import network
from orrery.base.technique import discover
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.train.job import TrainingJob
from orrery.hardware.device import Device
from orrery.models.config import parse
from orrery.models.model import Model
from orrery.planner.training.search import TrainingSearchResult, search
from orrery.planner.training.space import FixedSettings
from orrery.training.faults import techniques
from orrery.training.faults.goodput import Goodput, expected
from orrery.training.faults.interval import best_steps
from orrery.training.faults.model import FaultModel, RunPlan
from orrery.training.faults.saving import Saving, storage_plan
from orrery.training.memory import USABLE_FRAC
from orrery.training.ranks import ranks_of
from orrery_papers.shared.trained import Trained, trained, training_device, training_job, training_layout

Floats = NDArray[np.float64]

KINDS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast")
SIZES_BYTES: Floats = np.exp2(np.arange(10.0, 33.0))
CONVOLUTION_STEPS = (2, 2)
"""Tokens that the first (each channel alone) and the second convolution (each head alone) look at."""

DETECTION_S, RESTART_S = 600.0, 600.0
SAVE = "checkpoint-snapshot"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Parameters from sizes; and whether one device holds a copy."""
    setup = paper.setups["zaya1-base"]
    model, extra = model_of(setup), router_and_convolutions(setup)
    layers = int(setup.number("num_layers"))
    active = sum(b.num_active_parameters for b in model.blocks) + layers * extra
    total = model.num_parameters - model.embedding_parameters + layers * extra
    yield Prediction(
        claim="active-parameters", predicted=float(active), because="attention, router and one expert of each layer"
    )
    yield Prediction(claim="total-parameters", predicted=float(total), because="the same with all sixteen experts")
    least, run = least_devices(setup)
    lasts = whole_run(setup, run)
    yield Prediction(
        claim="devices-a-copy",
        predicted=float(least),
        because=f"{run.peak_memory_bytes / 1e9:.0f} GB a device without cutting the model ({run.layout}); 14T tokens "
        f"take {lasts.time_s / 86400:.0f} days, of which {lasts.overhead_frac:.1%} are saves and failures",
    )


def model_of(setup: Setup) -> Model:
    """Grouped-query attention of the compressed heads and sixteen gated experts in every layer."""
    n = {name: int(setup.number(name)) for name in setup.inputs if name.startswith("num_")}
    config: dict[str, Any] = {
        "model_type": "qwen3_moe",
        "hidden_size": n["num_hidden"],
        "num_hidden_layers": n["num_layers"],
        "num_attention_heads": n["num_heads"],
        "num_key_value_heads": n["num_kv_heads"],
        "head_dim": n["num_head_features"],
        "num_experts": n["num_experts"],
        "num_experts_per_tok": n["num_experts_per_token"],
        "moe_intermediate_size": n["num_expert_features"],
        "intermediate_size": n["num_expert_features"],
        "vocab_size": n["num_vocabulary"],
        "tie_word_embeddings": True,
        "max_position_embeddings": 32768,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }
    return parse(config, name="ZAYA1-base")


def router_and_convolutions(setup: Setup) -> int:
    """Parameters of a layer that the family's shape leaves out.

    The router narrows the stream to r features and has two layers of r x r before its r x experts (which a plain
    router's hidden x experts stands for already); convolutions go over the channels of queries and keys.
    """
    hidden, r, experts = (int(setup.number(x)) for x in ("num_hidden", "num_router_features", "num_experts"))
    head, heads = int(setup.number("num_head_features")), setup.number("num_heads") + setup.number("num_kv_heads")
    router = hidden * r + 2 * r * r + r * experts - hidden * experts
    first, second = CONVOLUTION_STEPS
    return int(router + heads * head * first + heads * head * head * second)


def job_of(setup: Setup) -> TrainingJob:
    """The set-up's job with the model that it describes."""
    return replace(training_job(setup), model=model_of(setup))


def least_devices(setup: Setup) -> tuple[int, Trained]:
    """The fewest devices over which experts must be dealt for a layout to fit, and that layout."""
    job, experts = job_of(setup), int(setup.number("num_experts"))
    have = USABLE_FRAC * job.cluster.device.memory_capacity_bytes
    ways = [n for n in (1, 2, 4, 8, 16) if experts % n == 0]
    runs = [trained(job, training_layout(setup, job.cluster.num_devices, f"ep{n}")) for n in ways]
    for n, run in zip(ways, runs, strict=True):
        if run.peak_memory_bytes <= have:
            return n, run
    return job.cluster.num_devices, runs[-1]


def plans(setup: Setup, count: int = 5) -> TrainingSearchResult:
    """The fastest layouts of the job over all degrees."""
    requested = FixedSettings(cp=1, vp=1, schedule="1f1b", is_sequence_parallel=False, recompute="none")
    return search(job_of(setup), requested, count=count)


def whole_run(setup: Setup, run: Trained) -> Goodput:
    """All tokens, with snapshots as often as is best and the failures of a cluster of that size."""
    job, devices = run.job, run.job.cluster.num_devices
    state = max(r.parts["weights"] + r.parts["optimizer"] for r in ranks_of(job, run.layout))
    parts = {name: float(v[0]) for name, v in run.steps.parts.items()}
    node = setup.number("storage_bytes_per_s")
    saving = Saving(
        shard_bytes=state,
        num_devices=devices,
        devices_per_node=job.cluster.devices_per_node,
        forward_s=parts["forward"],
        update_s=parts["update"],
        backward_s=run.step_s - parts["forward"] - parts["update"],
        device_to_host_bytes_per_s=job.cluster.device.host.each_way_bytes_per_s,
        storage_bytes_per_s=node * job.cluster.num_nodes,
        node_storage_bytes_per_s=node,
    )
    faults = FaultModel(
        num_devices=devices,
        devices_per_node=job.cluster.devices_per_node,
        device_mtbf_s=setup.number("mean_between_failures_s") * devices,
        detection_s=DETECTION_S,
        restart_s=RESTART_S,
    )
    way = next(t for t in discover(techniques) if t.name == SAVE)
    plan = RunPlan(step_s=run.step_s, num_steps=int(setup.number("num_training_tokens") // job.tokens_per_step))
    steps = max(1, round(1800.0 / run.step_s))
    for _ in range(2):
        steps = best_steps(faults, storage_plan(saving, way.rule(saving, steps, way.knobs()), steps), plan)
    return expected(faults, storage_plan(saving, way.rule(saving, steps, way.knobs()), steps), plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A collective over message sizes."""

    kind: str
    num_devices: int
    message_bytes: Floats
    time_s: Floats

    @property
    def bus_bytes_per_s(self) -> Floats:
        """Bytes a second over each device's links, as nccl-tests counts them."""
        n = self.num_devices
        ratio = {"all_reduce": 2.0 * (n - 1) / n, "broadcast": 1.0}.get(self.kind, (n - 1) / n)
        return ratio * self.message_bytes / self.time_s


def message_curves(setup: Setup, num_devices: tuple[int, ...] = (8, 16, 64, 256, 1024)) -> list[Curve]:
    """Four collectives over the cards of the set-up, from a kibibyte to four gibibytes."""
    device: Device = training_device(setup)
    out: list[Curve] = []
    for kind in KINDS:
        for n in num_devices:
            work = network.Collective(
                kind=kind,
                num_devices=n,
                message_bytes=SIZES_BYTES,
                has_peer_to_peer=True,
                devices_per_node=int(setup.number("num_devices_per_node")),
            )
            time_s = np.asarray(network.predict(work, device).time_s, dtype=np.float64)
            out.append(Curve(kind=kind, num_devices=n, message_bytes=SIZES_BYTES, time_s=time_s))
    return out
