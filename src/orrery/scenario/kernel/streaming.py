"""Operators that stream over their operands: softmax in its passes, element-wise kernels, sorts, sparse products."""

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from orrery.base.units import percent
from orrery.hardware.device import Device
from orrery.kernels.elementwise import softmax_passes
from orrery.kernels.elementwise.rule import calibration
from orrery.kernels.gather import line_bytes, useful_frac
from orrery.kernels.ops import Elementwise
from orrery.kernels.sort import radix
from orrery.kernels.sparse.products import Sparse, Traffic, by_rows, inner, num_partial_products, outer, recursive
from orrery.numerics.registry import get_format
from orrery.scenario.kernel.library import library_ways, origin
from orrery.scenario.kernel.operator import Found, Operator, Way, Work

LIBRARY = "the kernels that libraries ship, with their measured constants"
TWO_D = {"tokens": None, "width": None}


def elementwise(kind: str, work: Work) -> Iterator[Way]:
    """A library's kernel over tokens x width."""

    def op(format: str) -> Elementwise:
        return Elementwise(
            kind=kind, tokens=work.size("tokens"), width=work.size("width"), format=get_format(format).name
        )

    yield from library_ways(work, f"elementwise_{kind}", work.list_of("format", ("bf16",)), op)


def softmax(work: Work) -> Iterator[Way]:
    """A library's kernel, and the three algorithms by their passes, in 32 bits unless a format is said."""
    yield from elementwise("softmax", work)
    for name in softmax_passes.ALGORITHMS:
        for format in work.list_of("format", ("fp32",)):
            yield Way(variant=name, format=get_format(format).name, find=partial(_passes, work, name, format))


def _passes(work: Work, name: str, format: str) -> Found:
    rows, columns, wide = work.size("tokens"), work.size("width"), get_format(format).bytes_per_element
    processor = softmax_passes.processor_of(work.device)
    run = softmax_passes.run(name, rows, columns, processor, wide)
    counts = softmax_passes.counts(name)
    is_inside = softmax_passes.fits(columns, processor, wide)
    where = "a row stays in the last-level cache" if is_inside else "a row is larger than the last-level cache"
    return Found(
        time_s=run.time_s,
        flops=run.num_instructions,
        bytes=run.memory_bytes,
        roofs_s={"compute": run.instructions_s, "memory": run.memory_s},
        details={
            "memory_operations_per_element": counts.num_memory_operations,
            "instructions_per_element": counts.num_instructions,
            "is_in_cache": is_inside,
        },
        because=(
            f"{counts.num_memory_operations:g} N memory operations, {counts.num_instructions:.0f} N instructions; "
            f"{where}; arithmetic beside the memory is not hidden",
        ),
    )


SORTS = {
    "onesweep": "all digits counted in one read, then a read and a write a pass; blocks look back for offsets",
    "cub": "every pass reads keys to count its digit, then reads and writes them (CUB before Onesweep)",
}


def sorts(work: Work) -> Iterator[Way]:
    """Radix sorts of keys alone."""
    for name in SORTS:
        yield Way(variant=name, format=f"{work.size('key_bits')}-bit keys", find=partial(_sort, work, name))


def _sort(work: Work, name: str) -> Found:
    device, keys, bits = work.device, work.size("keys"), work.size("key_bits")
    way = radix.WAYS[name]
    moved = way.moved_bytes(keys, bits)
    streamed = calibration(radix.STREAM, device)
    return Found(
        time_s=radix.sort_s(way, keys, bits, device),
        flops=0.0,
        bytes=moved,
        roofs_s={"memory": moved / device.memory_bandwidth_bytes_per_s},
        others_s={"launch": way.num_kernels(bits) * streamed.constants["overhead_s"]},
        details={
            "passes": way.num_passes(bits),
            "crossings": way.num_crossings(bits),
            "digit_bits": way.digit_bits,
            "keys_per_s": keys / radix.sort_s(way, keys, bits, device),
        },
        because=(
            f"every key crosses the memory {way.num_crossings(bits):g} times in {way.num_passes(bits)} passes; "
            f"bytes at the rate of a streaming addition, {origin(streamed, device)}",
        ),
    )


PRODUCTS = {"by-rows": by_rows, "outer": outer, "inner": inner}
SPARSE = {
    "by-rows": "each entry of a row of A brings a row of B; sums in a hash table on chip",
    "outer": "both read once, partial products out and in",
    "inner": "every row of A meets every column of B",
}


