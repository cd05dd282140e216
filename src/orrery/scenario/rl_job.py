"""From a scenario to one step of RL post-training, with a note for every default that was taken."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, cast

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.catalog.rl_frameworks import get_rl_framework
from orrery.execution.engine import Engine
from orrery.execution.formats import activations_for
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device
from orrery.models.model import Model
from orrery.numerics.registry import get_format
from orrery.rl.framework import RlFramework
from orrery.rl.job import Algorithm, Reward, RlJob, Tail
from orrery.scenario.fields_rl import RL_SETTINGS
from orrery.scenario.names import canonical
from orrery.scenario.resolve import cache_beside, check_layout, one_device
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.train_job import TrainingQuestion, layout_of, training_question
from orrery.scenario.train_with.refused import refuse_techniques
from orrery.serving.synthesis.lengths import Length
from orrery.training.allowed import refusal
from orrery.training.columns import columns_of

SPREAD_FRAC = 1.0
"""Standard deviation of response lengths over their mean, before the longest response cuts them. Assumed."""

INPUT_TOKENS = 150
"""Tokens of a prompt where nobody says: a mathematical problem with its instruction. Assumed."""

OVERSAMPLING: dict[Tail, float] = {"wait": 1.0, "partial": 1.5, "batching": 1.25}
"""Prompts begun over those needed where nobody says; 1.25 is what tail batching was published with [gao-2025]."""

USUAL = ("recompute", "sharding")
"""Settings of the trainer that an RL framework's recipes decide where nobody says."""

OF_RL = tuple(s.name for s in RL_SETTINGS if s.name != "rl")

OF_RESPONSES = (
    *("engine", "engine_version", "max_num_seqs", "gpu_memory_utilization"),
    *("input_tokens", "output_tokens", "input_tokens_std", "output_tokens_std", "lengths"),
)
"""Settings of serving that training reads for the responses of RL, and for nothing else."""

