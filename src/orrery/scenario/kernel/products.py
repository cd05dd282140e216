"""Dense products: libraries' kernels, weights of a few bits, one-bit passes, blocks of two widths."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.base.units import percent
from orrery.catalog.backends import experts_by_default
from orrery.execution.formats import compute_format
from orrery.hardware.device import Device
from orrery.kernels.gemm.naive_tiles import tiled_run
from orrery.kernels.gemm.rule import explain
from orrery.kernels.lowbit.lanes import cores_of, product_s, products_per_instruction
from orrery.kernels.lowbit.mixed_blocks import MixedGemm, mixed_gemm_s, moved_bytes, roof_s
from orrery.kernels.lowbit.one_bit import integer_gemm_s, nearest_integer_bits, one_bit_gemm_s
from orrery.kernels.lowbit.packed import Loads, packed_gemm_s, plain_gemm_s, weight_load
from orrery.kernels.lowbit.product import integer_flops_per_s
from orrery.kernels.ops import Gemm, MoE, Op
from orrery.numerics.mixed_widths import MIXED_WIDTHS
from orrery.numerics.registry import get_format
from orrery.scenario.kernel.library import SIXTEEN_BITS, library_ways
from orrery.scenario.kernel.operator import Found, Operator, Way, Work, one_of
from orrery.scenario.kernel.tensors import wide_frac

LOADS = {
    "packed": Loads.PACKED,
    "padded": Loads.PADDED,
    "converted": Loads.CONVERTED,
    "serial-loads": Loads.SERIAL,
}

VARIANTS = {
    "library": "the kernels that libraries ship",
    "packed": "weights of true bits, unpacked in registers (--weights int1 to int8)",
    "padded": "weights padded to the next power of two (--weights int1 to int8)",
    "converted": "padded weights that pass through shared memory (--weights int1 to int8)",
    "serial-loads": "the same, and loads wait for it (--weights int1 to int8)",
    "one-bit-fused": "a pass of one-bit units for each pair of bits, joined on chip (--weights and --activations "
    "bipolar1 to bipolar8)",
    "one-bit-unfused": "the same, partial results through memory",
    "integer-units": "both operands padded to what integer units take (with bipolar ones)",
    "even": "tiles of both widths dealt out evenly (--activations int4+int8)",
    "in-step": "rounds as long as their slowest tile (--activations int4+int8)",
    "sixteen-bit": "both operands in 16 bits, with the same library's constants",
    "lanes": "a CPU's vector registers, widening multiplies (--weights int4 or int8 --activations int4 or int8)",
    "lanes-dot": "the same with instructions that multiply and add four products of eight bits",
    "tiled-8": "the textbook tiled product in FP32 with blocks of 8 x 8 threads (--format fp32)",
    "tiled-16": "the same with 16 x 16",
    "tiled-32": "the same with 32 x 32",
}

NARROW = re.compile(r"u?int(?P<bits>[1-8])(?:/(?P<group>\d+))?(?::\w+)?(?:_weight_only)?")
BIPOLAR = re.compile(r"bipolar(?P<bits>[1-8])")
DEFAULT_GROUP = 128
TERNARY_BITS = 2
"""Bits of a ternary weight by itself; five in a byte take 1.6, and more instructions."""

LANE_BITS = {"int4": 4, "int8": 8, "int16": 16, "fp16": 16}
TEXTBOOK_TILES = (8, 16, 32)


def tiles(op: Op, device: Device, engine: str) -> Mapping[str, Any]:
    """The tile and split of a product, its waves, and the terms that met."""
    if not isinstance(op, Gemm) or (device.kind == "cpu" and ("gemm", "fp32", "") not in device.calibrations):
        return {}
    try:
        terms = explain(op, device, engine)
    except OutOfRange:  # a host's products have a rule without tiles
        return {}
    rows, columns = (int(np.asarray(side).item()) for side in terms.tile)
    return {
        "tile": f"{rows}x{columns}" if rows else "matrix-vector",
        "splits": int(np.asarray(terms.num_splits).item()),
        "waves": float(np.asarray(terms.num_waves).item()),
        "tile_fill_frac": float(np.asarray(terms.tile_fill_frac)),
        "mma_s": float(np.asarray(terms.mma_s)),
        "feed_s": float(np.asarray(terms.feed_s)),
        "dram_s": float(np.asarray(terms.dram_s)),
    }


def _gemm(work: Work, format: str, batch: str) -> Gemm:
    m, n, k, count = (work.size(name) for name in ("m", "n", "k", batch))
    return Gemm(
        m=m,
        n=n,
        k=k,
        batch=count,
        format=get_format(format).name,
        quantises_input=True,
        is_cold=bool(work.words.get("cold")),
    )


def dense(work: Work) -> Iterator[Way]:
    """Ways of one product."""
    weights, activations = work.words.get("weights"), work.words.get("activations")
    if weights is None and activations is None:
        formats = work.list_of("format", ("bf16",))
        yield from library_ways(work, "gemm", formats, partial(_gemm_in, work), tiles)
        if "fp32" in formats and work.size("batch") == 1 and work.device.kind == "gpu":
            for side in TEXTBOOK_TILES:
                yield Way(variant=f"tiled-{side}", format="fp32", find=partial(_tiled, work, side))
        return
    if work.has("format"):
        raise ScenarioError("format: is for both operands; leave it out beside weights and activations.")
    if work.size("batch") > 1:
        raise ScenarioError("batch: products of few bits are told one at a time; leave it out beside weights.")
    weights, activations = str(weights or "bf16"), str(activations or "bf16")
    if activations == MIXED_WIDTHS:
        yield from _two_widths(work, weights)
    elif BIPOLAR.fullmatch(weights) or BIPOLAR.fullmatch(activations):
        yield from _one_bit(work, weights, activations)
    elif work.device.kind == "cpu" and weights in LANE_BITS and activations in LANE_BITS:
        for name in ("lanes", "lanes-dot"):
            bits = LANE_BITS[weights], LANE_BITS[activations]
            yield Way(variant=name, format=f"{weights} x {activations}", find=partial(_lanes, work, *bits, name))
    elif weights == "ternary" and activations in ("bf16", "fp16"):
        yield from _few_bits(work, TERNARY_BITS, weights, DEFAULT_GROUP)
    elif (few := NARROW.fullmatch(weights)) and activations in ("bf16", "fp16"):
        group = int(few["group"] or DEFAULT_GROUP)
        yield from _few_bits(work, int(few["bits"]), weights, group)
    else:
        held, active = get_format(weights).name, get_format(activations).name
        if activations not in ("bf16", "fp16") and held != active and get_format(held).element_bits < SIXTEEN_BITS:
            check_pair(held, active)
        yield from library_ways(
            work,
            "gemm",
            (compute_format(PAIRED.get((held, active), held), active, work.device),),
            partial(_gemm_in, work),
            tiles,
        )


def _gemm_in(work: Work, format: str) -> Gemm:
    return _gemm(work, format, "batch")


PAIRED = {
    ("int4_weight_only", "int4_weight_only"): "int4_int4",
    ("int4_weight_only", "int8"): "int4_int8",
    ("mxfp4", "mxfp8"): "mxfp4_mxfp8",
}
"""Weights and activations that have a format of their own together."""


def check_pair(weights: str, activations: str) -> None:
    """Refuse operands of two formats that no kernel multiplies."""
    if (weights, activations) not in PAIRED:
        raise ScenarioError(
            f"weights and activations: got {weights} with {activations}; write the same for both, 16-bit activations, "
            "int4 with int8, mxfp4 with mxfp8, bipolar1 to bipolar8 for both, or int4+int8 activations."
        )


def _sizes(work: Work) -> tuple[int, int, int]:
    return work.size("m"), work.size("n"), work.size("k")


def _few_bits(work: Work, bits: int, spelled: str, group: int) -> Iterator[Way]:
    """Weights of 1 to 8 bits beside 16-bit activations, however they are loaded."""
    for name, loads in LOADS.items():
        yield Way(variant=name, format=spelled, find=partial(_packed, work, bits, group, loads))
    yield Way(variant="sixteen-bit", format="bf16", find=partial(_plain, work))


def _packed(work: Work, bits: int, group: int, loads: Loads) -> Found:
    _check_gpu(work.device, "unpacking weights in registers and shared memory is counted for GPUs")
    (m, n, k), device = _sizes(work), work.device
    load = weight_load(bits, loads)
    stored = (load.stored_bits + 16.0 / group) / 8.0
    moved = 2.0 * m * k + stored * n * k + 2.0 * m * n
    peak = device.peak_flops_per_s(("bf16", "fp16"))[1]
    return Found(
        time_s=float(packed_gemm_s(m, n, k, bits, device, loads, group)),
        flops=2.0 * m * n * k,
        bytes=moved,
        roofs_s={"compute": 2.0 * m * n * k / peak, "memory": moved / device.memory_bandwidth_bytes_per_s},
        details={
            "stored_bits": load.stored_bits,
            "instructions_per_weight": load.num_instructions,
            "shared_bytes_per_weight": load.shared_bytes,
        },
        because=(
            f"{load.stored_bits} bits a weight and a 16-bit scale for {group}; the library's measured 16-bit constants",
        ),
    )


def _plain(work: Work) -> Found:
    (m, n, k), device = _sizes(work), work.device
    moved = 2.0 * (m * k + n * k + m * n)
    peak = device.peak_flops_per_s(("bf16", "fp16"))[1]
    return Found(
        time_s=float(plain_gemm_s(m, n, k, device)),
        flops=2.0 * m * n * k,
        bytes=moved,
        roofs_s={"compute": 2.0 * m * n * k / peak, "memory": moved / device.memory_bandwidth_bytes_per_s},
        because=("weights and activations from memory, the library's measured 16-bit constants",),
    )


def _one_bit(work: Work, weights: str, activations: str) -> Iterator[Way]:
    """Bit by bit on one-bit units, beside what integer units would do with padded operands."""
    pair = [BIPOLAR.fullmatch(word) for word in (weights, activations)]
    if pair[0] is None or pair[1] is None:
        raise ScenarioError(
            f"weights and activations: got {weights} with {activations}; write bipolar1 to bipolar8 for both."
        )
    p, q = (int(found["bits"]) for found in pair if found)
    label = f"{weights} x {activations}"
    for name, is_fused in (("one-bit-fused", True), ("one-bit-unfused", False)):
        yield Way(variant=name, format=label, find=partial(_passes, work, p, q, is_fused))
    for bits in sorted({nearest_integer_bits(p, q), 4, 8}):
        yield Way(variant="integer-units", format=f"int{bits}", find=partial(_integer, work, bits))


def _passes(work: Work, p: int, q: int, is_fused: bool) -> Found:
    (m, n, k), device = _sizes(work), work.device
    rate = integer_flops_per_s(device, 1)
    partial_bytes = 0.0 if is_fused else 8.0 * p * q * m * n
    moved = (m * k * q + n * k * p) / 8.0 + 2.0 * m * n + partial_bytes
    flops = 2.0 * m * n * k
    return Found(
        time_s=float(one_bit_gemm_s(m, n, k, p, q, device, is_fused=is_fused)),
        flops=flops,
        bytes=moved,
        roofs_s={"compute": p * q * flops / rate, "memory": moved / device.memory_bandwidth_bytes_per_s},
        details={"passes": p * q, "one_bit_flops_per_s": rate},
        because=(f"{p} x {q} passes of one-bit products; exact: every pass is a whole number",),
    )


def _integer(work: Work, bits: int) -> Found:
    (m, n, k), device = _sizes(work), work.device
    rate = integer_flops_per_s(device, bits)
    moved = (m * k + n * k) * bits / 8.0 + 2.0 * m * n
    return Found(
        time_s=float(integer_gemm_s(m, n, k, bits, device)),
        flops=2.0 * m * n * k,
        bytes=moved,
        roofs_s={"compute": 2.0 * m * n * k / rate, "memory": moved / device.memory_bandwidth_bytes_per_s},
        because=(f"both operands padded to {bits} bits, the library's measured 8-bit constants",),
    )


def _two_widths(work: Work, weights: str) -> Iterator[Way]:
    """Blocks of four- and eight-bit activations with four-bit weights."""
    if weights not in ("int4", "bf16"):  # bf16: nothing was said
        raise ScenarioError(f"weights: got {weights!r}; blocks of int4+int8 activations multiply int4 weights.")
    for name, is_even in (("even", True), ("in-step", False)):
        yield Way(variant=name, format=f"int4 x {MIXED_WIDTHS}", find=partial(_mixed, work, is_even))
    yield Way(variant="sixteen-bit", format="bf16", find=partial(_plain, work))


def _lanes(work: Work, weight_bits: int, activation_bits: int, name: str) -> Found:
    """On a processor's vector registers."""
    (m, n, k), device = _sizes(work), work.device
    cores = cores_of(device, has_dot_products=name == "lanes-dot")
    each = products_per_instruction(cores, weight_bits, activation_bits)
    moved = (n * k * weight_bits + m * k * activation_bits) / 8.0 + 2.0 * m * n
    flops = 2.0 * m * n * k
    return Found(
        time_s=product_s(m, n, k, weight_bits, activation_bits, cores),
        flops=flops,
        bytes=moved,
        roofs_s={
            "compute": flops / 2.0 / each / cores.instructions_per_s,
            "memory": moved / device.memory_bandwidth_bytes_per_s,
        },
        details={"products_per_instruction": each, "vector_bits": cores.register_bits},
        because=(
            f"{cores.register_bits} bits of vector registers start a cycle on each of {cores.num_cores} cores, as "
            "the FP32 rate of the device says; whether it has dot products its file does not say",
        ),
    )


