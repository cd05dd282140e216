"""From what a user wrote to what the house understands; every default taken is said in a note."""

from dataclasses import dataclass, replace
from math import prod

from orrery.base.errors import ScenarioError
from orrery.catalog.backends import backends_called
from orrery.catalog.devices import get_device
from orrery.catalog.engines import engine_notes, get_engine, newest_release
from orrery.catalog.models import get_model
from orrery.execution.choice import chosen
from orrery.execution.engine import KINDS, Engine, Kind
from orrery.execution.experts.all_to_all import dispatcher_note, get_dispatcher
from orrery.execution.experts.placed import placed_note
from orrery.execution.experts.redundant import redundant_note, why_not
from orrery.execution.formats import activations_for, can_multiply, wide_format
from orrery.execution.kept_cache import NOTHING
from orrery.execution.layout import Backends, Deployment, Formats, Layout
from orrery.execution.routes import BY_ROUTES, IN_ORDER
from orrery.execution.shard import has_exchange
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device
from orrery.kernels.lowbit.served import has_units
from orrery.models.model import LatentAttention, Model
from orrery.numerics.one_bit_pairs import pair_of
from orrery.numerics.registry import get_format
from orrery.planner.space import tensor_degrees
from orrery.scenario.clock import at_clock, clock_notes
from orrery.scenario.cuts import cut_of, degrees_of
from orrery.scenario.draft_trees import Drafting, with_tree
from orrery.scenario.drafting import draft_head_of, draft_notes
from orrery.scenario.eager import eager_note, without_graphs
from orrery.scenario.expert_loads import expert_loads, expert_routes
from orrery.scenario.forms import check_knobs, form_notes, overlap_knobs, with_policy
from orrery.scenario.host_experts import HOST_EXPERTS, host_experts_note, host_experts_of
from orrery.scenario.images import IMAGES, image_notes, images_of, prompt_tokens
from orrery.scenario.kept_cache import KEPT_CACHE, Selected, compression_notes, compression_of, selected
from orrery.scenario.kernel_backends import attention_notes, product_notes
from orrery.scenario.model_kind import ModelKind, kind_of
from orrery.scenario.narrow_products import (
    MIXED_NOTE,
    WIDE,
    check_mixed_widths,
    check_stored,
    mixes_widths,
    online_rotation_of,
    wide_format_of,
    wide_frac_of,
)
from orrery.scenario.one_pool import pool_notes, pool_of
from orrery.scenario.schema import Scenario
from orrery.scenario.sparse_weights import sparsity_notes, sparsity_of
from orrery.scenario.traffic import traffic_of
from orrery.scenario.weight_offload import WEIGHT_OFFLOAD, weight_offload_note, weight_offload_of
from orrery.serving.workload import Mode, Workload

DEFAULT_ENGINE = "vllm"
"""The most used open engine; another is one flag away."""

REDUNDANCY = "redundancy"
"""The placement with copies of popular experts: one a rank where num_redundant_experts says nothing."""

DEGREES = ("tp", "pp", "dp", "ep", "etp", "cp")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """The named things of a scenario, found in the catalogue."""

    model: Model
    device: Device
    engine: Engine
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Question:
    """One deployment and its traffic, ready to be estimated."""

    deployment: Deployment
    workload: Workload
    notes: tuple[str, ...]
    drafting: Drafting | None = None  # the draft tree, where one is asked for
    selection: Selected | None = None  # of cached positions, where they are chosen


