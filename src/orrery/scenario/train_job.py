"""From a scenario to a training job and its layout, with a note for every default that was taken."""

import math
from dataclasses import dataclass, fields, replace
from typing import Any, cast, get_args

from orrery.base.errors import ScenarioError
from orrery.base.extension_points import knobs_from
from orrery.base.units import text
from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import DEFAULT_FRAMEWORK, Use, framework_notes, get_framework
from orrery.catalog.models import get_model
from orrery.execution.finetune_memory import activations
from orrery.execution.host_rates import copy_bytes_per_s
from orrery.execution.train.experts import MASKED, PLACED, SEND, dispatcher_of
from orrery.execution.train.framework import Framework
from orrery.execution.train.hidden import EXPERT, GRADIENT, TENSOR
from orrery.execution.train.job import LOW_RANK, PLACEMENT_INTERVAL_STEPS, Islands, Task, TrainingJob
from orrery.execution.train.layout import Recompute, TrainingLayout, expert_cut
from orrery.execution.train.layout_name import read_name
from orrery.execution.train.modules import check_modules, read_modules
from orrery.execution.train.placement import IN_ORDER, PLACEMENTS
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device, Link
from orrery.models.model import Model
from orrery.scenario.expert_loads import expert_loads, loads_word
from orrery.scenario.fields_training_techniques import TECHNIQUE_SETTINGS
from orrery.scenario.knobs import read_train_knobs
from orrery.scenario.levers.found import has_experts
from orrery.scenario.resolve import one_device, read_as
from orrery.scenario.schema import Scenario
from orrery.scenario.train_framework import as_asked
from orrery.training.schedules.registry import SCHEDULES, get_schedule

FRAMEWORK_OF_OFFLOAD = "deepspeed"
"""Taken where states leave the device."""

FRAMEWORK_OF_SCALE = "megatron-lm"
"""Taken where a layout asks for what plain PyTorch does not bring: tensor, pipeline, context or expert parallelism."""

