"""Time of a diffusion pipeline: prompts read once, latents denoised step by step, pixels decoded at the end.

    step   = max(device, host)
    device = products + attention + passes over activations + exchanges
    host   = operators x time of one + exchanges x time of one

An eager framework launches one kernel an operator, so a device that is quicker than its host waits for it. Sequence
parallelism deals tokens out over ulysses x ring devices. Ulysses (Jacobs et al. 2023, arXiv 2309.14509) exchanges
tokens for heads before and after each attention; a ring (Liu et al. 2023, arXiv 2310.01889) passes keys and values on
beside the attention to those that are there, and merges as many partial results. Text is not dealt out, and the prompt
and the pixels are every device's own work.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from orrery import kernels, network
from orrery.hardware.device import Device
from orrery.kernels.energy.steps import peak_of
from orrery.kernels.ops import Gemm
from orrery.models.diffusion import Block, DiffusionModel, attentions

Amount = Any  # a float, or an array of floats
FORMAT, WORD_BYTES = "bf16", 2.0

TILE_ROWS, HEAD_GRANULE = 128, 32
"""Queries that a group of threads of the attention kernel takes, and what heads are padded to (FlashAttention-2)."""

STREAM_PASSES, OPERATORS = 22.0, 24.0
"""Passes and operators of a block on one stream: two norms that are scaled and shifted (read, written, twice again: 6
each), two gates with their additions (5 each). Operators: 8 of the norms, 4 of the gates, 6 products, 6 others."""

STEP_OPERATORS = 60.0
"""Operators of a pass besides its blocks: embeddings, the last product, guidance, and the scheduler's step."""

FFN_PASSES = 2.0
"""Passes of its activation, which is as wide as the feed-forward part."""

QK_NORM_PASSES, QK_NORM_OPERATORS = 24.0, 12.0
"""Passes and operators on queries and keys: to 32 bits, squared, averaged, divided, back, weighted."""

ROPE_PASSES, ROPE_OPERATORS = 40.0, 16.0
"""Passes and operators on queries and keys: halves turned, to 32 bits, two products, their sum, back."""

FP32_NORM_PASSES, FP32_NORM_OPERATORS = 36.0, 6.0
"""More where three norms run in 32 bits: to 32 bits and back, and twice the bytes between."""

JOIN_PASSES, JOIN_OPERATORS = 10.0, 6.0
"""Passes and operators of a joint block: queries, keys and values of both streams put together, results taken apart."""

CROSS_PASSES, CROSS_OPERATORS = 6.0, 8.0
"""Passes and operators of attention to the text: its residual addition and copies."""

EXCHANGES, EXCHANGE_PASSES = 4, 16.0
"""All-to-alls of an attention under Ulysses (queries, keys, values, results) and copies before and after each."""

MERGE_PASSES = 14.0
"""Passes over the result, in 32 bits, to merge one partial attention of a ring into it."""

LINEAR_PASSES, LINEAR_OPERATORS = 36.0, 20.0
"""Passes and operators of a block with linear attention, as diffusers has it: queries and keys rectified (4), three
tensors to 32 bits (9), a column of ones (4), two products in 32 bits (8), the quotient and back (7), and to rows of
pixels and back around its feed-forward part (4)."""

MIXING_PASSES = 19.0
"""Passes of its feed-forward part, which mixes neighbours, in its width: both halves activated (4) and convolved (4),
the gate (5), and layouts changed around three convolutions (6)."""