NOT_OF_RL = ("offload", "against", "train_tokens", "task", "batch", "concurrency", "rate", "trace")
"""Settings that a step of RL has no use for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RlQuestion:
    """A step of RL post-training whose pools and layouts are fixed."""

    job: RlJob
    notes: tuple[str, ...]


def check_is_no_rl(scenario: Scenario, settings: Mapping[str, Any]) -> None:
    """Refuse RL post-training, and what is written for it in a job that is none.

    A scenario that is also served has an engine and lengths of its own; ``settings`` are written for this job.
    """
    if scenario.rl:
        raise ScenarioError("rl: is answered by train_rl and train_rl_plan; ask them, or leave it out.")
    given = [name for name in OF_RL if getattr(scenario, name) is not None]
    written = (canonical(key, OF_RESPONSES) for key, value in settings.items() if value is not None)
    if given := [*given, *(name for name in written if name in OF_RESPONSES)]:
        raise ScenarioError(f"{given[0]}: is of RL post-training; write rl = true (--rl) beside it, or leave it out.")


def refuse_placement(scenario: Scenario) -> None:
    """Refuse settings of placed calls in a step whose pools are simulated."""
    for name in ("rl_placement", "reference_model"):
        if getattr(scenario, name) is not None:
            raise ScenarioError(
                f"{name}: is of calls that are placed one by one, which train_rl_placement answers (orrery train --rl "
                "--rl-placement NAME, without --plan); leave it out."
            )


def rl_question(scenario: Scenario) -> RlQuestion:
    """The job of a scenario."""
    check_needed(scenario)
    refuse_placement(scenario)
    refuse_techniques(scenario, "with --rl", "--rl")
    framework, notes = get_rl_framework(scenario.framework or ""), list[str]()
    if scenario.framework is None:
        notes.append(f"framework: {framework.name} (default with --rl)")
    lengths = lengths_of_scenario(scenario, notes)
    colocated, generating = pools(scenario, notes)
    devices = cast(int, scenario.devices)
    training = devices if colocated else devices - generating
    question = trainer_question(scenario, framework, training, lengths[2])
    for name in USUAL:
        if getattr(scenario, name) is None and scenario.layout is None and (taken := question.given.get(name)):
            notes.append(f"{name}: {taken} (as recipes of {framework.name} set it)")
    layout, layout_notes = layout_of(question)
    notes += [*question.notes, *layout_notes]
    _check_fed(question.job, layout)
    if text := refusal(question.job, columns_of([replace(layout, micro_batch=1)])):
        raise ScenarioError(text)
    deployment = engine_for(scenario, framework, question.job, colocated, notes)
    return RlQuestion(
        job=job_of(scenario, framework, question, layout, deployment, generating, colocated, lengths, notes),
        notes=tuple(dict.fromkeys(notes)),
    )


def _check_fed(job: TrainingJob, layout: TrainingLayout) -> None:
    """Refuse a batch of which not every replica gets as many sequences."""
    if job.global_batch % layout.dp:
        near = max(layout.dp, job.global_batch // layout.dp * layout.dp)
        raise ScenarioError(
            f"global_batch: {job.global_batch} sequences of an update do not divide by dp = {layout.dp}; write "
            f"global_batch = {near}, or other degrees."
        )


def job_of(
    scenario: Scenario,
    framework: RlFramework,
    question: TrainingQuestion,
    layout: TrainingLayout,
    deployment: Deployment,
    generating: int,
    colocated: bool,
    lengths: tuple[Length, Length, int],
    notes: list[str],
) -> RlJob:
    """Assemble the job of an RL step; ScenarioError where its parts do not fit together."""
    job, algorithm = question.job, cast(Algorithm, scenario.algorithm or "grpo")
    each = deployment.layout.num_devices
    if generating % each:
        raise ScenarioError(
            f"generation_devices: {generating} devices do not make engines of {each}; write a multiple of {each}, or "
            "other generation_tp and generation_pp."
        )
    prompts, group = cast(int, scenario.prompts_per_step), cast(int, scenario.generations_per_prompt)
    if prompts * group % job.global_batch:
        raise ScenarioError(
            f"global_batch: {prompts} x {group} responses are no whole number of updates of {job.global_batch}; write "
            "a divisor."
        )
    has_reference = scenario.reference
    if has_reference is None:
        has_reference = framework.has_reference and algorithm != "dapo"
        notes.append(f"reference: {'yes' if has_reference else 'no'} (as {framework.name} with {algorithm})")
    critic = None
    if algorithm == "ppo":
        critic = get_model(scenario.critic_model or cast(str, scenario.model), scenario.assume or "")
        if scenario.critic_model is None:
            notes.append("critic_model: as large as the policy (default of ppo)")
    elif scenario.critic_model is not None:
        raise ScenarioError(f"critic_model: {algorithm} trains no critic; write algorithm = ppo, or leave it out.")
    tail = _tail(scenario)
    staleness = scenario.max_staleness or 0
    return RlJob(
        framework=framework,
        training=job,
        layout=layout,
        generation=deployment,
        replicas=generating // each,
        num_prompts=prompts,
        group=group,
        prompt=lengths[0],
        response=lengths[1],
        num_updates=prompts * group // job.global_batch,
        num_epochs=scenario.ppo_epochs or 1,
        algorithm=algorithm,
        has_reference=has_reference,
        has_old_logprobs=True if scenario.old_logprobs is None else scenario.old_logprobs,
        critic=critic,
        reward=_reward(scenario, notes),
        is_packed=framework.is_packed if scenario.sequence_packing is None else scenario.sequence_packing,
        is_colocated=colocated,
        offloads=colocated and (True if scenario.offload_training is None else scenario.offload_training),
        max_staleness=staleness,
        updates_in_flight=True if scenario.updates_in_flight is None else scenario.updates_in_flight,
        tail=tail,
        oversampling_ratio=scenario.oversampling or OVERSAMPLING[tail],
        kept_frac=_retained(scenario, algorithm, notes),
        seed=scenario.seed or 0,
    )


def check_needed(scenario: Scenario) -> None:
    """Refuse a step that lacks what no default can give, or has what it cannot use."""
    for name, example in (
        ("model", '"llama-3.1-8b"'),
        ("devices", "16"),
        ("prompts_per_step", "64"),
        ("generations_per_prompt", "16"),
        ("output_tokens", "1024"),
    ):
        if getattr(scenario, name) is None:
            raise ScenarioError(f"{name}: is missing; write it, such as {name} = {example}.")
    if given := [name for name in NOT_OF_RL if getattr(scenario, name, None) is not None]:
        raise ScenarioError(f"{given[0]}: a step of RL has no use for it; leave it out, or rl.")


def lengths_of_scenario(scenario: Scenario, notes: list[str]) -> tuple[Length, Length, int]:
    """Prompts, responses, and the longest sequence of the two together."""
    mean = float(cast(int, scenario.output_tokens))
    prompt = float(scenario.input_tokens or INPUT_TOKENS)
    if scenario.input_tokens is None:
        notes.append(f"input_tokens: {INPUT_TOKENS} (assumed)")
    longest = scenario.max_output_tokens
    if longest is None:
        longest = scenario.seq_len - round(prompt) if scenario.seq_len else ceil(4 * mean)
        notes.append(f"max_output_tokens: {longest} ({'what seq_len leaves' if scenario.seq_len else '4 x the mean'})")
    if mean > longest:
        raise ScenarioError(
            f"output_tokens: a mean of {mean:g} is more than the longest response, {longest}; write max_output_tokens "
            "(or seq_len) above it."
        )
    law = scenario.lengths or "lognormal"
    std = scenario.output_tokens_std
    if std is None and law in ("lognormal", "normal"):
        std = SPREAD_FRAC * mean
        notes.append(f"output_tokens_std: {std:g} (assumed: the mean, before the longest response cuts)")
    if scenario.input_tokens_std:
        question = Length(mean_tokens=prompt, std_tokens=scenario.input_tokens_std)
    else:
        question = Length(mean_tokens=prompt, law="constant")
    answer = Length(mean_tokens=mean, std_tokens=std or 0.0, law=law, most_tokens=longest)
    return question, answer, scenario.seq_len or round(prompt) + longest


def pools(scenario: Scenario, notes: list[str]) -> tuple[bool, int]:
    """Whether both pools are the same devices, and how many generate."""
    devices, staleness = cast(int, scenario.devices), scenario.max_staleness or 0
    colocated = scenario.colocated
    if colocated is None:
        colocated = not staleness and scenario.generation_devices is None
        notes.append(f"colocated: {'yes' if colocated else 'no'} (default here)")
    if colocated:
        if staleness:
            raise ScenarioError("max_staleness: pools that take turns are on policy; leave it or --colocated out.")
        if scenario.generation_devices not in (None, devices):
            raise ScenarioError("generation_devices: colocated engines take all devices; leave it or --colocated out.")
        return True, devices
    generating = scenario.generation_devices
    if generating is None:
        generating = devices // 2
        notes.append(f"generation_devices: {generating} (half of them)")
    if not 0 < generating < devices:
        raise ScenarioError(
            f"generation_devices: got {generating} of {devices}; write 1 to {devices - 1}: the others train."
        )
    return False, generating


def trainer_question(
    scenario: Scenario, framework: RlFramework, devices: int, seq_len: int, *, is_open: bool = False
) -> TrainingQuestion:
    """The trainer's job on its devices, with what the user fixed of its layout; unless it ``is_open`` for a search,
    the framework's recipes decide what it recomputes and shares out."""
    samples = cast(int, scenario.prompts_per_step) * cast(int, scenario.generations_per_prompt)
    usual: dict[str, Any] = {}
    if not is_open and scenario.layout is None:
        usual = {name: getattr(scenario, name) or getattr(framework, name) or None for name in USUAL}
    return training_question(
        merged(
            scenario,
            {
                "framework": framework.training,
                "devices": devices,
                "seq_len": seq_len,
                "global_batch": scenario.global_batch or samples,
                **usual,
            },
        )
    )