CONVOLUTIONS = {
    "library": "the product that an implicit convolution is, by a library's kernels",
    "float-lanes": "a CPU's vector registers in FP32",
    "lanes": "eight bits, widening multiplies",
    "lanes-dot": "eight bits, instructions that multiply and add four products",
}


def convolution(work: Work) -> Iterator[Way]:
    """A convolution at ``pixels`` positions: taps x inputs products for each of the outputs."""
    m, n, k = (work.size("pixels"), work.size("outputs"), work.size("taps") * work.size("inputs"))
    product = replace(work, sizes={**work.sizes, "m": m, "n": n, "k": k, "batch": 1})
    formats = work.list_of("format", ("fp32",))
    yield from library_ways(work, "gemm", formats, partial(_gemm_in, product), tiles)
    if work.device.kind == "cpu":
        yield Way(variant="float-lanes", format="fp32", find=partial(_float_lanes, product))
        for name in ("lanes", "lanes-dot"):
            yield Way(variant=name, format="int8", find=partial(_lanes, product, 8, 8, name))


def _float_lanes(work: Work) -> Found:
    (m, n, k), device = _sizes(work), work.device
    flops, moved = 2.0 * m * n * k, 4.0 * (m * k + n * k + m * n)
    roofs = {"compute": flops / device.vector_flops_per_s, "memory": moved / device.memory_bandwidth_bytes_per_s}
    return Found(
        time_s=max(roofs.values()),
        flops=flops,
        bytes=moved,
        roofs_s=roofs,
        because=("every lane starts a multiply-add a cycle; windows are laid out once",),
    )