OF_GRAPH = tuple(s.name for s in TECHNIQUE_SETTINGS if s.name.startswith("graph_"))
"""Settings of training on a whole graph."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingQuestion:
    """A training job, what the user fixed of its layout, and what was assumed."""

    job: TrainingJob
    given: dict[str, Any]  # fields of the layout that the user wrote
    notes: tuple[str, ...]


def training_question(scenario: Scenario) -> TrainingQuestion:
    """The job of a scenario; its layout may be partly open."""
    _check_no_graph(scenario)
    for name, example in (("model", '"llama-3.1-8b"'), ("devices", "8"), ("global_batch", "128"), ("seq_len", "4096")):
        if getattr(scenario, name) is None:
            raise ScenarioError(f"{name}: is missing; write it, such as {name} = {example}.")
    device, notes = get_device(one_device(scenario)), list[str]()
    notes += device.notes
    precision = scenario.precision or _usual_precision(device)
    if scenario.precision is None:
        notes.append(f"precision: {precision} (what {device.name} trains in)")
    recipe = get_recipe(precision)
    framework_name = _framework_name(scenario, notes)
    notes += framework_notes(framework_name, device)
    task = cast(Task, scenario.task or "pretrain")
    model = get_model(cast(str, scenario.model), scenario.assume or "")
    use = Use(model=model.name, task=task, is_alone=scenario.devices == 1)
    framework = as_asked(get_framework(framework_name, device, recipe.name, use), scenario, model, notes)
    per_node = scenario.devices_per_node or device.devices_per_node
    devices = cast(int, scenario.devices)
    if scenario.node_link_bytes_per_s is not None:
        device = with_node_link(device, scenario.node_link_bytes_per_s, min(per_node, devices))
        if devices <= per_node:
            notes.append("node_link_bytes_per_s: no effect on this deployment: all devices are in one node")
    for name in ("adapter_rank", "target_modules"):
        if getattr(scenario, name) is not None and task not in LOW_RANK and scenario.offload is None:
            notes.append(f"{name}: no effect on this job: no adapters learn (task = lora or qlora)")
    if task in LOW_RANK and framework.adapter_targets == "all-linear" and has_experts(model):
        notes.append("target_modules: routed experts carry no adapters")
    cluster = Cluster(device=device, num_devices=devices, devices_per_node=min(per_node, devices))
    notes += read_as(model)
    job = TrainingJob(
        model=model,
        cluster=cluster,
        framework=framework,
        recipe=recipe,
        seq_len=cast(int, scenario.seq_len),
        global_batch=cast(int, scenario.global_batch),
        task=task,
        loss_tokens=scenario.loss_tokens or 0,
        adapter_rank=scenario.adapter_rank or 16,
        prunes_activations=_prunes(scenario, model, framework, task, notes),
        islands=_islands(scenario, devices),
        tensor_overlap=scenario.tensor_overlap or "",
        tensor_knobs=_numbers(scenario, "tensor_overlap"),
        expert_overlap=scenario.expert_overlap or "",
        expert_knobs=_numbers(scenario, "expert_overlap"),
        gradient_overlap=GRADIENT.get(scenario.gradient_overlap).name if scenario.gradient_overlap else "",
        dispatcher=scenario.dispatcher or "",
        expert_loads=expert_loads(scenario.expert_loads, model),
        activation_offload_bytes_per_s=_leaving_bytes_per_s(scenario, device, notes),
        **_placement(scenario, model, notes),
        **_capacity(scenario, model, scenario.dispatcher or framework.dispatcher, notes),
    )
    return TrainingQuestion(job=job, given=_given(scenario), notes=tuple(notes))


def _check_no_graph(scenario: Scenario) -> None:
    """Refuse training on a whole graph, and what is written for it in a job that is none."""
    if scenario.graph is not None:
        raise ScenarioError("graph: is answered by train_graph; leave it out for a language model.")
    if given := [name for name in OF_GRAPH if getattr(scenario, name) is not None]:
        raise ScenarioError(f"{given[0]}: is of training on a whole graph; write graph beside it, or leave it out.")


WAYS = {"tensor_overlap": TENSOR, "expert_overlap": EXPERT}
"""Settings that name a way to hide collectives."""


def _numbers(scenario: Scenario, seat: str) -> tuple[tuple[str, float], ...]:
    """Knobs of a way to hide collectives, checked against those that it has."""
    given, name = read_train_knobs(scenario.knob)[seat], getattr(scenario, seat)
    if not given:
        return ()
    if name is None:
        raise ScenarioError(f"knob: {seat}.{next(iter(given))} is read with {seat}; write that beside it.")
    knobs = knobs_from(WAYS[seat].get(name), given)
    return tuple((key, float(getattr(knobs, key))) for key in given)


def _prunes(scenario: Scenario, model: Model, framework: Framework, task: str, notes: list[str]) -> bool:
    """Whether only what adapters' gradients read is kept; refused where that means nothing."""
    if not scenario.prune_activations:
        return False
    if task not in LOW_RANK:
        raise ScenarioError(f"prune_activations: {task} needs what every weight reads; write task = lora or qlora.")
    if scenario.offload is not None:
        raise ScenarioError("prune_activations: an offloaded job keeps what its technique says; leave one out.")
    if (scenario.recompute or framework.recompute) != "none":
        raise ScenarioError(
            "prune_activations: a recomputed layer keeps its input alone; write recompute = none, or leave it out."
        )
    found = activations(model, scenario.seq_len or 1, rank=scenario.adapter_rank or 16)
    notes.append(
        f"prune_activations: operators leave {text(found.all_bytes, 'bytes')} a token in all layers, of which "
        f"{text(found.needed_bytes, 'bytes')} are kept; norms, rotations and activations are made again"
    )
    return True


def _leaving_bytes_per_s(scenario: Scenario, device: Device, notes: list[str]) -> float:
    """Rate at which activations leave for the host's memory; 0 where they stay."""
    if not scenario.activation_offloading:
        return 0.0
    if scenario.offload is not None:
        raise ScenarioError(
            "activation_offloading: an offloaded job keeps what its technique says; leave one of both out."
        )
    notes.append("activation_offloading: the host has room for them (its memory is not counted)")
    return copy_bytes_per_s(device, scenario.devices_per_host_link or 1)


