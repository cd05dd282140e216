"""Kernel rows to predictions: rows that share device, op, formats and engine become one op object of arrays.

Stand-alone measurements read warm caches and quantise their own inputs; a kernel inside a model does neither, and the
op objects say which is meant.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.base.errors import OrreryError, OutOfRange, UnknownName
from orrery.catalog.backends import backend_of_kernel, experts_by_default, get_backend
from orrery.catalog.devices import get_device
from orrery.evidence.answers import Answers, Rows
from orrery.evidence.tables import Table
from orrery.execution.train.attention import BACKWARD_FLOPS_RATIO
from orrery.hardware.device import Device
from orrery.kernels.energy import power_spread, power_w
from orrery.kernels.ops import (
    AttentionDecode,
    AttentionPrefill,
    Elementwise,
    Gemm,
    LatentAbsorb,
    LatentDecode,
    LatentPrefill,
    MoE,
    Op,
    Timing,
)
from orrery.numerics.registry import get_format

Sizes = Mapping[str, NDArray[np.int64]]
Numbers = Callable[[str], NDArray[np.float64]]
Build = Callable[[Sizes, str, str], Op]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reader of one op's rows: columns that a row must fill, columns that may stay blank."""

    build: Build
    needs: tuple[str, ...]
    may: Mapping[str, int]  # column -> what a blank means
    work_ratio: float = 1.0  # of the op's own work: a backward pass is its forward pass so many times


NO_NAMES: Mapping[str, str] = {}


def _plain(
    kind: Callable[..., Op], s: Sizes, format: str, kv: str, renamed: Mapping[str, str] = NO_NAMES, **fixed: Any
) -> Op:
    """An op whose sizes are the row's columns, some under other names."""
    return kind(**{renamed.get(column, column): value for column, value in s.items()}, format=format, **fixed)


def _attention(kind: Callable[..., Op], s: Sizes, format: str, kv: str, **fixed: Any) -> Op:
    """The same with a cache."""
    return kind(**s, format=format, kv_format=kv, **fixed)


def _encoder(s: Sizes, format: str, kv: str) -> Op:
    """Every token attends to all others, with keys of its own in every head."""
    own = {"context_tokens": s["query_tokens"], "num_kv_heads": s["num_heads"]}
    return _attention(AttentionPrefill, {**s, **own}, format, kv, is_causal=False)


_GEMM = partial(_plain, Gemm, quantises_input=True, is_cold=False)
_ABSORB = partial(_plain, LatentAbsorb, is_cold=False)
_ABSORBED = {"m": "tokens", "batch": "num_heads"}
_HEADS = ("batch", "context_tokens", "num_heads", "num_kv_heads", "head_size")
_LATENT = ("batch", "context_tokens", "num_heads")
READERS: dict[str, Reader] = {
    "gemm": Reader(build=_GEMM, needs=("m", "n", "k"), may={"batch": 1}),
    "grouped_gemm": Reader(build=partial(_GEMM, renamed={"groups": "batch"}), needs=("m", "n", "k", "groups"), may={}),
    "mla_absorb_query": Reader(
        build=partial(_ABSORB, part="query", renamed=_ABSORBED | {"n": "latent_size", "k": "head_size"}),
        needs=("m", "n", "k", "batch"),
        may={},
    ),
    "mla_absorb_value": Reader(
        build=partial(_ABSORB, part="value", renamed=_ABSORBED | {"n": "head_size", "k": "latent_size"}),
        needs=("m", "n", "k", "batch"),
        may={},
    ),
    "attention_prefill": Reader(
        build=partial(_attention, AttentionPrefill),
        needs=("query_tokens", *_HEADS),
        may={"window_tokens": 0, "value_head_size": 0},
    ),
    "attention_backward": Reader(
        build=partial(_attention, AttentionPrefill),
        needs=("query_tokens", *_HEADS),
        may={"window_tokens": 0, "value_head_size": 0},
        work_ratio=BACKWARD_FLOPS_RATIO,
    ),
    "attention_encoder": Reader(build=_encoder, needs=("batch", "query_tokens", "num_heads", "head_size"), may={}),
    "attention_decode": Reader(
        build=partial(_attention, AttentionDecode, is_cold=False),
        needs=_HEADS,
        may={"window_tokens": 0, "query_tokens": 1},
    ),
    "mla_prefill": Reader(
        build=partial(_attention, LatentPrefill),
        needs=("query_tokens", *_LATENT),
        may={"head_size": 192, "value_head_size": 128},
    ),
    "mla_decode": Reader(
        build=partial(_attention, LatentDecode, is_cold=False),
        needs=_LATENT,
        may={"query_tokens": 1, "head_size": 576, "value_head_size": 512},
    ),
    **{
        kind: Reader(build=partial(_plain, partial(Elementwise, kind=kind)), needs=("tokens", "width"), may={})
        for kind in ("norm", "rope", "gated_activation", "add", "embedding", "softmax", "sample")
    },
}
"""Readers of rows, by op; ``moe`` has words beside its sizes and is read by ``_moe``."""