def resolve(scenario: Scenario) -> Question:
    """The deployment and traffic of a scenario that describes exactly one of each."""
    if scenario.context_lengths is not None:
        raise ScenarioError(
            "context_lengths: asks for a table of its own, which orrery estimate answers; leave it out."
        )
    parts = _with_forms(scenario, find(scenario, one_device(scenario)))
    layout, layout_notes = layout_of(scenario, parts)
    formats, format_notes = formats_of(scenario, parts)
    deployment = deploy(scenario, parts, layout, formats)
    workload, traffic_notes = workload_of(scenario)
    deployment, drafting = with_tree(scenario, deployment, workload) if scenario.draft else (deployment, None)
    notes = (
        *parts.notes,
        *layout_notes,
        *format_notes,
        *backend_notes(deployment),
        *(form_notes(scenario, deployment) if scenario.asks("policy", "overlap", "knob") else ()),
        *(clock_notes(scenario, parts.device) if scenario.clock_frac else ()),
        *traffic_notes,
        *(pool_notes(workload.pool) if scenario.disaggregation_mode else ()),
        *(draft_notes(scenario, deployment.draft_head) if deployment.draft_head else ()),
        *(drafting.notes() if drafting else ()),
        *(compression_notes(scenario, deployment) if scenario.kv_selection else ()),
    )
    return Question(
        deployment=deployment,
        workload=workload,
        notes=notes,
        drafting=drafting,
        selection=selected(scenario, round(workload.input_tokens)) if scenario.kv_selection else None,
    )


def _with_forms(scenario: Scenario, parts: Parts) -> Parts:
    """The device at the clock, and the engine with the policy, that are asked for."""
    if scenario.knob:
        check_knobs(scenario)
    if scenario.clock_frac:
        parts = replace(parts, device=at_clock(scenario, parts.device))
    return replace(parts, engine=with_policy(scenario, parts.engine)) if scenario.policy else parts


def one_device(scenario: Scenario) -> str:
    """The one device a scenario names."""
    first, *more = device_names(scenario)
    if more:
        raise ScenarioError(f"device: got {len(more) + 1} devices; estimate takes one, plan takes several.")
    return first


def device_names(scenario: Scenario) -> tuple[str, ...]:
    """The devices a scenario names, separated by commas."""
    if scenario.device is None:
        raise ScenarioError('device: is missing; write a name, such as device = "h100-sxm" (`orrery show devices`).')
    names = words(scenario.device)
    if not names:
        raise ScenarioError(f'device: got {scenario.device!r}; write a name, such as device = "h100-sxm".')
    return names


def words(text: str) -> tuple[str, ...]:
    """The words of a list with commas, each once."""
    return tuple(dict.fromkeys(w.strip() for w in text.split(",") if w.strip()))


def find(scenario: Scenario, device_name: str) -> Parts:
    """Model, device and engine by name, with notes on every spelling that was interpreted."""
    if scenario.model is None:
        raise ScenarioError('model: is missing; write a name or a config.json, such as model = "llama-3.1-8b".')
    if kind_of(scenario.model) is ModelKind.DIFFUSION:
        raise ScenarioError(f"model: {scenario.model} makes pictures or videos: orrery estimate answers for it alone.")
    model, device = get_model(scenario.model, scenario.assume or ""), get_device(device_name)
    engine = engine_on(device, scenario.engine, scenario.engine_version)
    check_context(scenario, model)
    check_stored(scenario)
    notes = [
        *read_as(model),
        *(image_notes(scenario, model) if scenario.asks(*IMAGES) else ()),
        *device.notes,
        *engine_notes(scenario.engine or "", device),
    ]
    if scenario.engine is None:
        why = "default" if engine.name == DEFAULT_ENGINE else f"what {device.name} was measured with"
        notes.append(f"engine: {engine.name} ({why})")
    if scenario.engine_version is None and not engine.version:
        since = f", {newest}" if (newest := newest_release(scenario.engine or engine.name)) else ""
        notes.append(f"engine_version: the newest known{since}; defaults, kernels and host time are of that release")
    if scenario.enforce_eager:
        notes.append(eager_note(engine))
        engine = without_graphs(engine)
    return Parts(model=model, device=device, engine=engine, notes=tuple(notes))


def check_context(scenario: Scenario, model: Model) -> None:
    """Refuse requests that are longer than what is let in: ``max_model_len``, or else the model's own context."""
    longest = scenario.max_model_len or model.max_context_tokens
    prompt = prompt_tokens(scenario, model) if scenario.image_count else scenario.input_tokens
    made = (scenario.output_tokens or 0) if model.head else 0
    inputs = (prompt or 0) + made
    if not longest or inputs <= longest:
        return
    whose = "max_model_len" if scenario.max_model_len else f"the context of {model.name}"
    raise ScenarioError(
        f"input_tokens and output_tokens: {inputs:,} tokens a request are more than {whose}, {longest:,}; "
        f"write shorter ones, or max_model_len = {inputs} where the server is started with it."
    )


