"""From a scenario to the calls of an RLHF iteration and the models that they are of."""

from dataclasses import dataclass
from typing import cast

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.catalog.rl_frameworks import get_rl_framework, rl_framework_names
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device
from orrery.models.model import Model
from orrery.planner.rlhf.dataflow import RlhfJob, calls_of
from orrery.rl.lengths import lengths_of
from orrery.scenario.resolve import one_device
from orrery.scenario.rl_job import check_needed, lengths_of_scenario
from orrery.scenario.schema import Scenario

TAKEN = frozenset(
    {
        "rl",
        "rl_placement",
        "model",
        "assume",
        "device",
        "devices",
        "devices_per_node",
        "engine",
        "engine_version",
        "framework",
        "precision",
        "algorithm",
        "critic_model",
        "reward_model",
        "reference_model",
        "reference",
        "old_logprobs",
        "prompts_per_step",
        "generations_per_prompt",
        "global_batch",
        "ppo_epochs",
        "input_tokens",
        "output_tokens",
        "output_tokens_std",
        "max_output_tokens",
        "lengths",
        "seq_len",
        "max_staleness",
        "knob",
        "seed",
        "usd_per_hour",
    }
)
"""Settings that a placement of calls reads."""

HOST = "framework: what its host adds to each step, and to each tensor on its way, is in the plain step of --rl alone"
MEAN = "passes: every sequence as long as the mean one; rollouts have the lengths that were drawn"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementQuestion:
    """The calls, and a note for every default that was taken."""

    job: RlhfJob
    algorithm: str
    notes: tuple[str, ...]


def placement_question(scenario: Scenario) -> PlacementQuestion:
    """The job of a scenario with ``rl_placement``; ScenarioError for what a placement has no use for."""
    check_needed(scenario)
    _check_taken(scenario)
    notes = list[str]()
    device = get_device(one_device(scenario))
    algorithm = scenario.algorithm or "grpo"
    models, has_logprobs = _models(scenario, algorithm, notes), scenario.old_logprobs is not False
    prompt, response, _ = lengths_of_scenario(scenario, notes)
    prompts, group = cast(int, scenario.prompts_per_step), cast(int, scenario.generations_per_prompt)
    responses = lengths_of(prompt, response, prompts, group, scenario.seed or 0).response
    is_even = bool((responses == responses[0]).all())
    notes += [] if is_even else [MEAN]
    batch, update = prompts * group, scenario.global_batch or prompts * group
    if batch % update:
        raise ScenarioError(
            f"global_batch: {prompts} x {group} responses are no whole number of updates of {update}; write a divisor."
        )
    training, engine = _frameworks(scenario, device, notes)
    notes.append(HOST)
    job = RlhfJob(
        models=models,
        cluster=Cluster(
            device=device,
            num_devices=cast(int, scenario.devices),
            devices_per_node=scenario.devices_per_node or device.devices_per_node,
        ),
        framework=get_framework(training, device),
        recipe=get_recipe(scenario.precision or "bf16"),
        engine=get_engine(engine, scenario.engine_version or "", device),
        batch=batch,
        prompt_tokens=round(prompt.mean_tokens),
        output_tokens=max(1, round(float(responses.mean()))),
        responses=() if is_even else tuple(responses.tolist()),
        num_mini_batches=batch // update,
        num_epochs=scenario.ppo_epochs or 1,
        calls=calls_of(
            has_critic="critic" in models,
            has_reward="reward" in models,
            has_reference="reference" in models,
            has_logprobs=has_logprobs,
        ),
    )
    return PlacementQuestion(job=job, algorithm=algorithm, notes=tuple(dict.fromkeys(notes)))


def _check_taken(scenario: Scenario) -> None:
    for name in scenario.written():
        if name not in TAKEN:
            raise ScenarioError(
                f"{name}: a placement of calls has no use for it (it tries all layouts itself, and costs every call by "
                f"a closed form); leave it out, or rl_placement."
            )
    if scenario.max_staleness is not None and scenario.rl_placement != "asynchronous":
        raise ScenarioError(
            f"max_staleness: with {scenario.rl_placement} every batch is written by the newest weights; write "
            "rl_placement = asynchronous, or leave it out."
        )


def _models(scenario: Scenario, algorithm: str, notes: list[str]) -> dict[str, Model]:
    """Models by role; those that the algorithm lacks are left out."""
    policy = cast(str, scenario.model)
    named = {"actor": policy}
    if algorithm == "ppo":
        named["critic"] = scenario.critic_model or policy
    elif scenario.critic_model is not None:
        raise ScenarioError(f"critic_model: {algorithm} trains no critic; write algorithm = ppo, or leave it out.")
    has_reference = scenario.reference if scenario.reference is not None else algorithm != "dapo"
    if has_reference:
        named["reference"] = scenario.reference_model or policy
    elif scenario.reference_model is not None:
        raise ScenarioError("reference_model: there is no reference policy; write reference = true, or leave it out.")
    if scenario.reward_model is not None:
        named["reward"] = scenario.reward_model
    for role in ("critic", "reference"):
        if role in named and getattr(scenario, f"{role}_model") is None:
            notes.append(f"{role}_model: as large as the policy (default)")
    if "reward" not in named:
        notes.append("reward: a function that takes no time (assumed; --reward-model)")
    return {role: get_model(name, scenario.assume or "") for role, name in named.items()}


def _frameworks(scenario: Scenario, device: Device, notes: list[str]) -> tuple[str, str]:
    """Names of the framework that trains and of the engine that writes: those of an RL framework, or a training
    framework of the user's beside an engine of his."""
    name = scenario.framework
    if name is not None and name not in rl_framework_names():
        engine = scenario.engine or "vllm"
        notes += [] if scenario.engine else [f"engine: {engine} (default beside {name})"]
        return get_framework(name, device).name, engine
    framework = get_rl_framework(name or "")
    notes += [] if name else [f"framework: {framework.name} (default with --rl)"]
    notes += [] if scenario.engine else [f"engine: {framework.engine} (what {framework.name} generates with)"]
    return framework.training, scenario.engine or framework.engine
