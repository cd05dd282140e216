"""One row of a serving table as a deployment and a workload; every default that a blank takes is written down."""

from dataclasses import replace
from functools import cache
from math import ceil, sqrt

from orrery.base.errors import ScenarioError
from orrery.base.sources import Fact
from orrery.catalog.backends import backends_called
from orrery.catalog.datasets import std_ratios_of
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine, newest_release, version_at
from orrery.catalog.models import get_model
from orrery.catalog.releases import UNVERSIONED
from orrery.catalog.scripts import script_setting
from orrery.evidence.row import Row
from orrery.execution.draft_head import acceptances_of, usual_acceptances
from orrery.execution.engine import KINDS, Engine
from orrery.execution.experts.all_to_all import get_dispatcher
from orrery.execution.experts.redundant import why_not
from orrery.execution.formats import activations_for
from orrery.execution.layout import DRAFT_METHODS, Backends, Deployment, DraftHead, Formats, Layout
from orrery.hardware.cluster import Cluster
from orrery.hardware.device import Device
from orrery.models.model import Model
from orrery.numerics.registry import get_format
from orrery.scenario.drafting import DRAFT_TOKENS
from orrery.scenario.expert_loads import expert_loads
from orrery.scenario.resolve import DEFAULT_ENGINE, cache_beside, held_format
from orrery.serving.workload import REQUESTS_PER_SLOT, Mode, Workload

MODES: dict[str, Mode] = {"static": "static", "offline": "offline", "closed": "closed", "open": "open"}

POOLS = ("prefill_workers", "decode_workers")
"""Columns that, when filled, say that prompts and answers had machines of their own; see ``serving_pools``."""

POOL_SIZES = ("prefill_batch_size", "decode_batch_size")
"""Columns with the sequences of each attention rank of such a machine."""

NARROWEST_SLICE = 128
"""Columns of the narrowest part of an expert: a tile of the kernels, and the block that FP8's weights share a scale
over; engines refuse to load narrower ones."""

ATTENTION_DP = "attention dp"
"""Note for experts spread over ranks that each attend to their own sequences."""

WITHOUT_CACHE = "no_kv_cache"
"""The technique of a static run that computes its whole context again for every token."""

PLAIN_TECHNIQUES = frozenset({"", "none", WITHOUT_CACHE})


def has_pools(row: Row) -> bool:
    """Whether prompts and answers had machines of their own."""
    return any(row.word(column) for column in POOLS)


def read_row(row: Row) -> tuple[Deployment, Workload]:
    """The deployment and its traffic. Raises an OrreryError whose text is the reason to decline."""
    if has_pools(row):
        raise ScenarioError("prompts and answers have workers of their own: no single deployment describes them")
    if (technique := row.word("technique").casefold()) not in PLAIN_TECHNIQUES:
        raise ScenarioError(f"technique {technique} needs facts that no column of the table holds")
    for column in ("model", "device"):
        if not row.word(column):
            raise ScenarioError(f"{column} is blank")
    workload = _workload(row)
    device = get_device(row.word("device"))
    engine_name = engine_of(row)
    version = version_of(row, engine_name)
    engine = get_engine(engine_name, version, device)
    workload = replace(workload, num_distinct_prompts=_distinct_prompts(row, engine_name, version, device, workload))
    model = get_model(row.word("model"))
    layout = _layout(row, engine, device)
    layout = _with_experts(row, layout, model)
    stored = engine.usual_weights or model.weights_format
    weights = held_format(row.word("weights_format") or row.default("weights_format", stored), model)
    usual = activations_for(weights, device)
    activations = get_format(row.word("activations_format") or row.default("activations_format", usual)).name
    stated = activations if row.word("activations_format") else ""
    kv_default = cache_beside(weights, activations, engine, device, model)
    kv = get_format(row.word("kv_format") or row.default("kv_format", kv_default)).name
    share = _memory_share(row, engine_name, version, device, workload)
    budget = row.count("max_num_batched_tokens") or row.count("prompt_chunk_tokens")
    key = (
        row.word("model"),
        row.word("device"),
        engine_name,
        version,
        layout,
        Formats(weights=weights, activations=activations, kv=kv, expert_activations=stated),
        _sequences(row, engine, layout),
        budget or _budget(row, engine, version, device, layout, workload),
        share,
        _backends(row),
        workload.mode,
        _draft_head(row),
        row.word("expert_loads"),
        get_dispatcher(row.word("all2all_backend")),
        row.count("num_redundant_experts"),
        _recv_interval(row, engine, version, device, layout, workload),
    )
    return _deployment(*key), workload