def engine_for(
    scenario: Scenario, framework: RlFramework, job: TrainingJob, colocated: bool, notes: list[str]
) -> Deployment:
    """One engine of the pool that generates."""
    device = get_device(one_device(scenario))
    layout = Layout(tp=scenario.generation_tp or 1, pp=scenario.generation_pp or 1, ep=scenario.generation_ep or 1)
    check_layout(layout, job.model)
    engine = get_engine(scenario.engine or framework.engine, scenario.engine_version or "", device)
    if scenario.engine is None:
        notes.append(f"engine: {engine.name} (what {framework.name} generates with)")
    formats = formats_for(scenario.generation_weights or "bf16", device, engine, job.model)
    share = scenario.gpu_memory_utilization
    if share is None:
        share = framework.colocated_memory_frac if colocated else framework.separate_memory_frac
        where = "colocated" if colocated else "separate"
        notes.append(f"gpu_memory_utilization: {share:g} (as {framework.name} sets it for {where} engines)")
    return deployment_of(job.model, device, layout, formats, engine, share, scenario.max_num_seqs or 0)


def deployment_of(
    model: Model,
    device: Device,
    layout: Layout,
    formats: Formats,
    engine: Engine,
    share: float,
    max_num_seqs: int = 0,
) -> Deployment:
    """An engine of a layout that may fill a share of its devices' memory."""
    return Deployment(
        model=model,
        layout=layout,
        formats=formats,
        engine=engine,
        mode="offline",
        cluster=Cluster(device=device, num_devices=layout.num_devices, devices_per_node=device.devices_per_node),
        max_num_seqs=max_num_seqs,
        memory_utilization_frac=share,
    )