def _tiled(work: Work, side: int) -> Found:
    (m, n, k), device = _sizes(work), work.device
    run = tiled_run(m, n, k, side, device)
    return Found(
        time_s=run.time_s,
        flops=run.flops,
        bytes=run.dram_bytes,
        roofs_s={
            "compute": run.flops / device.vector_flops_per_s,
            "memory": run.dram_bytes / device.memory_bandwidth_bytes_per_s,
        },
        details={
            "tile": f"{side}x{side}",
            "resident_blocks": run.num_resident_blocks,
            "occupancy_frac": run.occupancy_frac,
            "cache_bytes": run.cache_bytes,
            "power_w": run.power_w,
            "limited_by": run.bound_by,
        },
        because=("instructions counted in the kernel's source, occupancy by CUDA's rules",),
    )


DEFAULT_WIDE_FRAC = 0.0


def _mixed(work: Work, is_even: bool) -> Found:
    (m, n, k), device = _sizes(work), work.device
    block, share = min(128, k), work.number("wide_frac", DEFAULT_WIDE_FRAC)
    if work.has("tensors"):
        if work.has("wide_frac"):
            raise ScenarioError("wide_frac: is measured on the tensors; leave one of them out.")
        share = wide_frac(str(work.words["tensors"]), block)
    op = MixedGemm(m=m, n=n, k=k, wide_frac=share, block_elements=block)
    wide = op.num_wide / op.num_blocks
    moved = moved_bytes(op)
    return Found(
        time_s=mixed_gemm_s(op, device, is_even=is_even),
        flops=2.0 * m * n * k,
        bytes=moved,
        roofs_s={
            "compute": roof_s(op, device),
            "memory": moved / device.memory_bandwidth_bytes_per_s,
        },
        details={"wide_blocks": op.num_wide, "blocks": op.num_blocks},
        because=(
            f"{percent(wide, 1)} of {op.num_blocks} channel blocks keep eight bits ("
            + ("as measured on the tensors)" if work.has("tensors") else "--tensors measures how many must)"),
        ),
    )