@cache
def _deployment(
    model: str,
    device_name: str,
    engine_name: str,
    version: str,
    layout: Layout,
    formats: Formats,
    seqs: int,
    tokens: int,
    share: float,
    backends: Backends,
    mode: str,
    draft_head: DraftHead | None,
    loads: str,
    dispatcher: str,
    redundant: int,
    recv_interval: int,
) -> Deployment:
    """One object for all rows that describe the same deployment, so that what is known of it is worked out once."""
    device = get_device(device_name)
    if reason := why_not(get_model(model), layout, redundant):
        raise ScenarioError(f"num_redundant_experts is {redundant}: {reason}")
    return Deployment(
        model=get_model(model),
        dispatcher=dispatcher,
        num_redundant_experts=redundant,
        cluster=Cluster(device=device, num_devices=layout.num_devices, devices_per_node=device.devices_per_node),
        layout=layout,
        formats=formats,
        engine=get_engine(engine_name, version, device),
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        memory_utilization_frac=share,
        backends=backends,
        mode=mode,
        draft_head=draft_head,
        expert_loads=expert_loads(loads, get_model(model)),
        scheduler_recv_interval=recv_interval,
    )


def engine_of(row: Row) -> str:
    """The engine's name; the usual one where the cell is blank."""
    return row.word("engine") or row.default("engine", DEFAULT_ENGINE)


def _backends(row: Row) -> Backends:
    """The kernels that a row says it ran; blanks are the engine's choice."""
    return backends_called({kind: row.word(f"{kind}_backend") for kind in KINDS})


def _draft_head(row: Row) -> DraftHead | None:
    """The drafting head that ``draft`` names, with its guesses a step behind a colon: mtp, mtp:2, eagle3:3."""
    method, _, count = row.word("draft").casefold().partition(":")
    if method in ("", "none"):
        return None
    if method not in DRAFT_METHODS or (count and not count.isdigit()):
        raise ScenarioError(f"draft {row.word('draft')!r} is not known; write {', '.join(DRAFT_METHODS)}, or mtp:2")
    tokens = int(count) if count else int(row.default("draft tokens", str(DRAFT_TOKENS[method])))
    if length := row.number("acceptance_length"):
        return DraftHead(method=method, acceptance_fracs=acceptances_of(length, tokens))
    fracs = usual_acceptances(method, tokens)
    row.default("acceptance by position", ", ".join(f"{a:.2g}" for a in fracs))
    return DraftHead(method=method, acceptance_fracs=fracs)


def version_of(row: Row, engine: str) -> str:
    """The engine's release. A blank is the release of the day of the run; of a server whose day is unknown the newest;
    of a static batch, which no server runs, unknown."""
    if stated := row.word("engine_version"):
        return stated
    get_engine(engine)
    if day := row.word("measured_date"):
        return row.default("engine_version", version_at(engine, day))
    if row.word("mode") == "static":
        return row.default("engine_version", UNVERSIONED)
    row.default("engine_version", f"the newest known, {newest}" if (newest := newest_release(engine)) else "the newest")
    return ""


