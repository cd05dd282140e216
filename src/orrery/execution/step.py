"""One engine step: some prompts to prefill and some sequences to decode, through every layer of a cut model.

The device's time is the sum of its kernels and collectives, one after the other, plus the engine's gap per layer;
shared experts may run beside routed ones.
Sizes are arrays, so one call answers many batches at once; the parts are kept, so the answer can be unfolded.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from orrery import kernels, network
from orrery.execution.adapters import adapter_parts
from orrery.execution.batch import Batch, Floats, Part, part, slower
from orrery.execution.choice import Choice, choices, kernels_for, stored_experts
from orrery.execution.eager_layers import operators
from orrery.execution.experts.beside import beside
from orrery.execution.experts.dispatch import exchange_parts
from orrery.execution.experts.offloaded import GRID, Machine, Played, played
from orrery.execution.experts.placed import crowded, popularity_of
from orrery.execution.formats import SIXTEEN_BIT_BYTES, as_multiplied_by, bytes_per_element, wide_bytes
from orrery.execution.host_experts import kept_frac
from orrery.execution.layout import Deployment
from orrery.execution.mixing import mixer_parts
from orrery.execution.online_rotation import rotation_parts
from orrery.execution.shard import ExpertsShard, LinearShard, Shard, has_exchange, shard
from orrery.execution.tensor_passes import ADDED_BYTES, Work, tensor_passes
from orrery.execution.vision import vision_parts
from orrery.execution.weight_offload import fetches_s
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.ops import Elementwise, Gemm, MoE, Popularity, Timing
from orrery.kernels.resolve import HELD_BACK, held_back_ratio
from orrery.models.model import Model

EXPERT_LOADS = Popularity(exponent=0.75)
"""Default routing law of tokens, from published counts of how often each expert of a layer is chosen. An inequality
(Gini's coefficient) of 0.27 to 0.56 over layers and corpora of OLMoE-1B-7B (64 experts) and of 0.29 to 0.41 of
Granite-3.0-1B (32) is an exponent of 0.5 to 0.95 and of 0.55 to 0.8 (MakazhanAlpamys/Soup#992); the busiest expert of
DeepSeek-V4-Flash's first six layers has 20 to 67 times the median's tokens, an exponent of 0.6 to 0.9 for 256 experts
(Infatoshi/DeepSeek-V4-Flash-INT2-G64, quant_stats.json). One kind of text alone concentrates more.
"""


NORM_SUM_BYTES = 8.0
"""Bytes that ranks add up for a norm over all heads: for every token the sums of squares of its queries and of its
keys, in FP32, as SGLang's and vLLM's models of MiniMax do in one all-reduce (minimax_m2.py, MiniMaxM2RMSNormTP). OLMo
2, whose queries and keys engines gather whole, takes at least as long."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """A step's time on the device, per entry of the batch."""

    parts: tuple[Part, ...]
    time_s: Floats  # one pass through all pipeline stages
    stage_s: Floats  # the slowest stage: how often a pipeline can take a new batch


def step(deployment: Deployment, batch: Batch) -> Step:
    """Cost every entry of ``batch``."""
    cut, engine = shard(deployment), deployment.engine
    parts = tuple(_parts(deployment, cut, batch))
    if cut.experts:
        parts = tuple(beside(deployment, cut, batch, parts))
    if engine.memory_ratio != 1.0 or engine.compute_ratio != 1.0:
        parts = tuple(slower(p, engine) for p in parts)
    time_s = np.sum([p.time_s for p in parts], axis=0)
    if deployment.weight_offload:
        late_s = np.where(batch.num_tokens > 0, np.maximum(0.0, fetches_s(deployment) - time_s), 0.0)
        name = f"weights from {deployment.weight_offload.where}"
        parts = (*parts, Part(name=name, group="network", time_s=late_s, op="fetch"))
        time_s = time_s + late_s
    pp = deployment.layout.pp
    return Step(
        parts=parts,
        time_s=time_s,
        stage_s=time_s * (cut.stage_share if pp > 1 else 1.0),
    )


def _parts(deployment: Deployment, cut: Shard, batch: Batch) -> Iterator[Part]:
    own = crowded(deployment, batch) if deployment.expert_placement else batch
    own_largest = own.largest()
    largest = own_largest if own is batch else batch.largest()
    yield from _linear_parts(deployment, cut, own, own_largest)
    if deployment.adapters:
        yield from adapter_parts(deployment, deployment.adapters, own)
    if deployment.online_rotation:
        yield from rotation_parts(deployment, deployment.online_rotation, cut, own)
    if deployment.images:
        yield from vision_parts(deployment, deployment.images, batch)
    yield from mixer_parts(deployment, cut.mixers, own, own_largest)
    for experts in cut.experts:
        yield _expert_part(deployment, experts, batch, largest)
    yield from _elementwise_parts(deployment, cut, own)
    yield from _connection_parts(deployment, cut, own)
    yield from _network_parts(deployment, cut, batch)
    gap = np.where(batch.num_tokens > 0, cut.num_layers * deployment.engine.per_layer_s, 0.0)
    yield Part(name="launch gaps", group="gaps", time_s=gap, op="gap")


def _linear_parts(deployment: Deployment, cut: Shard, batch: Batch, largest: Mapping[str, float]) -> Iterator[Part]:
    """Linear layers, stacked by format so that one call answers for all of them."""
    groups: dict[tuple[str, float, float, float], list[LinearShard]] = {}
    for linear in cut.linears:
        key = (linear.format, linear.kept_frac, linear.index_bits, linear.wide_frac)
        groups.setdefault(key, []).append(linear)
    device = _multiplying(deployment)
    choice = choices(deployment, "gemm", deployment.formats.weights)[-1]
    own = kernels_for(deployment, "gemm", "gemm", choice.backend)
    tokens, rows = batch.num_tokens, batch.num_rows
    for (format, share, index_bits, wide_frac), members in groups.items():
        engine = choice.tuned_by if choice.tuned_by and format == deployment.formats.weights else own
        m = np.stack([rows if x.is_head else tokens for x in members])
        n, k, g = (np.array([[getattr(x, a)] for x in members]) for a in ("n", "k", "groups"))
        op = Gemm(
            m=m,
            n=n,
            k=k,
            batch=g,
            format=format,
            quantises_input=False,
            kept_frac=share,
            index_bits=index_bits,
            wide_frac=wide_frac,
        )
        unit = as_multiplied_by(choice.backend, format, device)
        timing, calibration = kernels.predict_with_constants(op, unit, engine)
        for i, x in enumerate(members):
            row = Timing(
                time_s=timing.time_s[i],
                compute_s=timing.compute_s[i],
                memory_s=timing.memory_s[i],
                overhead_s=timing.overhead_s[i],
                flops=timing.flops[i],
                bytes=timing.bytes[i],
            )
            sizes = {"m": largest["rows" if x.is_head else "tokens"], "n": float(x.n), "k": float(x.k)}
            yield part(x.name, x.block or "head", row, x.count, "gemm", format, calibration, sizes)


def _multiplying(deployment: Deployment) -> Device:
    """The device at the rate of its products: where they are summed in 16 bits, cards whose sums in 32 bits are held
    back run at the full rate of their units."""
    device = deployment.cluster.device
    return _unhindered(device) if deployment.engine.sums_in_16_bits else device


@lru_cache(maxsize=64)
def _unhindered(device: Device) -> Device:
    ratio = held_back_ratio(device, "fp16")
    rates = {f: r / ratio if f == "fp16" else r for f, r in device.dense_flops_per_s.items()}
    return device if ratio > HELD_BACK else replace(device, dense_flops_per_s=rates)


def _expert_part(deployment: Deployment, x: ExpertsShard, batch: Batch, largest: Mapping[str, float]) -> Part:
    ranks = deployment.layout.dp if has_exchange(deployment) else 1
    e = x.experts
    op = MoE(
        tokens=batch.num_tokens * ranks,
        hidden_size=e.hidden_size,
        ffn_size=e.ffn_size,
        num_experts=e.num_experts,
        experts_per_token=e.experts_per_token,
        format=x.format,
        tp=x.tp,
        ep=x.ep,
        is_gated=e.is_gated,
        popularity=popularity_of(deployment) or EXPERT_LOADS,
        num_redundant_experts=deployment.num_redundant_experts,
    )
    sizes = {
        "tokens": largest["tokens"] * ranks,
        "hidden_size": e.hidden_size,
        "ffn_size": e.ffn_size,
        "num_experts": e.num_experts,
        "experts_per_token": e.experts_per_token,
        "tp": x.tp,
        "ep": x.ep,
    }
    timing, calibration = _by_tokens(deployment, x.backends, op)
    found = part("experts", x.block, timing, x.count, "moe", x.format, calibration, sizes)
    if deployment.host_experts is None or kept_frac(deployment.host_experts, e.num_experts, x.count) >= 1.0:
        return found
    ratio = np.interp(np.log2(np.maximum(batch.num_tokens, 1)), np.log2(GRID), from_host(deployment, x).shown_ratio)
    return replace(found, time_s=found.time_s * ratio)


@lru_cache(maxsize=256)
def from_host(deployment: Deployment, x: ExpertsShard) -> Played:
    """Time of the layers of experts that lie on the host, by tokens in a step."""
    rule, e, device = deployment.host_experts, x.experts, deployment.cluster.device
    assert rule is not None
    sharing = x.tp * deployment.layout.dp  # devices of one host, which has its rates once
    rule = replace(
        rule,
        host_flops_per_s=rule.host_flops_per_s / sharing,
        host_memory_bytes_per_s=rule.host_memory_bytes_per_s / sharing,
    )
    bare = replace(deployment, host_experts=None)
    none = np.zeros(len(GRID), np.int64)
    batch = Batch(
        prompt_sequences=none,
        prompt_tokens=none,
        prompt_context_tokens=none,
        decode_sequences=np.array(GRID),
        decode_context_tokens=none + 1,
    )
    kernel_s = _expert_part(bare, x, batch, batch.largest()).time_s / x.count
    cut = shard(deployment)
    dense_bytes = sum(y.count * y.weight_bytes for y in cut.linears if not y.is_head) / max(cut.num_layers, 1)
    machine = Machine(
        num_experts=e.num_experts,
        experts_per_token=e.experts_per_token,
        expert_bytes=e.num_parameters_each * bytes_per_element(stored_experts(deployment)) / x.tp,
        expert_parameters=e.num_parameters_each / x.tp,
        link_bytes_per_s=device.host.each_way_bytes_per_s,
        other_s=dense_bytes / device.memory_bandwidth_bytes_per_s,
    )
    loads, each_s = deployment.expert_loads or EXPERT_LOADS, tuple(kernel_s.tolist())
    if rule.cache != "layers":
        return played(rule, machine, loads, each_s)
    elsewhere = played(replace(rule, cache="static", cached_frac=0.0), machine, loads, each_s)
    return elsewhere.beside_whole(kept_frac(rule, e.num_experts, x.count))


def _by_tokens(deployment: Deployment, backends: tuple[Choice, ...], op: MoE) -> tuple[Timing, Calibration]:
    """The time of every entry by the back end that its number of tokens selects, and the last one's constants."""
    device = deployment.cluster.device
    last, *before = (kernels_for(deployment, "moe", "moe", c.backend) for c in reversed(backends))
    timing, calibration = kernels.predict_with_constants(op, device, last)
    for choice, few in zip(reversed(backends[:-1]), before, strict=True):
        timing = kernels.predict(op, device, few).where(np.asarray(op.tokens) <= choice.most_tokens, timing)
    return timing, calibration


def _elementwise_parts(deployment: Deployment, cut: Shard, batch: Batch) -> Iterator[Part]:
    """Norms with their residual additions, activations, sampling. Their launches are the engine's gap per layer."""
    activations = deployment.formats.activations
    wide = activations if wide_bytes(activations) > SIXTEEN_BIT_BYTES else "bf16"
    between = _between(deployment, cut, batch)
    sampling = ("sampling", "sample", batch.num_rows, float(deployment.model.vocab_size), 1.0)
    for name, kind, rows, elements, count in (*between, sampling):
        if elements and count:
            op = Elementwise(kind=kind, tokens=rows, width=round(elements / count), format=wide)
            device, engine = deployment.cluster.device, deployment.engine.kernels
            t, calibration = kernels.predict_with_constants(op, device, engine)
            yield Part(
                name=name,
                group="elementwise",
                time_s=(t.time_s - t.overhead_s) * count,
                op="elementwise",
                format=wide,
                once=t,
                count=count,
                is_launched=False,
                calibration=calibration,
            )


def _between(deployment: Deployment, cut: Shard, batch: Batch) -> Iterator[Work]:
    """Element-wise work between products and attention, as the engine does it, and what few families have besides."""
    if deployment.engine.runs_modules:
        yield from _passes(deployment.model, batch)
    else:
        yield from tensor_passes(deployment, cut, batch) if deployment.engine.runs_tensors else _fused(cut, batch)
    for block in deployment.model.blocks:
        for own in block.passes:
            yield own.name, own.kind, batch.num_tokens, float(block.count * own.elements), float(block.count)


def _fused(cut: Shard, batch: Batch) -> Iterator[Work]:
    """As engines fuse it."""
    yield "norms", "norm", batch.num_tokens, cut.norm_elements, cut.num_norms
    yield "activations", "gated_activation", batch.num_tokens, cut.activation_elements, cut.num_activations


def _passes(model: Model, batch: Batch) -> Iterator[Work]:
    """As modules run it, operator by operator: what they move as so many additions."""
    for block in model.blocks:
        found = operators(block, model.hidden_size)
        yield "operators", "add", batch.num_tokens, block.count * found.token_bytes / ADDED_BYTES, block.count
        alone = batch.decode_sequences * (batch.prompt_sequences == 0)
        yield "weights copied", "add", alone, block.count * found.decoded_token_bytes / ADDED_BYTES, block.count
        window = getattr(block.mixer, "window_tokens", 0) or model.max_context_tokens
        attended = batch.decode_sequences * np.minimum(batch.decode_context_tokens, window)
        yield "cache rewritten", "add", attended, block.count * found.cached_token_bytes / ADDED_BYTES, block.count


def _connection_parts(deployment: Deployment, cut: Shard, batch: Batch) -> Iterator[Part]:
    """Hyper-connections: streams to a layer's input, its output to streams; whole on every device. Their shortest time
    is their own (twenty rounds of normalising a small matrix), not a launch."""
    device, engine = deployment.cluster.device, deployment.engine.kernels
    for name, kind in (
        (("streams to input", "mhc_pre"), ("output to streams", "mhc_post")) if cut.num_connections else ()
    ):
        op = Elementwise(kind=kind, tokens=batch.num_tokens, width=cut.connection_width)
        timing, calibration = kernels.predict_with_constants(op, device, engine)
        yield part(name, "elementwise", timing, cut.num_connections, "elementwise", "bf16", calibration)


def _network_parts(deployment: Deployment, cut: Shard, batch: Batch) -> Iterator[Part]:
    layout, model = deployment.layout, deployment.model
    wide = wide_bytes(deployment.formats.activations)
    token_bytes = wide * model.hidden_size
    tokens = batch.num_tokens
    if layout.tp > 1:
        yield _collective(deployment, "all_reduce", layout.tp, tokens * token_bytes, cut.num_reduces)
        if cut.num_norm_reduces:
            sums = tokens * NORM_SUM_BYTES
            yield _collective(deployment, "all_reduce", layout.tp, sums, cut.num_norm_reduces, name="sums of norms")
        logits = batch.num_rows * float(model.vocab_size) * wide
        yield _collective(deployment, "all_gather", layout.tp, logits, 1.0, name="gather logits")
    for experts in cut.experts if has_exchange(deployment) else ():
        yield from exchange_parts(deployment, experts, batch)
    if layout.pp > 1:
        yield _collective(
            deployment, "send_recv", 2, tokens * token_bytes / layout.tp, layout.pp - 1.0, name="hand over"
        )


def _collective(
    deployment: Deployment, kind: str, num_devices: int, message_bytes: Floats, count: float, name: str = ""
) -> Part:
    library = deployment.engine.kernels if kind == "all_reduce" else "nccl"
    work = network.Collective(
        kind=kind,
        num_devices=num_devices,
        message_bytes=message_bytes.astype(np.float64),
        devices_per_node=deployment.cluster.devices_per_node,
        library=library,
        has_peer_to_peer=True,
    )
    timing = network.predict(work, deployment.cluster.device)
    time_s = np.where(message_bytes > 0, timing.time_s * count, 0.0)
    return Part(name=name or kind.replace("_", "-"), group="network", time_s=time_s, op=kind)