def grouped(work: Work) -> Iterator[Way]:
    """``groups`` products of one size in one launch."""
    formats = work.list_of("format", ("bf16",))
    yield from library_ways(work, "gemm", formats, lambda format: _gemm(work, format, "groups"), tiles)


def experts(work: Work) -> Iterator[Way]:
    """A routed feed-forward block on the busiest of ``ep`` ranks."""
    exponent = skew(work.word("routing", "balanced"))

    def block(format: str) -> MoE:
        return MoE(
            tokens=work.size("tokens"),
            hidden_size=work.size("hidden_size"),
            ffn_size=work.size("ffn_size"),
            num_experts=work.size("num_experts"),
            experts_per_token=work.size("experts_per_token"),
            tp=work.size("tp"),
            ep=work.size("ep"),
            format=get_format(format).name,
            skew=exponent,
        )

    yield from library_ways(work, "moe", work.list_of("format", ("bf16",)), block, engine_of=_experts_by)


def _experts_by(engine: str, device: Device, format: str) -> str:
    """Back ends are as written (``triton@vllm``); an engine stands for what it chooses there."""
    if not engine or "@" in engine:
        return engine
    return experts_by_default(engine, "", device.generation, get_format(format).name)


def skew(routing: str) -> float:
    """The law of expert loads: balanced is 0, power_law_x is x, random -1."""
    law, _, exponent = routing.casefold().rpartition("_")
    if law == "power_law":
        try:
            return float(exponent)
        except ValueError:
            law = ""
    law = "random" if routing.casefold() == "uniform" else routing.casefold()
    return {"balanced": 0.0, "random": -1.0}[one_of("routing", law, ("balanced", "random"))]