WORDS = (
    "device",
    "op",
    "format",
    "kv_format",
    "engine",
    "gated_ffn",
    "routing",
    "is_cold",
    "engine_version",
    "kernel",
    "moe_backend",
)
"""Columns that tell groups of rows apart."""

EXPERT_WORDS = ("engine_version", "kernel", "moe_backend")
"""Columns that only rows of experts are told apart by."""

YES = ("1", "true", "yes")
"""Words for cold operands, which came from memory; without one they are taken to be in a loop over one layer's."""

MOE = ("tokens", "hidden_size", "ffn_size", "num_experts", "experts_per_token")


def answer(table: Table, rows: Rows, answers: Answers, *, find: Callable[[str], Device] = get_device) -> None:
    """Predict ``time_s`` of the given rows of kernels, on the devices that ``find`` gives for their names."""
    words = {c: table.words(c) for c in WORDS}
    is_moe = words["op"] == "moe"
    words |= {c: np.where(is_moe, words[c], "") for c in EXPERT_WORDS}
    keys = list(zip(*(words[c][rows] for c in words), strict=True))
    groups: dict[tuple[str, ...], list[int]] = {}
    for row, key in zip(rows.tolist(), keys, strict=True):
        groups.setdefault(tuple(map(str, key)), []).append(row)
    numbers = cache(table.numbers)
    for key, members in groups.items():
        _group(numbers, np.array(members), answers, dict(zip(words, key, strict=True)), find)


@cache
def unlearned_device(name: str) -> Device:
    """A device whose constants stand without the corrections learned on top of them."""
    device = get_device(name)
    bare = {key: replace(c, residual=None) for key, c in device.calibrations.items()}
    return replace(device, calibrations=bare)


def _group(
    numbers: Numbers, rows: Rows, answers: Answers, word: Mapping[str, str], find: Callable[[str], Device]
) -> None:
    """Predict rows that differ in their sizes only."""
    if not word["device"]:
        return answers.decline(rows, "device is blank")
    if word["op"] != "moe" and word["op"] not in READERS:
        return answers.decline(rows, f"unknown op {word['op']}")
    try:
        device = find(word["device"])
        format = get_format(word["format"] or "bf16").name
        kv = get_format(word["kv_format"]).name if word["kv_format"] else format
    except UnknownName as error:
        return answers.decline(rows, f"unknown {error.kind} {error.name}")
    if not word["format"]:
        answers.assumed["format: bf16"] += len(rows)
    reader = READERS.get(word["op"])
    needs, may = (reader.needs, reader.may) if reader else (MOE, {"tp": 1, "ep": 1})
    if (sizes := _sizes(numbers, rows, answers, needs, may)) is None:
        return None
    rows, columns = sizes
    try:
        op = reader.build(columns, format, kv) if reader else _moe(columns, format, word)
        if isinstance(op, Gemm | AttentionDecode) and word["is_cold"] in YES:
            op = replace(op, is_cold=True)
        engine = expert_kernels(word, device, format) if isinstance(op, MoE) else word["engine"]
        timing = kernels.predict(op, device, engine)
        spread = kernels.spreads(op, timing, device, engine)
        timing = repeated(timing, reader.work_ratio if reader else 1.0)
        answers.predict("time_s", rows, timing.time_s, spread)
    except OrreryError as error:
        return answers.decline(rows, str(error))
    answers.bound_s[rows] = bound(timing, device)
    answers.compute_s[rows], answers.memory_s[rows] = timing.compute_s, timing.memory_s
    if np.isfinite(numbers("power_w")[rows]).any():
        _power(rows, answers, device, format, timing, word["op"])
    return None