def _placement(scenario: Scenario, model: Model, notes: list[str]) -> dict[str, Any]:
    """Placement of experts; ScenarioError where a setting means nothing beside the others."""
    name, copies, interval = (scenario.expert_placement, scenario.expert_replicas, scenario.placement_interval_steps)
    if name in (None, IN_ORDER):
        for field, value in (("expert_replicas", copies), ("placement_interval_steps", interval)):
            if value is not None:
                raise ScenarioError(
                    f"{field}: {value} is of experts that move; write expert_placement = redundancy, or leave it out."
                )
        return {}
    if not any(b.experts for b in model.blocks):
        raise ScenarioError(f"expert_placement: {model.name} has no experts; leave expert_placement out.")
    technique = PLACEMENTS.get(str(name))
    if copies is not None and "num_replicas" not in {f.name for f in fields(technique.knobs)}:
        raise ScenarioError(f"expert_replicas: {name} copies nothing; write expert_placement = redundancy.")
    if (other := scenario.expert_overlap) in technique.excludes:
        raise ScenarioError(f"expert_overlap: {other} and {name} both copy experts; write one of them.")
    if interval is None:
        interval = PLACEMENT_INTERVAL_STEPS
        notes.append(f"placement_interval_steps: {interval} (assumed)")
    knobs = (("num_replicas", float(copies)),) if copies is not None else ()
    return {"expert_placement": name, "placement_knobs": knobs, "placement_interval_steps": interval}


def _capacity(scenario: Scenario, model: Model, dispatcher: str, notes: list[str]) -> dict[str, Any]:
    """Limit on an expert's tokens; ScenarioError where it means nothing beside the others."""
    factor, pads = scenario.expert_capacity_factor, scenario.pad_experts
    if factor is None:
        if dispatcher in MASKED:
            raise ScenarioError(
                f"dispatcher: {dispatcher} needs a number of places; write expert_capacity_factor, such as 1.25."
            )
        if pads:
            raise ScenarioError("pad_experts: needs to know up to what; write expert_capacity_factor, such as 1.25.")
        return {}
    if not any(b.experts for b in model.blocks):
        raise ScenarioError(f"expert_capacity_factor: {model.name} has no experts; leave expert_capacity_factor out.")
    if pads and dispatcher not in PLACED:
        raise ScenarioError(f"pad_experts: {dispatcher} sends no empty rows; write dispatcher = {SEND}.")
    notes.append("expert_capacity_factor: what dropped tokens cost in loss is not predicted")
    return {"expert_capacity_ratio": factor, "pads_experts": bool(pads) or dispatcher in MASKED}


def _usual_precision(device: Device) -> str:
    """16 bits as the device has them."""
    return "bf16" if "bf16" in device.dense_flops_per_s else "fp16" if "fp16" in device.dense_flops_per_s else "fp32"


def _framework_name(scenario: Scenario, notes: list[str]) -> str:
    if scenario.framework:
        return scenario.framework
    if scenario.offload:
        notes.append(f"framework: {FRAMEWORK_OF_OFFLOAD} (default with offload)")
        return FRAMEWORK_OF_OFFLOAD
    cuts = [n for n in ("tp", "pp", "cp", "ep") if (getattr(scenario, n) or 1) > 1]
    name = FRAMEWORK_OF_SCALE if cuts or (scenario.devices or 1) > 1 else DEFAULT_FRAMEWORK
    notes.append(f"framework: {name} (default{' where ' + ', '.join(cuts) + ' > 1' if cuts else ''})")
    return name


def with_node_link(device: Device, node_bytes_per_s: float, devices_per_node: int) -> Device:
    """The device with its part of a node's link to other nodes."""
    return replace(device, scaleout=replace(device.scaleout, each_way_bytes_per_s=node_bytes_per_s / devices_per_node))


