"""Search space of plans: devices x layouts x formats x token budgets, each one a deployment.

tensor parallel    every divisor of the attention heads inside one fast domain
pipeline           powers of two, at most a stage a layer
experts            spread over all ranks of a replica or none; with them, data-parallel attention by powers of two
weights            as the checkpoint holds them; 16-bit ones also in the device's native 8-bit format
cache              16 bits, and FP8 where the device multiplies it
token budget       the engine's default, a quarter, half, and twice of it

Replicas are not part of the space: they repeat a layout until the traffic is served.
Formats of 4 bits change answers more; they are tried where the user names them or the checkpoint holds them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import gcd

from orrery.execution.draft_trees import uneven_heads
from orrery.execution.engine import Engine
from orrery.execution.experts.redundant import why_not
from orrery.execution.formats import activations_for, wide_format
from orrery.execution.kept_cache import NOTHING, Compression
from orrery.execution.layout import (
    Backends,
    Deployment,
    DraftHead,
    Formats,
    Images,
    Layout,
    OnlineRotation,
    WeightOffload,
)
from orrery.execution.routes import Routes
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device
from orrery.hardware.sparsity import Sparsity
from orrery.kernels.ops import Popularity
from orrery.models.model import Model
from orrery.numerics.registry import get_format
from orrery.planner.money import Tariff

BUDGET_FACTORS = (1.0, 0.25, 0.5, 2.0)
"""Token budgets around the engine's default: smaller ones smooth tokens, larger ones hasten prompts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Settings that the user has fixed; empty means: try."""

    tp: int = 0
    pp: int = 0
    dp: int = 0
    ep: int = 0
    cp: int = 1
    weights: tuple[str, ...] = ()
    activations: str = ""
    kv: tuple[str, ...] = ()
    max_num_seqs: int = 0
    max_num_batched_tokens: int = 0
    max_model_tokens: int = 0
    scheduler_recv_interval: int = 0
    memory_utilization_frac: float = 0.0
    backends: Backends = field(default_factory=Backends)
    mode: str = ""
    draft_heads: tuple[DraftHead, ...] = ()  # one of them is chosen for each layout; empty: nothing is drafted
    compression: Compression = NOTHING
    expert_loads: Popularity | None = None
    dispatcher: str = ""
    num_redundant_experts: int = 0
    images: Images | None = None
    cuts: str = ""  # "any": experts also cut over other numbers of devices than attention
    etp: int = 0
    overlap: str = ""
    overlap_knobs: tuple[tuple[str, float], ...] = ()
    expert_placement: str = ""
    expert_routes: Routes | None = None
    weight_offload: WeightOffload | None = None
    online_rotation: OnlineRotation | None = None
    wide_frac: float = 0.0
    sparsity: Sparsity | None = None
    wide_format: str = "bf16"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Option:
    """One kind of device that may be used: its engine's defaults there, and its price."""

    device: Device
    engine: Engine
    tariff: Tariff
    clock_frac: float  # of the full clock, at which ``device`` is described


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Space:
    """A model, the devices it may run on, and what is fixed."""

    model: Model
    options: Sequence[Option]
    max_devices: int
    fixed: Fixed = field(default_factory=Fixed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """One deployment to try, on one of the options."""

    option: Option
    deployment: Deployment


def candidates(space: Space) -> Iterator[Candidate]:
    """Every deployment of the space, smaller layouts first."""
    for option in space.options:
        budgets = _budgets(space.fixed, option.engine)
        kinds = list(formats(space.model, option.device, space.fixed))
        for layout in layouts(space.model, option.device, space.max_devices, space.fixed):
            cluster = Cluster(
                device=option.device, num_devices=layout.num_devices, devices_per_node=option.device.devices_per_node
            )
            for kind, budget, head in product(kinds, budgets, _drafting(space.fixed, layout)):
                found = _deployment(space, option, cluster, layout, kind, budget)
                yield Candidate(option=option, deployment=replace(found, draft_head=head))


def _deployment(
    space: Space, option: Option, cluster: Cluster, layout: Layout, kind: Formats, budget: int
) -> Deployment:
    fixed = space.fixed
    return Deployment(
        model=space.model,
        cluster=cluster,
        layout=layout,
        formats=kind,
        engine=option.engine,
        max_num_seqs=fixed.max_num_seqs,
        max_num_batched_tokens=budget,
        max_model_tokens=fixed.max_model_tokens,
        memory_utilization_frac=fixed.memory_utilization_frac,
        backends=fixed.backends,
        mode=fixed.mode,
        compression=fixed.compression,
        scheduler_recv_interval=fixed.scheduler_recv_interval,
        expert_loads=fixed.expert_loads,
        dispatcher=fixed.dispatcher,
        num_redundant_experts=fixed.num_redundant_experts,
        images=fixed.images,
        overlap=fixed.overlap,
        overlap_knobs=fixed.overlap_knobs,
        expert_placement=fixed.expert_placement,
        expert_routes=fixed.expert_routes,
        weight_offload=fixed.weight_offload,
        online_rotation=fixed.online_rotation,
        wide_frac=fixed.wide_frac,
        sparsity=fixed.sparsity,
        wide_format=fixed.wide_format,
    )


def _drafting(fixed: Fixed, layout: Layout) -> tuple[DraftHead | None, ...]:
    """Heads and trees that this layout can run; none where the user asks for none."""
    if not fixed.draft_heads:
        return (None,)
    return tuple(h for h in fixed.draft_heads if not (h.draft_model and uneven_heads(h.draft_model, layout.tp)))


def _budgets(fixed: Fixed, engine: Engine) -> tuple[int, ...]:
    if fixed.max_num_batched_tokens:
        return (fixed.max_num_batched_tokens,)
    return tuple(int(engine.max_num_batched_tokens * f) for f in BUDGET_FACTORS)


def layouts(model: Model, device: Device, max_devices: int, fixed: Fixed) -> Iterator[Layout]:
    """Layouts of at most ``max_devices``, fewest devices first."""
    experts = gcd(*(b.experts.num_experts for b in model.blocks if b.experts)) if _has_experts(model) else 0
    found: set[Layout] = set()
    for tp in (fixed.tp,) if fixed.tp else tensor_degrees(model, min(max_devices, device.devices_per_node)):
        for pp in (fixed.pp,) if fixed.pp else _powers(min(max_devices // tp, model.num_layers)):
            for dp, ep in _expert_degrees(tp, max_devices // (tp * pp), experts, fixed):
                found.add(Layout(tp=tp, pp=pp, dp=dp, ep=ep, cp=fixed.cp, etp=fixed.etp))
            if fixed.cuts and experts:
                found.update(_unequal(tp, pp, max_devices // (tp * pp), experts, fixed.cp))
    copies = fixed.num_redundant_experts
    fits = (x for x in found if x.num_devices <= max_devices and not why_not(model, x, copies))
    yield from sorted(fits, key=lambda x: (x.num_devices, x.pp, x.dp, x.ep, x.tp))


def _unequal(tp: int, pp: int, most: int, experts: int, cp: int) -> Iterator[Layout]:
    """Attention over tp devices, every expert over more or fewer of all tp x dp."""
    for dp in _powers(most):
        for ep in _powers(tp * dp):
            etp, rest = divmod(tp * dp, ep)
            if not rest and etp not in (1, tp) and experts % ep == 0:
                yield Layout(tp=tp, pp=pp, dp=dp, ep=ep, cp=cp, etp=etp)


def _has_experts(model: Model) -> bool:
    return any(b.experts for b in model.blocks)


def tensor_degrees(model: Model, most: int) -> tuple[int, ...]:
    """Degrees that divide every layer's heads."""
    heads = gcd(*(b.mixer.num_heads for b in model.blocks if b.mixer)) if any(b.mixer for b in model.blocks) else 1
    return tuple(t for t in range(1, most + 1) if (heads or 1) % t == 0) or (1,)


def _powers(most: int) -> tuple[int, ...]:
    return tuple(2**i for i in range(max(1, most).bit_length()) if 2**i <= most) or (1,)


def _expert_degrees(tp: int, most: int, experts: int, fixed: Fixed) -> Iterator[tuple[int, int]]:
    """(dp, ep): whole experts on every rank, or experts spread over all tp x dp ranks."""
    for dp in (fixed.dp,) if fixed.dp else _powers(most) if experts else (1,):
        for ep in (fixed.ep,) if fixed.ep else (1, tp * dp):
            if ep == 1 and dp > 1 and not fixed.dp:
                continue  # replicas by another name
            if ep == 1 or (experts and experts % ep == 0 and (tp * dp) % ep == 0):
                yield dp, ep


def formats(model: Model, device: Device, fixed: Fixed) -> Iterator[Formats]:
    """Combinations of storage formats worth trying on a device."""
    for weights in fixed.weights or default_weights(model, device):
        active = fixed.activations or activations_for(weights, device)
        for kv in fixed.kv or default_caches(model, device):
            yield Formats(
                weights=get_format(weights).name,
                activations=get_format(active).name,
                kv=get_format(kv).name,
                expert_activations=fixed.activations,
            )


def default_weights(model: Model, device: Device) -> tuple[str, ...]:
    """The checkpoint's format; 16-bit weights also in the 8-bit format that the device multiplies."""
    own = get_format(model.weights_format)
    if own.element_bits < 16 or model.experts_format:
        return (own.name,)
    native = next((f for f in ("fp8", "int8") if f in device.dense_flops_per_s), "")
    return (own.name, native) if native else (own.name,)


def default_caches(model: Model, device: Device) -> tuple[str, ...]:
    """16 bits, and FP8 where the device has it and the model keeps a cache that grows."""
    has_cache = any(b.mixer and b.mixer.cache_elements_per_token for b in model.blocks)
    own = model.weights_format if model.weights_format in device.dense_flops_per_s else ""
    wide = own if own in ("bf16", "fp16") else wide_format(device)
    return (wide, "fp8") if has_cache and "fp8" in device.dense_flops_per_s else (wide,)