def formats_for(weights: str, device: Device, engine: Engine, model: Model) -> Formats:
    """Formats of the policy in its engine: weights as requested, activations and cache to match."""
    name = get_format(weights).name
    activations = activations_for(name, device)
    return Formats(weights=name, activations=activations, kv=cache_beside(name, activations, engine, device, model))


def _reward(scenario: Scenario, notes: list[str]) -> Reward:
    if scenario.reward_s is None and scenario.reward_model is None:
        notes.append("reward: a function that takes no time (assumed; --reward-s, --reward-model)")
    model = get_model(scenario.reward_model, scenario.assume or "") if scenario.reward_model else None
    return Reward(sample_s=scenario.reward_s or 0.0, workers=scenario.reward_workers or 1, model=model)


def _tail(scenario: Scenario) -> Tail:
    if scenario.partial_rollout and scenario.tail_batching:
        raise ScenarioError("partial_rollout and tail_batching exclude each other; keep one.")
    tail: Tail = "partial" if scenario.partial_rollout else "batching" if scenario.tail_batching else "wait"
    if tail != "wait" and scenario.max_staleness:
        raise ScenarioError(
            "max_staleness: engines that run ahead hide the tail behind the next batch; leave it, or partial_rollout "
            "and tail_batching, out."
        )
    if tail == "wait" and scenario.oversampling is not None:
        raise ScenarioError("oversampling: nothing is begun beyond need; write partial_rollout or tail_batching too.")
    return tail


def _retained(scenario: Scenario, algorithm: Algorithm, notes: list[str]) -> float:
    if scenario.kept_groups is None and algorithm == "dapo":
        notes.append("kept_groups: 1 (dynamic sampling drops nothing unless --kept-groups says so)")
    return scenario.kept_groups or 1.0