def _islands(scenario: Scenario, devices: int) -> Islands | None:
    size, rate = _sites(scenario, devices) or (scenario.island_devices, scenario.island_link_bytes_per_s)
    if size is None and rate is None:
        return None
    if size is None or rate is None:
        missing = "island_devices" if size is None else "island_link_bytes_per_s"
        raise ScenarioError(f"{missing}: is missing; islands need their size and the link between them.")
    if devices % size:
        raise ScenarioError(f"island_devices: {size} does not divide {devices} devices; write a divisor.")
    return Islands(num_devices=size, link=Link(name="between islands", each_way_bytes_per_s=rate, latency_s=1e-3))


def _sites(scenario: Scenario, devices: int) -> tuple[int, float] | None:
    """Devices of a site, and each one's part of its link; None where nobody speaks of sites."""
    sites, rate = scenario.sites, scenario.site_link_bytes_per_s
    if sites is None and rate is None and scenario.sites_train is None:
        return None
    if sites is None or rate is None:
        missing = "sites" if sites is None else "site_link_bytes_per_s"
        raise ScenarioError(f"{missing}: is missing; sites need their number and the link of each.")
    if scenario.island_devices is not None or scenario.island_link_bytes_per_s is not None:
        raise ScenarioError("island_devices: sites are islands too; write sites, or island_devices, not both.")
    if devices % sites:
        near = max(n for n in range(1, min(sites, devices) + 1) if devices % n == 0)
        raise ScenarioError(f"sites: {sites} do not divide {devices} devices; write {near}.")
    return devices // sites, rate * sites / devices


def job_json(job: TrainingJob) -> dict[str, Any]:
    """The job, by name; of models with experts also their dispatcher and load."""
    has_experts = any(b.experts for b in job.model.blocks)
    routed = (
        {
            "dispatcher": dispatcher_of(job),
            "expert_loads": loads_word(job.expert_loads),
            "expert_placement": job.expert_placement or IN_ORDER,
        }
        if has_experts
        else {}
    )
    return {
        "model": job.model.name,
        "device": job.cluster.device.name,
        "num_devices": job.cluster.num_devices,
        "devices_per_node": job.cluster.devices_per_node,
        "framework": job.framework.name,
        "precision": job.recipe.name,
        "task": job.task,
        "seq_len": job.seq_len,
        "global_batch": job.global_batch,
        **routed,
    }


LAYOUT_SETTINGS = (
    "tp",
    "cp",
    "pp",
    "dp",
    "vp",
    "first_stage_layers",
    "last_stage_layers",
    "ep",
    "etp",
    "micro_batch",
    "sharding_group",
    "secondary_group",
    "recompute",
    "recompute_layers",
    "schedule",
    "context_kind",
)


ANY_SCHEDULE = "any"
"""Written for a search: every schedule, also those that the framework does not run."""


def _given(scenario: Scenario) -> dict[str, Any]:
    """Fields of the layout that the scenario fixes, one by one or by the layout's name."""
    found = _settings(scenario)
    if scenario.layout is None:
        return found
    if found:
        name = {"is_sequence_parallel": "sequence_parallel"}.get(next(iter(found)), next(iter(found)))
        raise ScenarioError(f"layout: says all of a layout; leave {name} out, or layout.")
    return read_name(scenario.layout, tuple(SCHEDULES.techniques))