@cache
def _drawn(log2_rows: int, entries_per_row: int, seed: int) -> tuple[Sparse, Sparse]:
    random = np.random.default_rng(seed)
    return recursive(log2_rows, entries_per_row, random), recursive(log2_rows, entries_per_row, random)


@cache
def _traffic(name: str, log2_rows: int, entries_per_row: int, seed: int) -> Traffic:
    return PRODUCTS[name](*_drawn(log2_rows, entries_per_row, seed))


def sparse(work: Work) -> Iterator[Way]:
    """The three orders of a product of two drawn matrices."""
    for name in PRODUCTS:
        yield Way(variant=name, format="fp64 with 32-bit indices", find=partial(_sparse, work, name))


def _sparse(work: Work, name: str) -> Found:
    drawn = (work.size("log2_rows"), work.size("entries_per_row"), work.size("seed"))
    traffic, (left, right) = _traffic(name, *drawn), _drawn(*drawn)
    share, memory = _streamed_frac(work.device), work.device.memory_bandwidth_bytes_per_s
    flops = 2.0 * num_partial_products(left, right)
    memory_s = traffic.memory_bytes / memory
    compute_s = flops / work.device.vector_flops_per_s
    return Found(
        time_s=max(memory_s / share, compute_s),
        flops=flops,
        bytes=traffic.memory_bytes,
        roofs_s={"compute": compute_s, "memory": memory_s},
        details={
            "read_bytes": traffic.read_bytes,
            "written_bytes": traffic.written_bytes,
            "atomics": traffic.num_atomics,
            "entries": left.num_entries,
        },
        because=(
            f"{left.num_entries} entries in {left.num_rows} rows; bytes at {percent(share)} of the bandwidth, as "
            "streaming kernels reach",
        ),
    )


def _streamed_frac(device: Device) -> float:
    return min(1.0, calibration(radix.STREAM, device).constants["bandwidth_frac"])


GATHERS = {"gather": "rows of a table in memory, in whole lines"}


def gathers(work: Work) -> Iterator[Way]:
    """Vectors of ``width`` elements from places all over a table."""
    for format in work.list_of("format", ("bf16",)):
        yield Way(variant="gather", format=get_format(format).name, find=partial(_gather, work, format))


def _gather(work: Work, format: str) -> Found:
    device, vectors = work.device, work.size("tokens")
    vector_bytes = work.size("width") * get_format(format).bytes_per_element
    line = line_bytes(device)
    useful = useful_frac(vector_bytes, line)
    moved = vectors * (vector_bytes / useful + vector_bytes)  # fetched in lines, written as they are
    share = _streamed_frac(device)
    memory_s = moved / device.memory_bandwidth_bytes_per_s
    return Found(
        time_s=memory_s / share,
        flops=0.0,
        bytes=moved,
        roofs_s={"memory": memory_s},
        details={"line_bytes": line, "useful_frac": useful},
        because=(
            f"lines of {line:g} bytes, of which {percent(useful)} are wanted; bytes at {percent(share)} of the "
            "bandwidth, as streaming kernels reach",
        ),
    )


READS = frozenset({"format", "engine"})
NAMES = {
    "norm": "norm",
    "rope": "rope",
    "gated-activation": "gated_activation",
    "add": "add",
    "embedding": "embedding",
    "sample": "sample",
    "quantize": "quantise",
}
"""Operator -> the kind that its measured tables call it by."""

ELEMENTWISE = tuple(
    Operator(name=name, sizes=TWO_D, ways=partial(elementwise, kind), variants={"library": LIBRARY}, settings=READS)
    for name, kind in NAMES.items()
)
SOFTMAX = Operator(
    name="softmax",
    sizes=TWO_D,
    ways=softmax,
    settings=READS,
    variants={
        "library": LIBRARY,
        "reload": "three passes, exponentials kept in memory",
        "recompute": "three passes, exponentials computed twice",
        "two-pass": "two passes, sums as mantissa and exponent",
    },
    spellings={"three-pass-reload": "reload", "three-pass-recompute": "recompute"},
)
GATHER = Operator(name="gather", sizes=TWO_D, ways=gathers, variants=GATHERS, settings=frozenset({"format"}))
SORT = Operator(name="sort", sizes={"keys": None, "key_bits": 32}, ways=sorts, variants=SORTS)
SPGEMM = Operator(
    name="spgemm", sizes={"log2_rows": None, "entries_per_row": 8, "seed": 0}, ways=sparse, variants=SPARSE
)
