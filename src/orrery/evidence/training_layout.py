"""Layout of a training row: stated degrees, those that follow, and defaults for the rest."""

import re
from dataclasses import dataclass
from math import prod
from typing import get_args

from orrery.base.errors import ScenarioError
from orrery.evidence.row import Row
from orrery.execution.train.framework import Framework
from orrery.execution.train.job import FROZEN, NF4_BYTES, Task
from orrery.execution.train.layout import Recompute, Sharding, TrainingLayout, expert_cut
from orrery.execution.train.modules import read_modules
from orrery.execution.train.recipe import Recipe
from orrery.hardware.device import Device
from orrery.models.model import Model

SHARDINGS: dict[str, Sharding] = {
    "none": "none",
    "zero0": "none",
    "ddp": "none",
    "zero1": "zero1",
    "zero2": "zero2",
    "zero3": "zero3",
    "fsdp": "zero3",
    "hsdp": "zero3",
}

ONE_NODE_PARAMETERS = 2e9
"""Functional tests that do not say on how many devices they ran have small models, and one node; releases do not."""

FULL_FRAC = 0.8
"""Share of a device's memory that weights and optimizer may take where a layout is made up: the rest works."""

BATCH_TOKENS = 4e6
"""Tokens of a pre-training step that does not state its batch: LLaMA's 4M; GPT-3 had 3.2M. [touvron-2023]"""

MICRO_BATCHES_PER_STAGE = 8
"""Micro-batches that a pipeline runs for each of its stages where a row states no batch: idle for an eighth."""

CHUNK_LAYERS = 2
"""Layers of a pipeline chunk in most of MLPerf's submissions that say how they interleave (one to three)."""

_LISTED = re.compile(r"\[([\w ,]+)\]")
"""A list of modules as a source prints it: ``selective//[moe_act layernorm]``."""