def _check_gpu(device: Device, why: str) -> None:
    if device.kind != "gpu":
        raise OutOfRange(f"{device.name} is a {device.kind}: {why}.")


GEMM = Operator(
    name="gemm",
    sizes={"m": None, "n": None, "k": None, "batch": 1},
    ways=dense,
    variants=VARIANTS,
    settings=frozenset({"format", "weights", "activations", "engine", "cold", "wide_frac", "tensors"}),
)
CONV = Operator(
    name="conv",
    sizes={"pixels": None, "inputs": None, "outputs": None, "taps": 9},
    ways=convolution,
    variants=CONVOLUTIONS,
    settings=frozenset({"format", "engine", "cold"}),
)
GROUPED = Operator(
    name="grouped-gemm",
    sizes={"m": None, "n": None, "k": None, "groups": None},
    ways=grouped,
    variants={"library": VARIANTS["library"]},
    settings=frozenset({"format", "engine", "cold"}),
)
MOE = Operator(
    name="moe",
    sizes={
        "tokens": None,
        "hidden_size": None,
        "ffn_size": None,
        "num_experts": None,
        "experts_per_token": None,
        "tp": 1,
        "ep": 1,
    },
    ways=experts,
    variants={"library": VARIANTS["library"]},
    settings=frozenset({"format", "engine", "routing"}),
)