def _layout(row: Row, engine: Engine, device: Device) -> Layout:
    """The stated degrees; what they leave of the devices becomes tensor parallelism, or replicas if that is stated."""
    tp, pp, dp, ep = (row.count(c) for c in ("tp", "pp", "dp", "ep"))
    devices, cores = row.count("num_devices"), device.num_compute_units
    if devices and tp * max(pp, 1) * max(dp, 1) == devices * cores and tp % cores == 0 and cores > 1:
        tp //= cores
        row.default("tp", f"counts cores, {cores} to a device")
    if not devices:
        devices = max(tp, 1) * max(pp, 1) * max(dp, 1)
        if devices == 1:
            row.default("num_devices", "1")
    if not tp:
        rest = devices // (max(pp, 1) * max(dp, 1))
        if engine.splits_layers and not pp:
            tp, pp = 1, max(1, rest) if rest <= 1 else int(row.default("pp", str(rest)))
        else:
            tp = max(1, rest) if rest <= 1 else int(row.default("tp", str(rest)))
    pp = max(pp, 1)
    if not dp:
        dp = max(1, devices // (tp * pp))
        if dp > 1:
            row.default("dp", str(dp))
    etp = row.count("etp")
    if tp * pp == devices and dp > 1 and tp % dp == 0:
        if not (ep or etp):
            etp = int(row.default("etp", str(tp)))  # all ranks hold a part of every expert
        tp //= dp  # data-parallel attention inside the tensor-parallel ranks, as SGLang counts it
    if tp * pp * dp != devices:
        raise ScenarioError("num_devices is not tp x pp x dp")
    return Layout(tp=tp, pp=pp, dp=dp, ep=max(ep, 1), etp=etp)


def _sequences(row: Row, engine: Engine, layout: Layout) -> int:
    """The batch limit of each attention rank: what the engine's flag states, or a pool's own size, which is a rank's; 0
    where the row states none."""
    stated = row.count("max_num_seqs")
    is_of_server = engine.shares_max_num_seqs and not any(row.word(size) for size in POOL_SIZES)
    return max(1, stated // layout.dp) if stated and is_of_server else stated


def _budget(row: Row, engine: Engine, version: str, device: Device, layout: Layout, workload: Workload) -> int:
    """The step's token budget of a closed loop that does not state it; 0 = the engine's default.

    Some publishers' scripts size it to the traffic, one prompt beside an answer's token of every other request
    (NVIDIA's and InferenceMAX's set max_num_tokens to input + concurrency, and a little), because a larger one only
    makes running answers wait for several prompts at a time.
    """
    if workload.mode != "closed" or not engine.has_mixed_steps:
        return 0
    published = row.word("source")
    if _scripted("is_budget_of_traffic", engine.name, version, device, workload, published=published) is None:
        return 0
    sized = longest_tokens(workload) + ceil(workload.concurrency / layout.dp)
    if sized >= engine.max_num_batched_tokens:
        return 0
    row.default("max_num_batched_tokens", "the longest prompt + concurrency")
    return sized


def _recv_interval(row: Row, engine: Engine, version: str, device: Device, layout: Layout, workload: Workload) -> int:
    """Decode steps between two looks for new requests: as stated, or as public scripts of such runs set it; 0 = the
    engine's default."""
    if stated := row.count("scheduler_recv_interval"):
        if stated > 1 and not engine.num_steps_per_recv:
            raise ScenarioError(f"scheduler_recv_interval is {stated}, and {engine.name} has no such setting")
        return stated
    ranks = layout.dp if layout.shares_experts else 1
    published = row.word("source")
    found = _scripted(
        "scheduler_recv_interval", engine.name, version, device, workload, ranks=ranks, published=published
    )
    if found is None or found.value == engine.num_steps_per_recv:
        return 0
    row.default("scheduler_recv_interval", f"{found.value} ({found.at})")
    return int(found.value)


def _memory_share(row: Row, engine: str, version: str, device: Device, workload: Workload) -> float:
    """The share of memory that the engine may fill: as stated, or as scripts of such runs set it; 0 = its default."""
    if stated := row.number("gpu_memory_utilization_frac"):
        return stated
    found = _scripted("gpu_memory_utilization_frac", engine, version, device, workload, model=row.word("model"))
    return float(row.default("gpu_memory_utilization_frac", f"{found.value}")) if found is not None else 0.0


def _distinct_prompts(row: Row, engine: str, version: str, device: Device, workload: Workload) -> int:
    """Prompts that a load generator sends over and over: as stated, or as its publisher's scripts say; 0 = all new."""
    if stated := row.count("num_distinct_prompts"):
        return stated
    found = _scripted("num_distinct_prompts", engine, version, device, workload, published=row.word("source"))
    return int(row.default("num_distinct_prompts", f"{found.value}")) if found is not None else 0


def _scripted(
    setting: str,
    engine: str,
    version: str,
    device: Device,
    workload: Workload,
    *,
    ranks: int = 1,
    published: str = "",
    model: str = "",
) -> Fact | None:
    """Value of a setting in public scripts for such a run."""
    return script_setting(
        setting,
        engine=engine,
        version=version,
        mode=workload.mode,
        generation=device.generation,
        ranks=ranks,
        concurrency=workload.concurrency,
        published=published,
        model=model,
    )


def longest_tokens(workload: Workload) -> int:
    """The longest prompt where lengths are drawn evenly around their mean."""
    return ceil(workload.input_tokens + sqrt(3.0) * workload.input_tokens_std)


def _with_experts(row: Row, layout: Layout, model: Model) -> Layout:
    """The layout with experts placed, where the row leaves them open.

    Where the note says that attention ran data-parallel and the sizes are blank, all tensor-parallel ranks did. An
    expert that would be cut into slices narrower than a tile stays whole, and the ranks divide the experts instead.
    """
    widths = [b.experts.ffn_size for b in model.blocks if b.experts]
    if not widths:
        return replace(layout, etp=0)
    if layout.etp > 1 and min(widths) // layout.etp < NARROWEST_SLICE:
        row.default("ep", f"{layout.ep * layout.etp} (experts {min(widths)} wide are not cut into {layout.etp})")
        return replace(layout, ep=layout.ep * layout.etp, etp=1)
    if ATTENTION_DP not in row.word("note").casefold() or row.word("dp") or row.word("ep") or layout.tp == 1:
        return layout
    row.default("dp and ep", f"{layout.tp} (the note says data-parallel attention)")
    return Layout(tp=1, pp=layout.pp, dp=layout.tp, ep=layout.tp)


def _workload(row: Row) -> Workload:
    """The traffic that ``mode`` describes."""
    mode = MODES.get(row.word("mode"))
    if mode is None:
        word = row.word("mode")
        raise ScenarioError(f"unknown mode {word}" if word else "mode is blank")
    inputs, outputs = _lengths(row, mode)
    concurrency = round(row.needed("concurrency")) if mode == "closed" else 0
    inputs_std, outputs_std = _spreads(row, inputs, outputs)
    return Workload(
        mode=mode,
        input_tokens=inputs,
        output_tokens=outputs,
        input_tokens_std=inputs_std,
        output_tokens_std=outputs_std,
        batch_size=(row.count("batch_size") or int(row.default("batch_size", "1"))) if mode == "static" else 0,
        concurrency=concurrency,
        request_rate_per_s=row.needed("request_rate_per_s") if mode == "open" else 0.0,
        num_requests=_num_requests(row, mode, concurrency),
        keeps_cache=mode != "static" or row.word("technique").casefold() != WITHOUT_CACHE,
    )


def _lengths(row: Row, mode: Mode) -> tuple[float, float]:
    """Mean prompt and answer; a static run may leave one blank (a decode rate from a short prompt, a prompt alone)."""
    if mode != "static":
        return row.needed("input_tokens"), row.needed("output_tokens")
    inputs, outputs = row.number("input_tokens"), row.number("output_tokens")
    if not row.word("input_tokens"):
        inputs = float(row.default("input_tokens", "1"))
    if not row.word("output_tokens"):
        outputs = float(row.default("output_tokens", "1"))
    if inputs + outputs <= 0:
        raise ScenarioError("input_tokens and output_tokens are zero")
    return inputs, outputs


def _spreads(row: Row, inputs: float, outputs: float) -> tuple[float, float]:
    """Standard deviations of prompts and answers: as stated, or in the proportion of the data set they were drawn
    from."""
    stated = row.number("input_tokens_std"), row.number("output_tokens_std")
    prompts, answers = std_ratios_of(row.word("dataset"))
    if any(stated) or not answers:
        return stated
    row.default("input_tokens_std, output_tokens_std", f"{prompts:g} and {answers:g} of the means, as in the data set")
    return prompts * inputs, answers * outputs


def _num_requests(row: Row, mode: Mode, concurrency: int) -> int:
    """Requests of the run; a closed loop that does not say ran ten times its concurrency."""
    stated = row.count("num_requests")
    if mode == "closed" and not stated:
        row.default("num_requests", f"{REQUESTS_PER_SLOT} x concurrency")
        return REQUESTS_PER_SLOT * concurrency
    return stated
