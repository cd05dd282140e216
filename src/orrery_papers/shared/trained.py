"""From the facts of a paper's set-up to a training job, its layout, and the step that it takes."""

import re
from dataclasses import dataclass, replace
from typing import Any, cast

from orrery.base.errors import FactError
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import Setup
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import Recompute, Sharding, TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device
from orrery.models.config import parse
from orrery.models.model import Model, SoftmaxAttention
from orrery.training.allowed import refusal
from orrery.training.columns import columns_of
from orrery.training.ranks import ranks_of
from orrery.training.step import Steps, step_of
from orrery.training.worth import peak_flops_per_s

DEGREES = frozenset({"tp", "cp", "pp", "dp", "vp", "ep", "etp"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trained:
    """One layout of a set-up, costed."""

    job: TrainingJob
    layout: TrainingLayout
    steps: Steps

    @property
    def step_s(self) -> float:
        """Seconds of a step."""
        return float(self.steps.time_s[0])

    @property
    def tokens_per_s_per_device(self) -> float:
        """Tokens per second of each device."""
        return self.job.tokens_per_step / self.step_s / self.layout.num_devices

    @property
    def megatron_flops_per_s_per_device(self) -> float:
        """Operations a second as Megatron-LM counts them, of each device."""
        flops = megatron_flops(self.job, self.layout.recompute == "full")
        return flops / self.step_s / self.layout.num_devices

    @property
    def peak_frac(self) -> float:
        """Operations per second as Megatron-LM counts them, over the dense peak."""
        return self.megatron_flops_per_s_per_device / peak_flops_per_s(self.job)

    @property
    def peak_memory_bytes(self) -> float:
        """The allocator's peak on the fullest device."""
        return max(r.peak_bytes for r in ranks_of(self.job, self.layout))


def megatron_flops(job: TrainingJob, is_recomputed: bool) -> float:
    """FLOPs of one step: 96 B s l h^2 (1 + s / 6h + V / 16 l h); 72 where layers run forward once. [narayanan-2021]

    Attention counts as if it were not causal. The head is never recomputed, which the form already says.
    """
    block = job.model.blocks[0]
    assert isinstance(block.mixer, SoftmaxAttention)
    s, h, v = job.seq_len, job.model.hidden_size, job.model.vocab_size
    layers = sum(b.count for b in job.model.blocks)
    passes = 4.0 if is_recomputed else 3.0
    return job.global_batch * s * (passes * layers * (24.0 * h * h + 4.0 * s * h) + 6.0 * v * h)


def training_device(setup: Setup) -> Device:
    """The catalogue's device, with the set-up's link between machines shared by the devices of one."""
    device = get_device(setup.word("device"))
    per_node = int(setup.number("num_devices_per_node", device.devices_per_node))
    if link := setup.number("link_bytes_per_s"):
        return replace(device, scaleout=replace(device.scaleout, each_way_bytes_per_s=link / per_node))
    return device


def training_model(setup: Setup) -> Model:
    """The catalogue's model, or the GPT that the set-up describes."""
    if word := setup.word("model"):
        return get_model(word)
    sizes = {"n_layer": "num_layers", "n_embd": "num_hidden", "n_head": "num_heads"}
    config: dict[str, Any] = {key: int(setup.number(line)) for key, line in sizes.items()}
    if not all(config.values()):
        raise FactError(f"setup {setup.name}: states no model; write model, or num_layers, num_hidden and num_heads.")
    config |= {
        "model_type": "gpt2",
        "n_positions": int(setup.number("sequence_tokens")),
        "vocab_size": int(setup.number("num_vocabulary", 51200)),
    }
    return parse(config, name=f"GPT of {setup.name}")


def training_job(setup: Setup, *, num_devices: int = 0, global_batch: int = 0, recipe: str = "") -> TrainingJob:
    """The set-up's job; what is given stands in place of its lines."""
    device = training_device(setup)
    precision = get_recipe(recipe or setup.word("weights_format"))
    devices = num_devices or int(setup.number("num_devices"))
    per_node = int(setup.number("num_devices_per_node", device.devices_per_node))
    return TrainingJob(
        model=training_model(setup),
        recipe=precision,
        cluster=Cluster(device=device, num_devices=devices, devices_per_node=min(per_node, devices)),
        framework=get_framework(setup.word("engine"), device, precision.name),
        seq_len=int(setup.number("sequence_tokens")),
        global_batch=global_batch or int(setup.number("num_global_batch")),
    )


def training_layout(setup: Setup, num_devices: int, words: str = "", micro_batch: int = 0) -> TrainingLayout:
    """Degrees as papers write them ("tp8 pp64"); devices that are left over become data parallelism."""
    found: dict[str, Any] = {n: int(v) for n, v in re.findall(r"([a-z]+)(\d+)", words or setup.word("layout"))}
    if unknown := found.keys() - DEGREES:
        raise FactError(f"setup {setup.name}: layout: no such degree: {', '.join(sorted(unknown))}.")
    used = found.get("tp", 1) * found.get("cp", 1) * found.get("pp", 1)
    dp = found.pop("dp", num_devices // used)
    schedule = setup.word("schedule") or ("interleaved" if found.get("vp", 1) > 1 else "1f1b")
    return TrainingLayout(
        **found,
        dp=dp,
        micro_batch=micro_batch or int(setup.number("num_micro_batch", 1)),
        schedule=schedule,
        sharding=cast(Sharding, setup.word("sharding") or "none") if dp > 1 else "none",
        recompute=cast(Recompute, setup.word("recompute") or "none"),
        is_sequence_parallel=setup.word("sequence_parallelism") == "yes",
    )


def trained(job: TrainingJob, layout: TrainingLayout) -> Trained:
    """The layout, costed; FactError where it makes no sense."""
    x = columns_of([layout])
    if text := refusal(job, x):
        raise FactError(f"{layout}: {text}")
    return Trained(job=job, layout=layout, steps=step_of(job, x))