_EXPERT_CUT = re.compile(r"etp(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """Devices and how they are dealt out."""

    num_devices: int
    tp: int
    cp: int
    pp: int
    dp: int


def layout_of(
    row: Row, model: Model, device: Device, framework: Framework, recipe: Recipe, task: Task, seq_len: int
) -> tuple[TrainingLayout, int]:
    """The layout and the global batch."""
    stated = _sharding(row)
    degrees = _degrees(row, model, device, framework, recipe, task, stated)
    usual = BATCH_TOKENS / seq_len if task == "pretrain" else 0.0
    micro_batch, global_batch = _batch(row, degrees, usual, accumulates=framework.accumulates)
    ranks = degrees.dp * degrees.cp
    sharding = stated or (_default_sharding(row, framework) if ranks > 1 else "none")
    vp = _chunks(row, model, degrees.pp)
    ep, etp = _experts(row, model, framework, degrees)
    recompute, modules = _recompute(row, framework)
    return TrainingLayout(
        tp=degrees.tp,
        cp=degrees.cp,
        pp=degrees.pp,
        dp=degrees.dp,
        vp=vp,
        ep=ep,
        etp=etp,
        micro_batch=micro_batch,
        sharding=sharding,
        sharding_group=_sharding_group(row, sharding, ranks),
        recompute=recompute,
        recompute_modules=modules,
        schedule="interleaved" if vp > 1 else framework.schedule,
        is_sequence_parallel=framework.is_sequence_parallel and degrees.tp > 1,
    ), global_batch


def _chunks(row: Row, model: Model, pp: int) -> int:
    """Chunks of each stage. Tuned submissions interleave, whether or not they publish how often."""
    stated = row.count("vp")
    if stated or pp == 1 or not row.word("mlperf_round"):
        return max(stated, 1) if pp > 1 else 1
    vp, rest = divmod(model.num_layers, pp * CHUNK_LAYERS)
    return int(row.default("vp", str(vp))) if vp > 1 and not rest else 1


def _sharding(row: Row) -> Sharding | None:
    word = row.word("sharding").casefold().replace("-", "")
    if word and word not in SHARDINGS:
        raise ScenarioError(f"unknown sharding {word}")
    return SHARDINGS.get(word)


def _default_sharding(row: Row, framework: Framework) -> Sharding:
    row.default("sharding", framework.sharding)
    return framework.sharding


def _sharding_group(row: Row, sharding: Sharding, ranks: int) -> int:
    group = row.count("sharding_group")
    if sharding == "none" or group >= ranks:
        return 0
    if group and ranks % group:
        raise ScenarioError("sharding_group does not divide dp x cp")
    return group


def _recompute(row: Row, framework: Framework) -> tuple[Recompute, tuple[str, ...]]:
    """Recomputation, with modules where they are named: in the cell, beside it, or as the source does."""
    word = row.word("recompute").casefold()
    if not word:
        row.default("recompute", framework.recompute_modules or framework.recompute)
        return framework.recompute, read_modules(framework.recompute_modules)
    if word not in get_args(Recompute):
        return "selective", read_modules(word)
    if word == "selective" and "offload" in row.word("recompute_as_published").casefold():
        row.default("recompute", "full (what else is kept goes to the host)")
        return "full", ()
    listed = _LISTED.search(row.word("recompute_as_published"))
    names = row.word("recompute_modules") or (listed[1] if listed else "")
    return word, read_modules(names) if word == "selective" else ()  # pyright: ignore[reportReturnType]


def _experts(row: Row, model: Model, framework: Framework, degrees: Degrees) -> tuple[int, int]:
    """Ways in which experts are dealt out and cut: as stated, or as the framework does."""
    if not any(b.experts for b in model.blocks):
        return 1, 1
    ranks = degrees.tp * degrees.cp * degrees.dp
    ep = max(row.count("ep"), 1)
    found = _EXPERT_CUT.search(row.word("model"))
    etp = row.count("etp") or (int(found[1]) if found else 0)
    if not etp:
        etp = expert_cut(framework.cuts_experts, degrees.tp, ranks, ep)
        row.default("etp", str(etp))
    if ranks % (ep * etp):
        raise ScenarioError("ep x etp does not divide tp x cp x dp")
    return ep, etp


def _degrees(
    row: Row, model: Model, device: Device, framework: Framework, recipe: Recipe, task: Task, sharding: Sharding | None
) -> Degrees:
    stated = {name: row.count(name) for name in ("tp", "cp", "pp", "dp")}
    known = prod(n or 1 for n in stated.values())
    devices = row.count("num_devices") or row.count("num_nodes") * row.count("devices_per_node")
    if not devices:
        devices = _devices(row, model, device, known, has_dp=bool(stated["dp"]))
    cores = device.num_compute_units if device.kind == "npu" else 1
    if devices % known and devices * cores % known == 0 and stated["tp"] % cores == 0 and cores > 1:
        stated["tp"] //= cores  # a chip's cores work on one tensor together
        known //= cores
        row.default("tp", f"{stated['tp']} (counts cores, {cores} to a device)")
    if devices % known:
        raise ScenarioError("num_devices is not tp x cp x pp x dp")
    rest = devices // known
    if not stated["dp"]:
        stated["dp"] = rest // _model_ways(row, model, device, framework, recipe, task, sharding, stated, rest)
        rest //= stated["dp"]
        if not all(stated.values()):
            row.default("dp", str(stated["dp"]))
    for name in ("tp", "pp", "cp"):  # what is left goes to tensor parallelism up to a node, then to the pipeline
        if not stated[name]:
            share = min(rest, row.count("devices_per_node") or device.devices_per_node) if name == "tp" else rest
            stated[name] = share if rest % share == 0 else 1
            rest //= stated[name]
            if stated[name] > 1:
                row.default(name, str(stated[name]))
    if rest > 1:
        raise ScenarioError("num_devices is not tp x cp x pp x dp")
    return Degrees(num_devices=devices, **stated)


def _devices(row: Row, model: Model, device: Device, known: int, *, has_dp: bool) -> int:
    """Devices of a row that does not say how many: the product of its degrees, or one node for a small test."""
    if has_dp:
        return int(row.default("num_devices", str(known)))
    if model.num_parameters > ONE_NODE_PARAMETERS or "release" in row.word("benchmark"):
        raise ScenarioError("num_devices is blank")
    node = row.count("devices_per_node") or min(device.devices_per_node, 8)
    return int(row.default("num_devices", str(-(-known // node) * node)))


def _model_ways(
    row: Row,
    model: Model,
    device: Device,
    framework: Framework,
    recipe: Recipe,
    task: Task,
    sharding: Sharding | None,
    stated: dict[str, int],
    rest: int,
) -> int:
    """Ways in which the model is cut beyond what is stated, where dp is blank.

    The batch may say: global = micro x accumulation x dp. Else one, unless that cannot be: a run that was published
    ran, so it is the fewest ways (a power of two) that hold weights and optimizer and leave every rank a sequence.
    """
    free = [name for name in ("tp", "pp", "cp") if not stated[name]]
    if not free:
        return 1
    steps, total, micro = row.count("gradient_accumulation"), row.count("global_batch"), row.count("micro_batch") or 1
    if steps and total:
        ranks, left = divmod(total, steps * micro)
        if not left and ranks and rest % ranks == 0:
            return rest // ranks
    kind = sharding or (framework.sharding if task not in FROZEN else "none")
    have = FULL_FRAC * device.memory_capacity_bytes
    need = _state_bytes(model, framework, recipe, task)
    given = prod(stated[name] or 1 for name in ("tp", "pp"))
    for ways in (w for w in (2**i for i in range(rest.bit_length())) if rest % w == 0):
        is_fed = not total or total % (micro * rest // ways) == 0
        if is_fed and (kind == "zero3" or _held(need, kind, given * ways, rest // ways) <= have):
            return ways
    return 1


def _state_bytes(model: Model, framework: Framework, recipe: Recipe, task: Task) -> tuple[float, float, float]:
    """Weights, gradients, and optimizer of the whole model."""
    count = float(model.num_parameters)
    weights = recipe.weights_bytes or framework.weights_bytes
    if task in FROZEN:
        return count * (NF4_BYTES if task == "qlora" else min(weights, 2.0)), 0.0, 0.0
    master = recipe.master_bytes if recipe.master_bytes >= 0 else framework.master_bytes
    return (
        count * weights,
        count * (recipe.gradient_bytes or framework.gradient_bytes),
        count * (master + (recipe.moments_bytes or framework.moments_bytes)),
    )


def _held(need: tuple[float, float, float], kind: Sharding, ways: int, dp: int) -> float:
    """Bytes of one device with the model cut ``ways`` ways and ``dp`` copies."""
    weights, gradients, optimizer = (x / ways for x in need)
    return weights + gradients / (dp if kind == "zero2" else 1) + optimizer / (1 if kind == "none" else dp)


def _batch(row: Row, degrees: Degrees, usual: float, *, accumulates: bool) -> tuple[int, int]:
    """Micro-batch of a rank and global batch; accumulation ties them: global = micro x accumulation x dp.

    A framework that does not accumulate takes a rank's share of the batch at once.

    Where neither batch nor accumulation is stated: some ``usual`` sequences, and enough to keep a pipeline busy.
    """
    micro, total, steps = (row.count(c) for c in ("micro_batch", "global_batch", "gradient_accumulation"))
    if not micro:
        steps = steps or (0 if accumulates else 1)
        each = total / (steps * degrees.dp) if total and steps else 0.0
        micro = int(each) if each >= 1 and each == int(each) else 1
        if not total and not accumulates:  # the usual batch, all of a rank's share at once
            micro = max(1, round(usual / degrees.dp))
        row.default("micro_batch", str(micro))
    if not total:
        if not steps:
            busy = MICRO_BATCHES_PER_STAGE * degrees.pp if degrees.pp > 1 else 1
            steps = int(row.default("gradient_accumulation", str(max(busy, round(usual / (micro * degrees.dp))))))
        total = int(row.default("global_batch", str(micro * degrees.dp * steps)))
    if total % (micro * degrees.dp):
        raise ScenarioError("global_batch does not divide by dp x micro_batch")
    return micro, total