DECODER_PASSES, CONVOLUTION_OPERATORS = 9.0, 4.0
"""Passes over what stands between two layers of a decoder or U-Net, and its operators: a norm, an activation, a
convolution, an addition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One batch of pictures or videos, on so many devices."""

    model: DiffusionModel
    device: Device
    height: int
    width: int
    num_frames: int
    num_inference_steps: int
    batch: int
    ulysses: int = 1
    ring: int = 1
    guides: bool = True  # whether the pipeline's guidance is on
    patches: int = 1  # devices that each denoise some of the rows
    patch_context: str = "whole"
    patch_read_frac: float = 0.3  # of a neighbour, where attention reads no more of the picture
    has_graphs: bool = False  # passes are replayed as one graph, and the host launches none of their operators
    patch_warmup_steps: int = 4  # that wait for what the others send, beside the first one

    @property
    def num_devices(self) -> int:
        """Devices that one batch runs on."""
        return self.ulysses * self.ring * self.patches

    def own_tokens(self, shrink: int = 1) -> int:
        """Tokens of one device in blocks that see one position in ``shrink`` a side: even shares, or whole rows."""
        model = self.model
        if self.patches == 1:
            return ceil(model.num_tokens(self.height, self.width, self.num_frames) / shrink**2 / self.num_devices)
        rows, columns, frames = model.token_grid(self.height, self.width, self.num_frames)
        return ceil(rows / shrink / self.patches) * ceil(columns / shrink) * frames

    @property
    def guidance(self) -> str:
        """Execution of the unguided half: none, in the same batch, or one after the other."""
        return self.model.guidance if self.guides else "none"

    @property
    def num_sequences(self) -> int:
        """Sequences of one pass."""
        return self.batch * (2 if self.guidance == "batched" else 1)

    @property
    def num_passes(self) -> int:
        """Passes through the transformer in all steps."""
        return self.num_inference_steps * (2 if self.guidance == "sequential" else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Work of one device in one pass, before any constant: seconds are those of the kernels' and network's floor.

    Every field is a number, or an array with an entry for each of many passes.
    """

    products_s: Amount = 0.0
    product_flops: Amount = 0.0
    score_flops: Amount = 0.0  # of attention, padded to whole heads and waves
    score_pairs: Amount = 0.0  # exponentials
    plain_flops: Amount = 0.0  # of attention, as its formula counts
    stream_bytes: Amount = 0.0
    num_operators: Amount = 0.0
    exchange_s: Amount = 0.0
    num_exchanges: Amount = 0.0
    ring_s: Amount = 0.0  # of all passing on
    num_hops: Amount = 0.0
    convolution_flops: Amount = 0.0
    beside_s: Amount = 0.0  # exchanges beside all of the pass


def pass_work(job: Job, read_patches: float = 1.0) -> Work:
    """One pass of the denoiser on one device, whose attention reads so many patches where there are any.

    Convolutions of a U-Net are products whose depth is what a position's kernel sees.
    """
    device, model = job.device, job.model
    text = own_text(model.num_text_tokens, job.ulysses * job.ring) if job.patches == 1 else model.num_text_tokens
    total: dict[str, float] = {}
    sizes: list[tuple[int, int, int, int]] = []
    for block in model.blocks:
        image = job.own_tokens(block.shrink)
        for name, value in _block_work(job, block, image, text, read_patches).items():
            total[name] = total.get(name, 0.0) + value
        rows = {"image": image, "text": text, "both": image + text}
        sizes += [(job.num_sequences * rows[p.rows], p.outputs, p.inputs, p.count) for p in block.products()]
    for convolution in model.convolutions:
        positions, is_spatial = job.num_sequences * job.own_tokens(convolution.shrink), convolution.kernel > 1
        sizes.append((positions, convolution.num_outputs, convolution.depth, 1))
        total["stream_bytes"] += is_spatial * DECODER_PASSES * positions * convolution.num_outputs * WORD_BYTES
        total["num_operators"] += CONVOLUTION_OPERATORS if is_spatial else 1.0
    m, outputs, inputs, count = (np.array([size[i] for size in sizes], np.int64) for i in range(4))
    timing = kernels.predict(Gemm(m=m, n=outputs, k=inputs, format=FORMAT, quantises_input=False), device)
    total["num_operators"] += STEP_OPERATORS
    total["products_s"] = float((timing.time_s * count).sum())
    total["product_flops"] = float((2.0 * m * outputs * inputs * count).sum())
    return Work(**total)


def own_text(num_text_tokens: int, num_devices: int) -> int:
    """Tokens of the text that one device computes: dealt out where they divide evenly, else all of them on each."""
    return num_text_tokens // num_devices if num_text_tokens % num_devices == 0 else num_text_tokens


def _block_work(job: Job, block: Block, image: int, text: int, read_patches: float) -> dict[str, float]:
    """Work of the blocks of one kind besides their products."""
    device, n, b = job.device, job.num_devices, job.num_sequences
    own = image + (text if block.kind in ("joint", "single") else 0)
    streams = 2 if block.kind == "joint" else 1
    found = dict.fromkeys(("score_flops", "score_pairs", "plain_flops", "num_exchanges", "exchange_s"), 0.0)
    found |= {"ring_s": 0.0, "num_hops": 0.0}
    ffn_passes = MIXING_PASSES if block.kind == "linear" else FFN_PASSES * (1.5 if block.is_gated else 1.0)
    passes = STREAM_PASSES + ffn_passes * block.ffn_size / block.width
    operators = OPERATORS * streams
    if block.has_qk_norm:
        passes, operators = passes + QK_NORM_PASSES, operators + QK_NORM_OPERATORS * streams
    if block.has_rope:
        passes, operators = passes + ROPE_PASSES, operators + ROPE_OPERATORS
    if block.kind == "joint":
        passes, operators = passes + JOIN_PASSES, operators + JOIN_OPERATORS
    if block.kind in ("cross", "linear"):
        passes, operators = passes + CROSS_PASSES, operators + CROSS_OPERATORS
    if block.kind == "linear":
        passes, operators = passes + LINEAR_PASSES, operators + LINEAR_OPERATORS
    if block.has_fp32_norms:
        passes, operators = passes + FP32_NORM_PASSES, operators + FP32_NORM_OPERATORS
    plane = float(b * own * block.width) * WORD_BYTES
    streamed = block.count * passes * plane + block.num_dual * STREAM_PASSES * plane
    found["num_operators"] = block.count * operators + block.num_dual * OPERATORS
    heads = ceil(block.num_heads / job.ulysses)
    for queries, keys, count in attentions(block, image * n, job.model.num_text_tokens):
        is_shared = queries == keys  # attention over what is dealt out, and not to the text
        rows = ceil(queries / job.ring) if is_shared else image
        columns = ceil(keys / job.ring) if is_shared else keys
        if is_shared and job.patches > 1:
            others = queries - image * n  # text in the same attention
            rows, columns = image + others, ceil(image * min(read_patches, n)) + others
        here = heads if is_shared else block.num_heads
        hops = job.ring if is_shared else 1
        padded = ceil(block.head_size / HEAD_GRANULE) * HEAD_GRANULE
        waves = b * here * ceil(rows / TILE_ROWS) / max(1, device.num_compute_units)
        lost = ceil(waves) / waves
        pairs = float(b * here) * rows * columns * hops * count
        found["plain_flops"] += 4.0 * block.head_size * pairs
        found["score_flops"] += 4.0 * padded * pairs * lost
        found["score_pairs"] += pairs * lost
        if not is_shared:
            continue
        part = float(b * rows * here * block.head_size) * WORD_BYTES
        if job.ulysses > 1:
            found["num_exchanges"] += EXCHANGES * count
            found["exchange_s"] += EXCHANGES * count * _all_to_all_s(job, part)
            streamed += EXCHANGE_PASSES * part * count
        if job.ring > 1:
            found["num_hops"] += job.ring * count
            found["ring_s"] += (job.ring - 1) * count * _hop_s(job, 2.0 * part)
            streamed += MERGE_PASSES * 2.0 * part * job.ring * count
    if block.kind == "linear" and n > 1:
        found["num_exchanges"] += block.count
    return found | {"stream_bytes": streamed}


def _all_to_all_s(job: Job, message_bytes: float) -> float:
    work = network.Collective(kind="all_to_all", num_devices=job.ulysses, message_bytes=message_bytes, stride=1)
    return float(network.predict(work, job.device).time_s)


def _hop_s(job: Job, message_bytes: float) -> float:
    """Keys and values to the next of the ring, whose members are ``ulysses`` apart."""
    work = network.Collective(kind="send_recv", num_devices=2, message_bytes=message_bytes)
    return float(network.predict(work, job.device).time_s)


def decoder_work(job: Job) -> Work:
    """All pictures or videos of the batch, decoded on one device."""
    model = job.model
    macs, elements = model.decoder.work(*model.latent_grid(job.height, job.width, job.num_frames))
    tiles = job.batch * model.decoder.overlap(job.height, job.width)
    return Work(
        convolution_flops=2.0 * macs * tiles,
        stream_bytes=2 * DECODER_PASSES * elements * WORD_BYTES * tiles,
        num_operators=60.0 * len(model.decoder.levels),
    )


def encoder_work(job: Job) -> Work:
    """The prompts of the batch, with an empty one for each where the pipeline guides."""
    prompts = job.batch * (1 if job.guidance == "none" else 2)
    flops = sum(2.0 * e.num_parameters * e.num_tokens * prompts for e in job.model.encoders)
    moved = sum(e.num_parameters * WORD_BYTES for e in job.model.encoders)
    return Work(
        products_s=flops / peak_of(job.device, FORMAT),
        product_flops=flops,
        stream_bytes=moved,
        num_operators=sum(30.0 * e.num_layers for e in job.model.encoders) * (1 if job.guidance == "none" else 2),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seconds:
    """Time of a piece of work, by cause."""

    products_s: Amount
    attention_s: Amount
    stream_s: Amount
    exchange_s: Amount
    convolution_s: Amount
    host_s: Amount

    @property
    def device_s(self) -> Amount:
        """Until the device is done, with its kernels ready."""
        return self.products_s + self.attention_s + self.stream_s + self.exchange_s + self.convolution_s

    @property
    def time_s(self) -> Amount:
        """On the wall."""
        return np.maximum(self.device_s, self.host_s)


def clock_units(device: Device) -> float:
    """Clocks a second of all compute units together."""
    return device.num_compute_units * device.compute_clock_hz


def seconds(work: Work, device: Device, constants: Mapping[str, float]) -> Seconds:
    """The work with the fitted constants of an eager framework, no faster than the device's roofs.

    Attention kernels of Ampere's instructions, and element-wise ones, are bound by what a compute unit issues a clock.
    """
    peak, c, clocks = peak_of(device, FORMAT), constants, clock_units(device)
    attention = min(c["attention_flops_per_clock"] * clocks, peak)
    stream = min(c["stream_bytes_per_clock"] * clocks, device.memory_bandwidth_bytes_per_s)
    attention_s = (work.score_flops + c["exponential_flops"] * work.score_pairs) / attention
    late_s = np.maximum(0.0, work.ring_s / c["exchange_frac"] - attention_s)
    products_s, stream_s = work.products_s / c["product_frac"], work.stream_bytes / stream
    convolution_s = work.convolution_flops / (c["convolution_frac"] * peak)
    computing_s = products_s + attention_s + stream_s + convolution_s
    late_s = late_s + np.maximum(0.0, work.beside_s / c["exchange_frac"] - computing_s)
    return Seconds(
        products_s=products_s,
        attention_s=attention_s,
        stream_s=stream_s,
        exchange_s=work.exchange_s / c["exchange_frac"] + late_s,
        convolution_s=convolution_s,
        host_s=work.num_operators * c["operator_s"]
        + work.num_exchanges * c["exchange_operator_s"]
        + work.num_hops * c["hop_operator_s"],
    )