def _settings(scenario: Scenario) -> dict[str, Any]:
    found = {n: v for n in LAYOUT_SETTINGS if (v := getattr(scenario, n)) is not None}
    if scenario.sharding is not None:
        found["sharding"] = "zero3" if scenario.sharding == "fsdp" else scenario.sharding
    elif is_unsharded(scenario):
        found["sharding"] = "none"
    if scenario.seq_lengths is not None and scenario.layout is None and "cp" not in found:
        ranks = (scenario.devices or 1) // (found.get("tp", 1) * found.get("pp", 1))
        found["cp"] = max(1, ranks // math.gcd(ranks, scenario.global_batch or 1))  # groups that share a sequence
    if scenario.recompute not in (None, *get_args(Recompute)):
        found |= {"recompute": "selective", "recompute_modules": read_modules(str(scenario.recompute))}
    if scenario.sequence_parallel is not None:
        found["is_sequence_parallel"] = scenario.sequence_parallel
    if scenario.schedule == ANY_SCHEDULE:
        del found["schedule"]
    elif scenario.schedule:
        get_schedule(scenario.schedule)
    return found


def layout_of(question: TrainingQuestion) -> tuple[TrainingLayout, tuple[str, ...]]:
    """The one layout that was asked for: devices that are left over become data parallelism."""
    job, given, notes = question.job, dict(question.given), list[str]()
    f, devices = job.framework, job.cluster.num_devices
    used = given.get("tp", 1) * given.get("cp", 1) * given.get("pp", 1)
    if "dp" not in given:
        if devices % used:
            raise ScenarioError(
                f"devices: {devices} cannot be cut into tp x cp x pp = {used}; write a multiple of {used}, such as "
                f"devices = {_multiples(devices, used)}."
            )
        given["dp"] = devices // used
        if given["dp"] > 1:
            notes.append(f"dp: {given['dp']} (to use all {devices} devices)")
    if "micro_batch" not in given:
        given["micro_batch"] = 1
        notes.append("micro_batch: 1 (default)")
    if "sharding" not in given and given["dp"] * given.get("cp", 1) > 1:
        given["sharding"] = f.sharding
        notes.append(f"sharding: {f.sharding} (as {f.name} does by default)")
    if "recompute" not in given:
        given["recompute"] = f.recompute
        if f.recompute_modules:
            given["recompute_modules"] = read_modules(f.recompute_modules)
        notes.append(f"recompute: {f.recompute_modules or f.recompute} (as {f.name} does by default)")
    if given.get("pp", 1) > 1 and "schedule" not in given:
        given["schedule"] = "interleaved" if given.get("vp", 1) > 1 else f.schedule
        notes.append(f"schedule: {given['schedule']} (default)")
    given.setdefault("is_sequence_parallel", f.is_sequence_parallel)
    if "etp" not in given and given.get("tp", 1) > 1 and any(b.experts for b in job.model.blocks):
        ranks = given["tp"] * given.get("cp", 1) * given["dp"]
        given["etp"] = expert_cut(f.cuts_experts, given["tp"], ranks, given.get("ep", 1))
        notes.append(f"etp: {given['etp']} (as {f.name} does by default)")
    layout = TrainingLayout(**given)
    _check_choices(layout)
    check_modules(job.model, layout.recompute_modules)
    if "schedule" in given and layout.pp == 1:
        notes.append(f"schedule: {layout.schedule} means nothing without a pipeline (pp = 1)")
    return layout, tuple(notes)


def is_unsharded(scenario: Scenario) -> bool:
    """Whether a technique says where states lie, and no layout does: replicas that update alone hold all of them."""
    is_alone = scenario.local_updates not in (None, "synchronous") or scenario.sites_train == "experts"
    return (is_alone or scenario.partition is not None) and scenario.layout is None


def _multiples(got: int, step: int) -> str:
    below = got // step * step
    return f"{below} or {below + step}" if below else f"{step}"


def _check_choices(layout: TrainingLayout) -> None:
    """Refuse choices that mean nothing beside the others."""
    if layout.recompute_layers and layout.recompute != "full":
        raise ScenarioError(
            f"recompute_layers: got {layout.recompute_layers} with recompute = {layout.recompute}; "
            "write recompute = full, or leave recompute_layers out."
        )
    if layout.sharding_group and layout.sharding == "none":
        raise ScenarioError(
            f"sharding_group: got {layout.sharding_group} with sharding = none; write sharding = zero1, zero2 or "
            "zero3, or leave sharding_group out."
        )
    second, ranks = layout.secondary_group, layout.num_data_ranks
    if second and layout.sharding != "zero3":
        raise ScenarioError(
            f"secondary_group: got {second} with sharding = {layout.sharding}; write sharding = zero3, or leave "
            "secondary_group out."
        )
    if second and ranks % second:
        near = max(n for n in range(1, min(second, ranks) + 1) if ranks % n == 0)
        raise ScenarioError(f"secondary_group: {second} does not divide dp x cp = {ranks}; write {near}.")
