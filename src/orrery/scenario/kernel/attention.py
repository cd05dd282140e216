"""Attention: libraries' kernels, turns and overlap by instruction rates, passes on an array of multipliers; latents."""

from collections.abc import Iterator
from functools import partial

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.kernels.attention import overlapped
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, LatentDecode, LatentPrefill, Op
from orrery.kernels.spatial import passes
from orrery.kernels.spatial.attention import Attention
from orrery.numerics.registry import get_format
from orrery.scenario.kernel.library import library_ways
from orrery.scenario.kernel.operator import Found, Operator, Way, Work, one_of
from orrery.scenario.kernel.tensors import attention_errors

EIGHT_BIT = "fp8"

PHASES = ("prefill", "decode")

VARIANTS = {
    "library": "the kernels that libraries ship, with their measured constants",
    "serial": "products, exponentials and vector instructions in turns: their rates added up",
    "ping-pong": "two groups of warps in turns: one multiplies while the other exponentiates, the slower one counts",
    "three-pass": "an array of multipliers: softmax of whole rows on the lanes beside it",
    "two-pass": "an array: maxima kept while scores are made, rows read again to be divided",
    "one-pass": "an array: running maxima and sums, exponentials on the array itself",
    "one-pass-lanes": "an array: running maxima and sums, exponentials on the lanes",
}


def phase_of(work: Work) -> str:
    """As said; one new token a sequence is decoding."""
    return one_of("phase", work.word("phase", PHASES[work.size("query_tokens") == 1]), PHASES)


def _softmax_op(work: Work, format: str) -> Op:
    compute = get_format(format).name
    kv = get_format(str(work.words["kv"])).name if work.has("kv") else compute
    shared = {name: work.size(name) for name in ("batch", "query_tokens", "num_heads", "head_size", "window_tokens")}
    context, kv_heads = _context(work), _kv_heads(work)
    if phase_of(work) == "decode":
        return AttentionDecode(
            **shared,
            context_tokens=context,
            num_kv_heads=kv_heads,
            format=compute,
            kv_format=kv,
            is_cold=bool(work.words.get("cold")),
        )
    return AttentionPrefill(
        **shared,
        context_tokens=context,
        num_kv_heads=kv_heads,
        value_head_size=work.size("value_head_size"),
        format=compute,
        kv_format=kv,
        is_causal=not work.words.get("not_causal"),
    )


def _context(work: Work) -> int:
    return work.size("context_tokens") or work.size("query_tokens")


def _kv_heads(work: Work) -> int:
    return work.size("num_kv_heads") or work.size("num_heads")


def softmax_attention(work: Work) -> Iterator[Way]:
    """Ways of one attention."""
    formats, phase = work.list_of("format", ("bf16",)), phase_of(work)
    if work.device.generation == passes.GENERATION:
        yield from _on_array(work)
        return
    yield from library_ways(work, f"attention_{phase}", formats, partial(_softmax_op, work))
    if phase == "prefill":
        for format in formats:
            for variant in ("serial", "ping-pong"):
                yield Way(variant=variant, format=format, find=partial(_derived, work, format, variant))


def _derived(work: Work, format: str, variant: str) -> Found:
    """By the rates of instructions, without any constant that was fitted to such a kernel."""
    device = work.device
    shape = overlapped.Shape(
        num_heads=work.size("batch") * work.size("num_heads"),
        num_queries=work.size("query_tokens"),
        num_keys=_context(work),
        num_head_features=work.size("head_size"),
        is_causal=not work.words.get("not_causal"),
    )
    if work.size("window_tokens"):
        raise OutOfRange("window_tokens: turns and overlap are counted without a window; leave it out.")
    number = get_format(format)
    run = overlapped.run(shape, device, number, is_overlapped=variant == "ping-pong")
    kv = work.size("batch") * _kv_heads(work) * _context(work) * work.size("head_size") * number.bytes_per_element
    moved = 2.0 * kv + 2.0 * shape.num_heads * shape.num_queries * shape.num_head_features * number.bytes_per_element
    memory_s = moved / device.memory_bandwidth_bytes_per_s
    is_rounded = work.has("tensors") and number.name == EIGHT_BIT
    errors = attention_errors(str(work.words["tensors"])) if is_rounded else {}
    return Found(
        time_s=max(run.time_s, memory_s),
        flops=run.flops,
        bytes=moved,
        roofs_s={"compute": run.flops / run.peak_flops_per_s, "memory": memory_s},
        others_s={"exponentials": run.exponentials_s, "vector": run.vector_s},
        details={
            "products_s": run.products_s,
            "exponentials_s": run.exponentials_s,
            "vector_s": run.vector_s,
            **errors,
            "waves": run.num_waves,
            "busy_frac": run.flops / run.peak_flops_per_s / max(run.time_s, memory_s),
        },
        because=run.because,
    )


