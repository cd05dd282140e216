"""Images in a step: a vision tower encodes those of the prompts that a step computes, before their first layer.

Engines run the tower in the step that carries the prompt, all its images in one batch, with nothing beside it (vLLM's
gpu_model_runner calls its encoder before the model; SGLang's general_mm_embed_routine likewise). Weights are kept in 16
bits and cut like the model's own, by columns and rows with two all-reduces a layer (vLLM's default,
--mm-encoder-tp-mode weights). Images are spread over their prompts' tokens: a step that computes a part of a prompt
encodes that part of its images. What the host does (unpacking, resizing) is not in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from orrery import kernels, network
from orrery.execution.batch import Batch, Floats, Ints, Part, part
from orrery.execution.choice import choices, kernels_for
from orrery.execution.formats import SIXTEEN_BIT_BYTES, compute_format
from orrery.execution.layout import Deployment, Images
from orrery.kernels.ops import AttentionPrefill, Elementwise, Gemm, Timing
from orrery.models.vision import Tower, VisionProduct

GROUP = "vision tower"

REDUCES, NORMS = 2, 2
"""All-reduces and norms of a layer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Batch:
    """The images of each step: whole ones that run together, and what part of that time is theirs on average."""

    whole: Ints
    share: Floats


def vision_parts(deployment: Deployment, images: Images, batch: Batch) -> Iterator[Part]:
    """The tower's kernels and collectives in every step that has prompts."""
    tower = deployment.model.tower
    if tower is None or not batch.prompt_sequences.any():
        return
    many = np.asarray(batch.prompt_sequences * batch.prompt_tokens / images.prompt_tokens, np.float64)
    whole = np.maximum(1, np.rint(many)).astype(np.int64)
    now = _Batch(whole=whole, share=many / whole)
    yield from _products(deployment, tower, images, now)
    yield from _attention(deployment, tower, images, now)
    yield from _elementwise(deployment, tower, images, now)
    if deployment.layout.tp > 1:
        yield _reduces(deployment, tower, images, now)


def _scaled(timing: Timing, share: Floats) -> Timing:
    names = ("time_s", "compute_s", "memory_s", "overhead_s", "flops", "bytes")
    return replace(timing, **{name: getattr(timing, name) * share for name in names})


def _cut(product: VisionProduct, tp: int) -> tuple[int, int]:
    """(outputs, inputs) on one device."""
    outputs = ceil(product.outputs / tp) if product.shard == "column" else product.outputs
    return outputs, ceil(product.inputs / tp) if product.shard == "row" else product.inputs


def _products(deployment: Deployment, tower: Tower, images: Images, now: _Batch) -> Iterator[Part]:
    device, tp = deployment.cluster.device, deployment.layout.tp
    format = compute_format("bf16", "bf16", device)
    engine = kernels_for(deployment, "gemm", "gemm", choices(deployment, "gemm", format)[-1].backend)
    rows_each = np.array([[-(-images.patches // p.patches)] for p in tower.products], np.int64)
    sizes = [_cut(p, tp) for p in tower.products]
    m = now.whole[None, :] * rows_each
    n, k = (np.array([[size[i]] for size in sizes]) for i in (0, 1))
    op = Gemm(m=m, n=n, k=k, format=format)
    timing, calibration = kernels.predict(op, device, engine), kernels.calibration(op, device, engine)
    for i, product in enumerate(tower.products):
        row = Timing(
            time_s=timing.time_s[i],
            compute_s=timing.compute_s[i],
            memory_s=timing.memory_s[i],
            overhead_s=timing.overhead_s[i],
            flops=timing.flops[i],
            bytes=timing.bytes[i],
        )
        largest = {"m": float(m[i].max()), "n": float(sizes[i][0]), "k": float(sizes[i][1])}
        yield part(
            product.name, GROUP, _scaled(row, now.share), float(product.count), "gemm", format, calibration, largest
        )


def _attention(deployment: Deployment, tower: Tower, images: Images, now: _Batch) -> Iterator[Part]:
    whole_layers = tower.num_layers - tower.num_windowed_layers
    kinds = [("attention", images.sequences, images.patches // images.sequences, whole_layers)]
    if tower.num_windowed_layers:
        windows = -(-images.patches // tower.window_patches)
        kinds.append(("window attention", windows, tower.window_patches, tower.num_windowed_layers))
    for name, sequences, patches, layers in kinds:
        yield _attend(deployment, tower, name, now, sequences, patches, layers)


def _attend(
    deployment: Deployment, tower: Tower, name: str, now: _Batch, sequences: int, patches: int, layers: int
) -> Part:
    device, heads = deployment.cluster.device, ceil(tower.num_heads / deployment.layout.tp)
    format = compute_format("bf16", "bf16", device)
    tokens = np.full_like(now.whole, patches)
    op = AttentionPrefill(
        batch=now.whole * sequences,
        query_tokens=tokens,
        context_tokens=tokens,
        num_heads=heads,
        num_kv_heads=heads,
        head_size=tower.head_size,
        format=format,
        kv_format=format,
        is_causal=False,
    )
    engine = deployment.engine.kernels
    timing, calibration = kernels.predict(op, device, engine), kernels.calibration(op, device, engine)
    sizes = {
        "batch": float((now.whole * sequences).max()),
        "query_tokens": float(patches),
        "context_tokens": float(patches),
        "num_heads": float(heads),
        "head_size": float(tower.head_size),
    }
    once = _scaled(timing, now.share)
    return part(name, GROUP, once, float(layers), "attention_encoder", format, calibration, sizes)


def _elementwise(deployment: Deployment, tower: Tower, images: Images, now: _Batch) -> Iterator[Part]:
    """Norms with their residual additions, and activations, of which an ungated one moves two words of three."""
    device, engine, layers = deployment.cluster.device, deployment.engine.kernels, float(tower.num_layers)
    rows, ffn = now.whole * images.patches, ceil(tower.ffn_size / deployment.layout.tp)
    width = ffn if tower.is_gated else max(1, 2 * ffn // 3)
    for name, kind, elements, count in (
        ("norms", "norm", tower.hidden_size, NORMS * layers),
        ("activations", "gated_activation", width, layers),
    ):
        op = Elementwise(kind=kind, tokens=rows, width=elements)
        timing, calibration = kernels.predict(op, device, engine), kernels.calibration(op, device, engine)
        yield part(name, GROUP, _scaled(timing, now.share), count, "elementwise", "bf16", calibration)


def _reduces(deployment: Deployment, tower: Tower, images: Images, now: _Batch) -> Part:
    message = (now.whole * (images.patches * tower.hidden_size * SIXTEEN_BIT_BYTES)).astype(np.float64)
    work = network.Collective(
        kind="all_reduce",
        num_devices=deployment.layout.tp,
        message_bytes=message,
        devices_per_node=deployment.cluster.devices_per_node,
        library=deployment.engine.kernels,
        has_peer_to_peer=True,
    )
    timing = network.predict(work, deployment.cluster.device)
    time_s = timing.time_s * now.share * REDUCES * tower.num_layers
    return Part(name="vision all-reduce", group="network", time_s=time_s, op="all-reduce")