ASIDES = ("model_type", "weights_format", "tower_parameters", "fields", "layers")
"""Keys under which a reader of configs states what it did not know, or took for something near it."""


def read_as(model: Model) -> tuple[str, ...]:
    """Notes on what a config left open: a family that was assumed, a format, a tower or fields that are not known."""
    return tuple(f"model: {text}" for key, text in model.published if key in ASIDES)


def engine_on(device: Device, name: str | None, version: str | None = None) -> Engine:
    """The engine that is asked for; without a name the one whose calls a device was measured by, else the default."""
    own = (c.engine for c in device.calibrations.values() if c.law and c.origin == "device")
    measured = next(own, DEFAULT_ENGINE)
    return get_engine(name or measured, version or "", device)


def layout_of(scenario: Scenario, parts: Parts) -> tuple[Layout, tuple[str, ...]]:
    """The layout that was asked for; devices without a layout become tensor parallelism."""
    given = {d: n for d in DEGREES if (n := getattr(scenario, d)) is not None}
    if scenario.cut is not None:
        if (cut := cut_of(scenario, parts.model)) is None:
            raise ScenarioError("cut: any is of orrery plan; write attention=A,ffn=F.")
        given = {**degrees_of(cut), **given}
    world = {d: n for d, n in given.items() if d not in ("ep", "etp")}
    notes: tuple[str, ...] = ()
    if scenario.devices is not None and "tp" not in given:
        rest = prod(world.values())
        if scenario.devices % rest:
            raise ScenarioError(
                f"devices: {scenario.devices} cannot be cut into {_describe(world)}; write a multiple of {rest}."
            )
        given |= _spread(scenario.devices // rest, parts, can_pipeline="pp" not in given)
        chosen = ", ".join(f"{d} = {given[d]}" for d in ("tp", "pp") if given.get(d, 1) > 1)
        notes = (f"layout: {chosen} (to use all {scenario.devices} devices)",) if chosen else ()
    layout = Layout(**given)
    if scenario.devices is not None and scenario.devices != layout.num_devices:
        raise ScenarioError(
            f"devices: {scenario.devices} is not what {_describe(world)} takes; write devices = {layout.num_devices}, "
            "or leave it out."
        )
    check_layout(layout, parts.model, scenario.num_redundant_experts or 0)
    return layout, notes


def _spread(devices: int, parts: Parts, can_pipeline: bool) -> dict[str, int]:
    """Tensor parallel as far as heads and the fast domain allow, pipeline stages for the rest."""
    degrees = [t for t in tensor_degrees(parts.model, parts.device.devices_per_node) if devices % t == 0]
    tp = max(degrees) if can_pipeline else devices
    return {"tp": tp, "pp": devices // tp} if tp < devices else {"tp": tp}


def check_layout(layout: Layout, model: Model, num_redundant: int = 0) -> None:
    """Refuse what no engine could run: experts that do not exist, more stages than layers, heads that do not divide.

    Ranks hold as many experts each, ``num_redundant`` copies over all ranks counted in.
    """
    experts = max((b.experts.num_experts for b in model.blocks if b.experts), default=0)
    if layout.ep > 1 and not experts:
        raise ScenarioError(f"ep: {layout.ep} ranks for experts, but {model.name} has no experts; leave ep out.")
    if layout.ep > 1 and not num_redundant and experts % layout.ep:
        raise ScenarioError(
            f"ep: {layout.ep} does not divide the {experts} experts of {model.name}; write a divisor, or "
            f"num_redundant_experts = {-experts % layout.ep} for copies that fill the ranks."
        )
    if layout.ep > layout.tp * layout.dp or (layout.tp * layout.dp) % layout.ep:
        raise ScenarioError(
            f"ep: {layout.ep} must divide tp x dp = {layout.tp * layout.dp}, the ranks it is spread over."
        )
    if layout.etp and layout.ep * layout.etp not in (layout.tp, layout.tp * layout.dp):
        raise ScenarioError(
            f"etp: ep x etp = {layout.ep * layout.etp} are neither the {layout.tp} devices of a rank (tp) nor those of "
            f"all ranks (tp x dp = {layout.tp * layout.dp}); write one of the two, or leave etp out."
        )
    if layout.pp > model.num_layers:
        raise ScenarioError(f"pp: {layout.pp} stages for {model.num_layers} layers; write at most {model.num_layers}.")
    if bad := [h for h in head_counts(model) if h % layout.tp]:
        raise ScenarioError(
            f"tp: {layout.tp} does not divide {bad[0]} attention heads of {model.name}; write a divisor of it."
        )


def head_counts(model: Model) -> tuple[int, ...]:
    """The numbers of heads that tensor parallelism must divide."""
    found = [b.mixer.num_heads for b in model.blocks if b.mixer]
    return tuple(dict.fromkeys(h for h in found if h > 0))


def formats_of(scenario: Scenario, parts: Parts) -> tuple[Formats, tuple[str, ...]]:
    """The formats that were asked for; blanks follow the checkpoint and the device."""
    notes: list[str] = []
    weights = scenario.weights
    if weights is None:
        usual = parts.engine.usual_weights
        weights = usual or parts.model.weights_format
        notes.append(
            f"weights: {weights} ({f'what {parts.engine.name} loads' if usual else 'as the checkpoint holds them'})"
        )
    weights = held_format(weights, parts.model)
    if (roles := parts.model.kept_roles(weights)) != parts.model.kept_16bit_roles:
        notes.append(
            f"weights: {', '.join(sorted(roles))} in 16 bits (as the published checkpoint in {weights} holds them)"
        )
    if scenario.activations is None:
        activations = activations_for(weights, parts.device)
        notes.append(f"activations: {activations} (what {weights} weights run with on {parts.device.name})")
    else:
        activations = _possible(scenario, weights, parts, notes)
    usual_kv = cache_beside(weights, activations, parts.engine, parts.device, parts.model)
    kv = get_format(scenario.kv).name if scenario.kv else usual_kv
    if scenario.kv is None:
        notes.append(f"kv: {kv} (engines' default)")
    stated = activations if scenario.activations else ""
    return Formats(weights=weights, activations=activations, kv=kv, expert_activations=stated), tuple(notes)


def _possible(scenario: Scenario, weights: str, parts: Parts, notes: list[str]) -> str:
    """The activations that were asked for; 16 bits, and a note, where the device cannot multiply such ones."""
    activations, device = get_format(scenario.activations or "").name, parts.device
    if mixes_widths(scenario):
        check_mixed_widths(scenario, (weights,), parts.model, (device,))
        notes.append(MIXED_NOTE)
        return activations
    if weights.startswith("bipolar") and pair_of(weights, activations):
        return _one_bit(activations, parts, notes)
    if get_format(activations).element_bits >= 16 or can_multiply(activations, device):
        meets_wide = get_format(weights).weight_only or get_format(weights).element_bits >= 16
        if meets_wide and get_format(activations).element_bits < 16:
            notes.append(f"activations: {activations} is not used in products: {weights} weights meet 16 bits")
        return activations
    wide = wide_format(device)
    why = f"{device.name} cannot multiply it"
    if get_format(activations).weight_only:
        why = "engines have it for weights alone (orrery kernel gemm times products of both)"
    notes.append(f"activations: {wide}, not {activations}: {why}, weights are unpacked")
    return wide


def _one_bit(activations: str, parts: Parts, notes: list[str]) -> str:
    """Bipolar activations beside bipolar weights; refused without one-bit units."""
    if not has_units(parts.device):
        raise ScenarioError(
            f"activations: {activations} beside bipolar weights runs on one-bit units, and none of {parts.device.name} "
            "are known; leave activations out, and weights are unpacked beside 16 bits."
        )
    notes.append(
        "activations: dense products run bit by bit on one-bit units, fused (Ma et al., arXiv 2409.17870), experts "
        "unpacked; no engine was measured with them, and what is lost in quality must be measured"
    )
    return activations


def held_format(inputs: str, model: Model) -> str:
    """The format that a word for weights means: ``fp8`` of a checkpoint that is FP8 in blocks is its own."""
    found, own = get_format(inputs).name, get_format(model.weights_format).name
    return own if found == "fp8" and own.startswith("fp8_") else found


def cache_beside(weights: str, activations: str, engine: Engine, device: Device, model: Model) -> str:
    """The cache's default format: the activations' own, or FP8 where the engine's narrow checkpoints bring it."""
    if engine.sparse_kv and _has_sparse_latents(model):
        return engine.sparse_kv
    if engine.kv_follows_weights and weights == model.weights_format and model.cache_format:
        return model.cache_format
    if get_format(activations).element_bits >= 16:
        return activations
    of = ("fp8",) if "fp8" in get_format(weights).rates else ()
    return "fp8" if engine.kv_follows_weights in (weights, *of) else wide_format(device)


def _has_sparse_latents(model: Model) -> bool:
    return any(isinstance(b.mixer, LatentAttention) and b.mixer.top_tokens for b in model.blocks)


def deploy(scenario: Scenario, parts: Parts, layout: Layout, formats: Formats) -> Deployment:
    """The deployment of a layout and formats, with the scenario's limits."""
    return Deployment(
        model=parts.model,
        cluster=Cluster(
            device=parts.device, num_devices=layout.num_devices, devices_per_node=parts.device.devices_per_node
        ),
        layout=layout,
        formats=formats,
        engine=parts.engine,
        backends=backends_of(scenario),
        mode=mode_of(scenario),
        expert_loads=expert_loads(scenario.expert_loads, parts.model) if scenario.expert_loads else None,
        max_num_seqs=scenario.max_num_seqs or 0,
        max_num_batched_tokens=scenario.max_num_batched_tokens or 0,
        max_model_tokens=scenario.max_model_len or 0,
        scheduler_recv_interval=recv_interval_of(scenario, parts.engine),
        dispatcher=get_dispatcher(scenario.all2all_backend) if scenario.all2all_backend else "",
        num_redundant_experts=redundant_experts_of(scenario, parts.model, layout),
        memory_utilization_frac=scenario.gpu_memory_utilization or 0.0,
        draft_head=draft_head_of(scenario) if scenario.asks("draft", "acceptance_by_position") else None,
        images=images_of(scenario, parts.model) if scenario.image_count else None,
        overlap=scenario.overlap or "",
        overlap_knobs=overlap_knobs(scenario) if scenario.overlap else (),
        host_experts=host_experts_of(scenario, parts.model, layout) if scenario.asks(*HOST_EXPERTS) else None,
        weight_offload=weight_offload_of(scenario, parts.device) if scenario.asks(*WEIGHT_OFFLOAD) else None,
        online_rotation=online_rotation_of(scenario, (formats.weights,)) if scenario.online_rotation else None,
        sparsity=sparsity_of(scenario, parts.model, [parts.device]) if scenario.sparsity else None,
        wide_frac=wide_frac_of(scenario, (formats.weights,), parts.model) if scenario.wide_frac else 0.0,
        wide_format=wide_format_of(scenario, (formats.weights,)) if scenario.wide_format else WIDE,
        expert_placement=placement_of(scenario, parts.model),
        expert_routes=expert_routes(scenario.expert_loads, parts.model) if scenario.expert_loads else None,
        compression=compression_of(scenario, parts.model) if scenario.asks(*KEPT_CACHE) else NOTHING,
    )


def placement_of(scenario: Scenario, model: Model) -> str:
    """Where experts lie by their routes; blank where nothing else than the order is asked for."""
    method = scenario.expert_placement or IN_ORDER
    if method not in (IN_ORDER, REDUNDANCY, *BY_ROUTES):
        raise ScenarioError(
            f"expert_placement: got {method!r}; serving takes {', '.join((IN_ORDER, REDUNDANCY, *BY_ROUTES))}."
        )
    if method != IN_ORDER and not any(b.experts for b in model.blocks):
        raise ScenarioError(f"expert_placement: {model.name} has no experts; leave expert_placement out.")
    if method in BY_ROUTES and scenario.num_redundant_experts:
        raise ScenarioError(f"num_redundant_experts and expert_placement = {method} exclude each other; keep one.")
    return method if method in BY_ROUTES else ""


def redundant_experts_of(scenario: Scenario, model: Model, layout: Layout) -> int:
    """Copies of popular experts; refused where the ranks cannot hold so many."""
    count = scenario.num_redundant_experts or 0
    if scenario.expert_placement == REDUNDANCY and not count and layout.ep > 1:
        count = layout.ep  # one a rank
    if count and (reason := why_not(model, layout, count)):
        raise ScenarioError(f"num_redundant_experts: got {count}: {reason}.")
    return count


def recv_interval_of(scenario: Scenario, engine: Engine) -> int:
    """Decode steps between two looks for new requests; 0 = the engine's default. Only some engines can be told."""
    inputs = scenario.scheduler_recv_interval or 0
    if inputs > 1 and not engine.num_steps_per_recv:
        raise ScenarioError(
            f"scheduler_recv_interval: got {inputs}, but {engine.name} looks for new requests at every step; leave it "
            'out, or write engine = "sglang".'
        )
    return inputs


def backends_of(scenario: Scenario) -> Backends:
    """The kernels that a scenario asks for by name."""
    words: dict[Kind, str] = {kind: word for kind in KINDS if (word := getattr(scenario, f"{kind}_backend"))}
    return backends_called(words) if words else Backends()


def backend_notes(deployment: Deployment) -> tuple[str, ...]:
    """Which kernels run the experts, how tokens reach those of other ranks, and whose rule says so."""
    found = chosen(deployment).get("moe", ())
    notes = [f"moe_backend: {c.backend} ({c.fact.at})" for c in found if c.fact]
    if deployment.backends.attention:
        notes += attention_notes(deployment)
    if deployment.backends.gemm:
        notes += product_notes(deployment)
    if deployment.dispatcher or has_exchange(deployment):
        notes.append(dispatcher_note(deployment))
    if deployment.num_redundant_experts:
        notes.append(redundant_note(deployment))
    if deployment.expert_placement:
        notes.append(placed_note(deployment))
    if deployment.host_experts:
        notes.append(host_experts_note(deployment))
    if deployment.weight_offload:
        notes.append(weight_offload_note(deployment))
    if deployment.sparsity:
        notes += sparsity_notes(deployment.sparsity)
    return tuple(note for note in notes if note)


def mode_of(scenario: Scenario) -> Mode:
    """The kind of traffic that a deployment is set up for; a static batch is nobody's service."""
    if scenario.batch is not None:
        return "static"
    return "closed" if scenario.concurrency is not None or scenario.users is not None else "open"


def workload_of(scenario: Scenario) -> tuple[Workload, tuple[str, ...]]:
    """The traffic of an estimate: a static batch, a closed loop, or arrivals at a rate or as a trace has them."""
    for name in ("input_tokens", "output_tokens") if scenario.trace is None else ():
        if getattr(scenario, name) is None:
            raise ScenarioError(f"{name}: is missing; write the mean length, such as {name} = 1024.")
    traffic, notes = traffic_of(scenario)
    mode: Mode = mode_of(scenario)
    if mode == "open" and not traffic.request_rate_per_s:
        raise ScenarioError("batch, concurrency, users and rate: all missing; write one, such as concurrency = 32.")
    return Workload(
        mode=mode,
        input_tokens=traffic.input_tokens,
        output_tokens=traffic.output_tokens,
        input_tokens_std=traffic.input_tokens_std,
        output_tokens_std=traffic.output_tokens_std,
        batch_size=scenario.batch or 0,
        concurrency=scenario.concurrency or scenario.users or 0,
        pool=pool_of(scenario) if scenario.disaggregation_mode else "both",
        request_rate_per_s=traffic.request_rate_per_s if mode == "open" else 0.0,
    ), notes


def _describe(degrees: dict[str, int]) -> str:
    return " x ".join(f"{k} {v}" for k, v in degrees.items()) or "tp 1"