def repeated(timing: Timing, ratio: float) -> Timing:
    """Return the timing of ``ratio`` times the work in one launch."""
    if ratio == 1.0:
        return timing
    return Timing(
        time_s=timing.overhead_s + ratio * (timing.time_s - timing.overhead_s),
        overhead_s=timing.overhead_s,
        compute_s=ratio * timing.compute_s,
        memory_s=timing.memory_s,
        flops=ratio * timing.flops,
        bytes=timing.bytes,
    )


def _power(rows: Rows, answers: Answers, device: Device, format: str, timing: Timing, op: str) -> None:
    """The mean power of the device while it repeats these kernels."""
    rates = timing.flops / timing.time_s, timing.bytes / timing.time_s
    try:
        answers.predict("power_w", rows, power_w(device, format, *rates, op), power_spread(device, format, *rates, op))
    except OutOfRange:
        return  # nothing was measured that says what this device draws: the metric is left out and counted


def bound(timing: Timing, device: Device) -> NDArray[np.float64]:
    """The least time that the datasheet allows: peak arithmetic, and the bytes that no last-level cache can hold."""
    beyond = np.maximum(timing.bytes - device.last_level_cache_bytes, 0.0)
    outside_s = timing.memory_s * beyond / np.maximum(timing.bytes, 1.0)
    return np.maximum(timing.compute_s, outside_s)


def _sizes(
    numbers: Numbers, rows: Rows, answers: Answers, needs: tuple[str, ...], may: Mapping[str, int]
) -> tuple[Rows, Sizes] | None:
    """The size columns of the rows that have them all, and those rows; the others are declined."""
    read = {c: numbers(c)[rows] for c in (*needs, *may)}
    keep = np.ones(len(rows), dtype=bool)
    for column in needs:
        blank, absurd = np.isnan(read[column]), read[column] < 0
        answers.decline(rows[blank], f"{column} is blank")
        answers.decline(rows[absurd], f"{column} is negative")
        keep &= ~blank & ~absurd
    if not keep.any():
        return None
    filled = {c: np.where(np.isnan(v), may.get(c, 0), v)[keep] for c, v in read.items()}
    return rows[keep], {c: v.astype(np.int64) for c, v in filled.items()}


def expert_kernels(word: Mapping[str, str], device: Device, format: str) -> str:
    """Name of the kernels whose constants price a row of experts: the back end that the row names, that its kernel's
    name stands for, or that its engine chooses by default; as that engine calls it."""
    engine = word["engine"]
    backend = get_backend("moe", word["moe_backend"]) if word["moe_backend"] else ""
    backend = backend or backend_of_kernel("moe", word["kernel"], format)
    if not backend:
        return experts_by_default(engine, word["engine_version"], device.generation, format)
    return f"{backend}@{engine}"


def _moe(s: Sizes, format: str, word: Mapping[str, str]) -> Op:
    return MoE(
        tokens=s["tokens"],
        hidden_size=s["hidden_size"],
        ffn_size=s["ffn_size"],
        num_experts=s["num_experts"],
        experts_per_token=s["experts_per_token"],
        tp=s["tp"],
        ep=s["ep"],
        format=format,
        is_gated=word["gated_ffn"].casefold() not in ("false", "0", "no"),
        skew=skew(word["routing"]),
    )


def skew(routing: str) -> float:
    """The law that expert loads follow: ``balanced`` is 0, ``power_law_x`` is x; -1 (at random) when nobody says."""
    law, _, exponent = routing.casefold().rpartition("_")
    if law == "power_law":
        return float(exponent)
    return 0.0 if routing.casefold() == "balanced" else -1.0
