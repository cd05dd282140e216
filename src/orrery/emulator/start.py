"""From a scenario to a simulator that stands ready, and what its server is told."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeVar

from orrery.base.errors import ScenarioError
from orrery.emulator.image_pipeline import ImagePipeline
from orrery.emulator.kv_settings import KVEventSettings
from orrery.emulator.lora import LoraModules
from orrery.emulator.settings import Settings
from orrery.emulator.transcriber import Transcriber
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.execution.speculation import verified_tokens
from orrery.fleet.service.live_fleet import LiveFleet
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.cold_start import cold_start_of
from orrery.scenario.requests import length_of
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.service import service_for
from orrery.serving.live import Live
from orrery.serving.live.world import sizes_of
from orrery.serving.requests import Requests
from orrery.serving.simulation.assemble import Sizes
from orrery.serving.simulation.service import Service

M = TypeVar("M")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ready:
    """A service that can be asked."""

    live: Live | LiveFleet
    settings: Settings
    notes: tuple[str, ...]
    traffic: Requests | None = None  # that the server sends itself, on its clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Options of a server beside its scenario."""

    names: tuple[str, ...] = ()
    speed_ratio: float = 1.0
    api_key: str = ""
    max_queued: int = 0
    failure_frac: float = 0.0
    has_admin: bool = False
    has_legacy_metrics: bool = False
    hosts: tuple[str, ...] = ()
    lora_modules: tuple[str, ...] = ()  # NAME=PATH
    image_model: str = ""  # a diffusion pipeline beside the language model
    image_device: str = ""  # empty: a device as the language model has
    speech_model: str = ""  # a model of speech beside it
    speech_device: str = ""
    kv_events: str = ""  # address where what the caches gain and lose is told
    kv_events_replay: str = ""
    kv_events_topic: str = ""
    kv_events_connect: bool = False


def ready(
    scenario: Scenario, options: ServerOptions, patience: AbstractContextManager[object] | None = None
) -> Ready | InfeasibleAnswer:
    """Build the service of a scenario; whatever is wrong with it is said before its simulator is prepared.

    ``patience`` is entered while that goes on: the first time on a machine it may be compiled.
    """
    scenario = with_modules(scenario, options)
    service, notes = service_for(scenario)
    engine = service.pools[0].deployment.engine
    sizes = longest_sizes(scenario, service, engine.block_tokens)
    if isinstance(sizes, Infeasible):
        return InfeasibleAnswer(infeasible=sizes, notes=notes)
    with patience or nullcontext():
        live = Live.of(service, seed=scenario.seed or 0, sizes=sizes)
    if isinstance(live, Infeasible):
        return InfeasibleAnswer(infeasible=live, notes=notes)
    return Ready(
        live=live,
        settings=settings_of(scenario, service, sizes, options),
        notes=(*notes, *length_notes(scenario, sizes)),
    )


def settings_of(scenario: Scenario, service: Service, sizes: Sizes, options: ServerOptions) -> Settings:
    """Settings of a service's server."""
    deployment, speculation = service.pools[0].deployment, service.speculation
    names = options.names or (deployment.model.name,)
    return Settings(
        names=names,
        context_tokens=sizes.longest_tokens,
        block_tokens=sizes.block_tokens,
        answer=length_of(scenario, "output") if scenario.output_tokens is not None else None,
        speed_ratio=options.speed_ratio,
        api_key=options.api_key,
        max_queued=options.max_queued,
        failure_frac=options.failure_frac,
        seed=scenario.seed or 0,
        has_admin=options.has_admin,
        has_legacy_metrics=options.has_legacy_metrics,
        embedding_size=deployment.model.hidden_size,
        guessed_tokens=verified_tokens(speculation) - 1 if speculation else 0,
        guessed_levels=len(speculation.widths) if speculation else 0,
        images=_beside("image", "flux.1-dev", options.image_model, options.image_device, deployment, ImagePipeline.of),
        speech=_beside(
            "speech", "whisper-large-v3", options.speech_model, options.speech_device, deployment, Transcriber.of
        ),
        lora=_lora(deployment, options, names),
        wake_s=_wake_s(scenario, deployment),
        cache_config=_cache_config(service),
        kv_events=KVEventSettings.of(
            options.kv_events,
            options.kv_events_replay,
            options.kv_events_topic,
            options.kv_events_connect,
            deployment,
        ),
        hosts=frozenset(name.casefold().strip("[]") for name in options.hosts),
    )


