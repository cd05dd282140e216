"""One row of a training table whose task is ``rl``, as a step of RL post-training; every default is written down.

Columns beside those of training: ``rollouts_per_step`` (responses that a step trains on), ``generations_per_prompt``,
``mean_sequence_tokens`` (prompt and response; ``input_tokens`` and ``output_tokens`` where they are told apart),
``output_tokens_std``, ``generation_tp``, ``generation_pp``, ``generation_devices``, ``generation_weights``,
``rl_algorithm`` and ``rl_policy`` (On policy, 1-step Off, …). ``seq_len`` is the longest sequence.
"""

import re
from math import ceil

from orrery.base.errors import ScenarioError
from orrery.catalog.engines import get_engine
from orrery.catalog.rl_frameworks import Release, get_rl_framework, release_of
from orrery.evidence.row import Row
from orrery.evidence.training_cluster import device_of
from orrery.evidence.training_row import read_training_row
from orrery.execution.layout import Deployment, Layout
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.hardware.device import Device
from orrery.models.model import Model
from orrery.rl.framework import RlFramework
from orrery.rl.job import ALGORITHMS, RlJob
from orrery.scenario.resolve import check_layout
from orrery.scenario.rl_job import INPUT_TOKENS, SPREAD_FRAC, deployment_of, formats_for
from orrery.serving.synthesis.lengths import Length

_STEPS_OFF = re.compile(r"(\d+)-step off", re.IGNORECASE)
_RELEASE = re.compile(r"v(\d+(?:\.\d+)*)")

GROUP = 32
"""Responses to a prompt where a row does not say: what published recipes take."""


def read_rl_row(row: Row) -> RlJob:
    """The job, its settings and its devices. Raises an OrreryError whose text is the reason to decline."""
    framework = get_rl_framework(row.word("framework"))
    device, devices, staleness = device_of(row), round(row.needed("num_devices")), _staleness(row)
    samples = round(row.needed("rollouts_per_step"))
    updated = row.count("global_batch") or samples
    if samples % updated:
        raise ScenarioError(f"rollouts_per_step {samples} do not divide into updates of {updated}")
    colocated = staleness == 0 and not row.word("generation_devices")
    training, layout, generating = _trainer(row, framework, devices, updated, colocated)
    group = row.count("generations_per_prompt") or int(row.default("generations_per_prompt", str(GROUP)))
    if samples % group:
        raise ScenarioError(f"rollouts_per_step {samples} are no groups of {group}")
    engine_layout = Layout(tp=row.count("generation_tp") or 1, pp=row.count("generation_pp") or 1)
    check_layout(engine_layout, training.model)
    if generating % engine_layout.num_devices:
        raise ScenarioError(f"{generating} devices do not make engines of {engine_layout.num_devices}")
    prompt, response = _lengths(row)
    release = _release(row, framework)
    algorithm = row.word("rl_algorithm").casefold() or row.default("rl_algorithm", "grpo")
    if algorithm not in ALGORITHMS:
        raise ScenarioError(f"unknown rl_algorithm {algorithm}")
    return RlJob(
        framework=framework,
        training=training,
        layout=layout,
        replicas=generating // engine_layout.num_devices,
        generation=_engine(row, framework, training.model, device, engine_layout, colocated, release),
        num_prompts=samples // group,
        group=group,
        prompt=prompt,
        response=response,
        num_updates=samples // updated,
        algorithm=algorithm,
        has_reference=framework.has_reference and algorithm != "dapo",
        critic=training.model if algorithm == "ppo" else None,
        is_packed=framework.is_packed,
        is_colocated=colocated,
        offloads=colocated,
        max_staleness=staleness,
        updates_in_flight=release.updates_in_flight,
    )


def _staleness(row: Row) -> int:
    """How many updates behind rollouts may be: ``max_staleness``, or as ``rl_policy`` words it."""
    if row.word("max_staleness"):
        return row.count("max_staleness")
    word = row.word("rl_policy")
    if not word or word.casefold() == "on policy":
        return 0
    if found := _STEPS_OFF.fullmatch(word.strip()):
        return int(found[1])
    raise ScenarioError(f"unknown rl_policy {word}; write On policy, or 1-step Off")


def _trainer(
    row: Row, framework: RlFramework, devices: int, updated: int, colocated: bool
) -> tuple[TrainingJob, TrainingLayout, int]:
    """The training job and layout, and the devices that generate."""
    if colocated:
        return *_trained(row, framework, devices, updated), devices
    if stated := row.count("generation_devices"):
        return *_trained(row, framework, devices - stated, updated), stated
    first: ScenarioError | None = None
    node = device_of(row).devices_per_node if devices > device_of(row).devices_per_node else 1
    unit = min(row.count("devices_per_node") or 8, node) if node > 1 else 1
    for training in sorted(range(unit, devices, unit), key=lambda n: (abs(2 * n - devices), -n)):
        try:
            found = _trained(row, framework, training, updated)
        except ScenarioError as error:
            first = first or error
        else:
            row.default("generation_devices", f"{devices - training} (half, or the nearest split that the batch takes)")
            return *found, devices - training
    raise first or ScenarioError("no split of the devices takes the batch")


def _trained(row: Row, framework: RlFramework, devices: int, updated: int) -> tuple[TrainingJob, TrainingLayout]:
    cells: dict[str, str] = {
        **row.cells,
        "task": "full_finetune",
        "framework": framework.training,
        "num_devices": str(devices),
        "global_batch": str(updated),
        "dp": "",
        "framework_version": "",
        "micro_batch": row.word("micro_batch") or "1",
    }
    ranks = devices // max(1, row.count("pp"))
    if row.count("ep") > ranks:
        cells["ep"] = row.default("ep", f"{ranks} (the trainer's ranks)").split()[0]
    inner = Row(cells)
    job, layout = read_training_row(inner)
    row.assumed += [a for a in inner.assumed if a not in row.assumed]
    return job, layout


def _lengths(row: Row) -> tuple[Length, Length]:
    """Prompts and responses; what cuts them is the longest sequence."""
    prompt = row.number("input_tokens") or float(row.default("input_tokens", str(INPUT_TOKENS)))
    mean = row.number("output_tokens") or row.needed("mean_sequence_tokens") - prompt
    longest = round(row.number("max_output_tokens") or row.needed("seq_len") - prompt)
    std = row.number("output_tokens_std")
    if not std:
        std = SPREAD_FRAC * mean
        row.default("output_tokens_std", "the mean, before the longest response cuts")
    return (
        Length(mean_tokens=prompt, law="constant"),
        Length(mean_tokens=mean, std_tokens=std, most_tokens=max(longest, ceil(mean))),
    )


def _release(row: Row, framework: RlFramework) -> Release:
    """Features of the framework's release."""
    found = _RELEASE.search(row.word("framework_version"))
    return release_of(framework.name, found[1] if found else "")


def _engine(
    row: Row, framework: RlFramework, model: Model, device: Device, layout: Layout, colocated: bool, release: Release
) -> Deployment:
    engine = get_engine(
        row.word("engine") or framework.engine, row.word("engine_version") or release.engine_version, device
    )
    weights = row.word("generation_weights") or ("fp8" if row.word("precision").casefold() == "fp8" else "bf16")
    share = framework.colocated_memory_frac if colocated else framework.separate_memory_frac
    return deployment_of(model, device, layout, formats_for(weights, device, engine, model), engine, share)