def _on_array(work: Work) -> Iterator[Way]:
    for variant in passes.VARIANTS:
        yield Way(variant=variant, format="fp16", find=partial(_array, work, variant))


def _array(work: Work, variant: str) -> Found:
    device = work.device
    if _context(work) != work.size("query_tokens") or not work.words.get("not_causal"):
        raise ScenarioError("attention on an array is counted for whole rows: write --not-causal, no context_tokens.")
    array = passes.array_of(device)
    shape = Attention(
        num_heads=work.size("batch") * work.size("num_heads"),
        num_rows=work.size("query_tokens"),
        num_head_features=work.size("head_size"),
    )
    run = passes.run(variant, shape, array)
    flops = 4.0 * shape.num_scores * shape.num_head_features
    return Found(
        time_s=run.time_s,
        flops=flops,
        bytes=run.memory_bytes,
        roofs_s={
            "compute": flops / (2.0 * array.num_side**2 * array.clock_hz),
            "memory": run.memory_bytes / array.memory_bandwidth_bytes_per_s,
        },
        others_s={"lanes": run.lanes_s},
        details={
            "busy_frac": run.busy_frac,
            "row_buffer_bytes": run.row_buffer_bytes,
            "spilled_bytes": run.spilled_bytes,
        },
        because=(
            f"{array.num_side} x {array.num_side} multipliers, {array.num_side} lanes, a buffer of "
            f"{array.buffer_bytes / 2**20:.3g} MiB",
        ),
    )


def _latent_op(work: Work, format: str) -> Op:
    compute = get_format(format).name
    kv = get_format(str(work.words["kv"])).name if work.has("kv") else compute
    shared = {name: work.size(name) for name in ("batch", "query_tokens", "num_heads")}
    sizes = {name: work.size(name) for name in ("head_size", "value_head_size") if work.size(name)}
    if phase_of(work) == "decode":
        cold = bool(work.words.get("cold"))
        return LatentDecode(
            **shared, **sizes, context_tokens=_context(work), format=compute, kv_format=kv, is_cold=cold
        )
    return LatentPrefill(**shared, **sizes, context_tokens=_context(work), format=compute, kv_format=kv)


def latent_attention(work: Work) -> Iterator[Way]:
    """MLA, expanded over prompts or absorbed over a cache of latents."""
    yield from library_ways(work, f"mla_{phase_of(work)}", work.list_of("format", ("bf16",)), partial(_latent_op, work))


def _check(work: Work) -> None:
    """Heads in whole groups, a context that holds its new tokens."""
    if _context(work) < work.size("query_tokens"):
        raise ScenarioError(
            f"context_tokens: got {_context(work)}, less than {work.size('query_tokens')} new ones; it counts both."
        )
    if "num_kv_heads" in work.sizes and work.size("num_heads") % _kv_heads(work):
        raise ScenarioError(f"num_kv_heads: {_kv_heads(work)} do not divide {work.size('num_heads')} heads.")


SETTINGS = frozenset({"format", "kv", "engine", "phase", "cold"})
ATTENTION = Operator(
    name="attention",
    sizes={
        "query_tokens": None,
        "num_heads": None,
        "batch": 1,
        "context_tokens": 0,
        "num_kv_heads": 0,
        "head_size": 128,
        "window_tokens": 0,
        "value_head_size": 0,
    },
    ways=softmax_attention,
    variants=VARIANTS,
    settings=SETTINGS | {"not_causal", "tensors"},
    check=_check,
    spellings={"pingpong": "ping-pong", "async": "ping-pong", "turns": "serial"},
)
LATENT = Operator(
    name="latent-attention",
    sizes={
        "query_tokens": None,
        "num_heads": None,
        "batch": 1,
        "context_tokens": 0,
        "head_size": 0,
        "value_head_size": 0,
    },
    ways=latent_attention,
    variants={"library": VARIANTS["library"]},
    settings=SETTINGS,
    check=_check,
)