def with_modules(scenario: Scenario, options: ServerOptions) -> Scenario:
    """The scenario with as many adapters as are named, where it does not say how many."""
    if options.lora_modules and scenario.lora_adapters is None:
        return merged(scenario, {"lora_adapters": len(options.lora_modules)})
    return scenario


def _lora(deployment: Deployment, options: ServerOptions, names: tuple[str, ...]) -> LoraModules | None:
    """Adapters of a deployment that takes some."""
    held = deployment.adapters
    if held is None and options.lora_modules:
        raise ScenarioError("lora-modules: this fleet takes no adapters; write lora_adapters = 10 in its file.")
    return None if held is None else LoraModules.of(options.lora_modules, held.slots, held.rank, names)


def _wake_s(scenario: Scenario, deployment: Deployment) -> tuple[float, float]:
    """Seconds to wake from both levels of sleep."""
    first, second = (cold_start_of(merged(scenario, {"start": f"sleep-{k}"}), deployment).start for k in (1, 2))
    return first.seconds_s, second.seconds_s


def _beside(
    kind: str, example: str, model: str, device: str, deployment: Deployment, build: Callable[[str, str], M]
) -> M | None:
    """Another model beside the language model, on a device of its own, where one was asked for."""
    if model:
        return build(model, device or deployment.cluster.device.name)
    if device:
        raise ScenarioError(f"{kind}-device: there is no model for it; write --{kind}-model {example} beside it.")
    return None


def length_notes(scenario: Scenario, sizes: Sizes) -> tuple[str, ...]:
    """Notes on lengths that were not stated."""
    text = f"max_model_len: {sizes.longest_tokens:,} tokens" if scenario.max_model_len is None else ""
    ends = (
        "answers are as long as max_tokens says; with --output-tokens they end by themselves"
        if scenario.output_tokens is None
        else ""
    )
    return tuple(filter(None, (text, ends)))


def _cache_config(service: Service) -> tuple[tuple[str, str], ...]:
    """Layout of the cache of the first pool's replicas, in the words of vLLM's metric."""
    deployment, memory = service.pools[0].deployment, memory_of(service.pools[0].deployment)
    engine = deployment.engine
    if isinstance(memory, Infeasible):
        return ()
    frac = deployment.memory_utilization_frac or engine.memory_utilization_frac
    has_prefix = engine.has_prefix_caching if service.prefix_caching is None else service.prefix_caching
    blocks = memory.kv_capacity_tokens / engine.block_tokens
    return (
        ("block_size", str(engine.block_tokens)),
        ("cache_dtype", deployment.formats.kv),
        ("enable_prefix_caching", str(has_prefix)),
        ("gpu_memory_utilization", f"{frac:g}"),
        ("num_gpu_blocks", str(int(blocks)) if isfinite(blocks) else "inf"),
    )


def longest_sizes(scenario: Scenario, service: Service, block_tokens: int) -> Sizes | Infeasible:
    """The longest sequence: as asked, else the model's context as far as the cache holds it."""
    sizes = sizes_of(service, block_tokens)
    requested_tokens = scenario.max_model_len
    if requested_tokens is None or isinstance(sizes, Infeasible):
        return sizes
    if not 2 <= requested_tokens <= sizes.longest_tokens:
        raise ScenarioError(
            f"max_model_len: got {requested_tokens:,}; model and cache hold 2 to {sizes.longest_tokens:,} tokens."
        )
    return replace(
        sizes,
        longest_tokens=requested_tokens,
        longest_prompt_tokens=requested_tokens - 1,
        mean_context_tokens=min(sizes.mean_context_tokens, requested_tokens / 4),
    )
