"""Runs every compiled function of the vectorised rooms on drawn inputs, and writes all answers to a file.

``python kernel_battery.py FILE``: what runs is what the process imports, so ``ORRERY_PLAIN=1`` runs plain Python.
"""

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from orrery.base.compiled import PLAIN
from orrery.kernels.attention import _kernel as attention
from orrery.kernels.attention.features import _kernel as attention_features
from orrery.kernels.elementwise import _kernel as elementwise
from orrery.kernels.energy import _kernel as energy
from orrery.kernels.gemm import _kernel as gemm
from orrery.kernels.latent import _kernel as latent
from orrery.kernels.moe import _kernel as moe
from orrery.kernels.recurrent import _kernel as recurrent
from orrery.kernels.residual import _kernel as residual
from orrery.numerics.codec import _kernel as codec
from orrery.planner import _kernel as front

ROOMS = ("kernels", "numerics", "planner")
COUNT = 40

Call = tuple[Any, str, tuple[Any, ...]]  # module, function, arguments

rng = np.random.default_rng(18)


def sizes(count: int, most: int = 4096) -> list[np.ndarray]:
    """Columns of whole numbers, small ones as often as large ones; zeros among them."""
    drawn = np.exp2(rng.uniform(0, np.log2(most), (count, COUNT))).astype(np.int64)
    drawn[0, :2] = 0
    return list(drawn)


def numbers(count: int = COUNT, low: float = 0.1, high: float = 1.0) -> np.ndarray:
    """Fractions."""
    return rng.uniform(low, high, count)


def each(columns: list[np.ndarray]) -> Iterator[tuple[Any, ...]]:
    """The first rows of columns, as plain numbers."""
    for i in range(0, COUNT, 5):
        yield tuple(column[i].item() for column in columns)


def attention_calls() -> Iterator[Call]:
    """Prompts and decode steps, with and without windows, heads grouped or not."""
    batch, query, more, heads, group, size, value, window = sizes(8)
    group = np.maximum(1, group % 9)
    columns = [batch % 64, query, query + more, heads * group, heads, size % 512, value % 512, window * (window % 2)]
    machine, decoding = (
        np.array([1e15, 3e12, 132.0, 4e12, 5e7, 2.0, 1.0]),
        np.array([1e15, 3e12, 132.0, 5e7, 2.0, 1.0]),
    )
    for causal, packs in ((True, 1.0), (True, 0.0), (False, 0.0)):
        constants = np.array([2e-6, *numbers(8), 0.5, 128.0, 64.0, packs, 16.0])
        fixed = (causal, machine, constants)
        yield attention, "prefill", (*columns, *fixed)
        yield attention_features, "prefill_features", (*columns, *fixed, np.empty((6, COUNT)))
        for row in each(columns):
            yield attention, "prefill_scalar", (*row, *fixed)
            yield attention_features, "prefill_features_scalar", (*row, *fixed, np.empty(attention.TERMS))
    columns = [batch, query + more, heads * group, heads, size % 512 + 1, window * (window % 2), 1 + query % 3]
    for is_cold, flags in ((True, (4.0, 1.0, 1.0, 1.0, 1.0)), (False, (0.0, 0.0, 0.0, 0.0, 0.0))):
        constants = np.array([2e-6, *numbers(2), 64.0, 1e-6, 128.0, *numbers(4), *flags])
        fixed = (is_cold, decoding, constants)
        yield attention, "decode", (*columns, *fixed)
        yield attention_features, "decode_features", (*columns, *fixed, np.empty((6, COUNT)))
        for row in each(columns):
            yield attention, "decode_scalar", (*row, *fixed)
            yield attention_features, "decode_features_scalar", (*row, *fixed, np.empty(attention.TERMS))
    columns = [batch, more, heads, size + 64, size + 1, 1 + query % 3]
    for is_cold, tile in ((True, 64.0), (False, 128.0)):
        fixed = (is_cold, decoding, np.array([1e-5, *numbers(3), 60.0, 2e-6, 128.0, *numbers(2), tile]))
        yield latent, "decode", (*columns, *fixed)
        yield latent, "decode_features", (*columns, *fixed, np.empty((6, COUNT)))
        for row in each(columns):
            yield latent, "decode_scalar", (*row, *fixed)
            yield latent, "decode_features_scalar", (*row, *fixed, np.empty(latent.TERMS))
        for enters in (0.0, 1.0, 2.0):
            fixed = (is_cold, decoding[:5].copy(), np.array([4e-6, *numbers(2), 100.0, *numbers(2), enters]))
            yield latent, "absorb", (*columns[:4], *fixed)
            for row in each(columns[:4]):
                yield latent, "absorb_scalar", (*row, *fixed)


def other_kernel_calls() -> Iterator[Call]:
    """Products, experts, recurrences, element-wise work, trees, power."""
    m, n, k, batch = (column.astype(np.float64) for column in sizes(4, 1 << 14))
    batch = 1.0 + batch % 4
    rest = (2.0, 8.0, 16.0, 2.0, 1e-6, 0.5, 2e-6, 0.5, 3e-6)
    constants = np.array([*numbers(2), 2e-6, 1.5, 0.2, 1e-9, 1e-6, 1e-6, *numbers(3), *rest])
    machine = np.array([132.0, 1e15, 6e13, 3.3e12, 5e7, 2.0, 1.0, 2.0, 2.0])
    tiles = np.array([[64.0, 64.0], [64.0, 128.0], [128.0, 256.0], [256.0, 128.0]])
    for is_cold, quantises in ((True, False), (False, True)):
        fixed = (constants, machine, tiles, is_cold, quantises)
        yield gemm, "many", (m, n, k, batch, *fixed, np.empty((COUNT, gemm.COLUMNS)))
        for row in each([m, n, k, batch]):
            yield gemm, "scalar", (*row, *fixed)
    rows = numbers(COUNT * gemm.COLUMNS).reshape(COUNT, -1)
    yield gemm, "features", (m + 1.0, n + 1.0, k + 1.0, rows, machine, np.empty((COUNT, len(gemm.FEATURES))))
    columns = [1.0 + column for column in (m, n, k)] + [64.0 * batch, batch, batch, batch * 2.0]
    tables = np.sort(rng.uniform(1.0, 64.0, (2, 9, 2 + moe.NUM_HEIGHTS)), axis=1)
    which = rng.integers(-1, 2, COUNT)
    for flags in ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)):
        vector = np.array([1e-5, 1e-5, 1e-7, *numbers(4), 60.0, *numbers(2), *flags])
        rates = np.array([132.0, 9.9e14, 3.35e12, 5e7, 2.0, 1.0])
        out = np.empty((COUNT, moe.COLUMNS + len(moe.FEATURES)))
        yield moe, "many", (*columns, 2.0, which, tables, vector, rates, out)
        for row in each(columns):
            yield moe, "scalar", (*row, 1.0, tables[0], vector, rates)
            yield moe, "scalar", (*row, 2.0, tables[0, :0], vector, rates)
    ranges = np.array([[4.0, 64.0], [8.0, 512.0], [8.0, 512.0], [1.0, 64.0]])
    logs = numbers(COUNT, -1.0, 1.0)
    yield moe, "all_corrected", (numbers(), numbers(), logs, 0.5, m + 1.0, n + 1.0, k + 1.0, batch, ranges)
    for row in each([numbers(), numbers(), logs]):
        yield moe, "corrected", (*row, 0.5, 1000.0, 300.0, 4.0, 8.0, ranges)
    columns = [m, batch, n, k, n, batch * 8.0, np.where(n > 99.0, n, 0.0)]
    rates = np.array([1e15, 3e12, 132.0, 5e7])
    for is_decode, is_cold in ((True, True), (True, False), (False, True), (False, False)):
        recurrence = (
            np.array([3e-6, *numbers(1), 1.7, 2.0]) if is_decode else np.array([3e-6, *numbers(2), 1e-6, 2.2, 1.4, 2.0])
        )
        fixed = (2.0, is_decode, is_cold, recurrence, np.array([2e-6, 0.7, 1.6, 3.0]), rates)
        yield recurrent, "many", (*columns, *fixed, np.empty((COUNT, recurrent.COLUMNS)))
        for row in each(columns):
            yield recurrent, "scalar", (*row, *fixed)
    vector, rates = np.array([2e-6, 0.8, 1.7, 0.4]), np.array([6e13, 3e12, 5e7])
    yield elementwise, "many", (m * n, 4.0, 5.0, vector, rates, np.empty((COUNT, elementwise.COLUMNS)))
    for (elements,) in each([m * n]):
        yield elementwise, "scalar", (elements, 4.0, 5.0, vector, rates)
    for row in each([numbers(), numbers(), numbers()]):
        yield energy, "drawn_frac", (*row, 0.7)
    for nearby, share in each([numbers(), numbers()]):
        for x in (nearby * (1.0 + 1e-4 * share), nearby * (2.0 + share)):  # near enough for the series, and not
            yield energy, "power_near", (x, 0.7, nearby, nearby**0.7)
    words = [np.array(x, np.int32) for x in ([0, 3], [2, 1], [0, 0, 0, 1, 0, 0], [1, 1, 2, 4, 4, 5])]
    roots, depths, feature, low = words
    threshold = np.array([0.5, np.inf, np.inf, 0.3, np.inf, np.inf], np.float32)
    value = rng.standard_normal(6).astype(np.float32)
    x = numbers(2 * 21).reshape(21, 2)
    yield residual, "total", (x, roots, depths, feature, threshold, low, value, np.empty(21))
    yield residual, "faded", (m, 30.0, 900.0, numbers())
    values = rng.integers(0, 6, (60, 3)).astype(np.float64)
    yield front, "mark_reached", (values, values[:20] + 1.0, np.zeros(60, np.bool_))


def codec_calls() -> Iterator[Call]:
    """Numbers of every size, with zeros, infinities and NaN among them."""
    count = 400
    x = (rng.standard_normal(count) * np.exp2(rng.integers(-140, 120, count))).astype(np.float32)
    x[:8] = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -3.4e38]
    wide, plain, narrow = x.astype(np.float64), rng.standard_normal(count).astype(np.float32), np.float32
    limits = np.array([448.0, -448.0, np.nan, -np.inf, np.nan, -0.0])
    chance = 1.0 - rng.random(count)

    def out(like: np.ndarray = x) -> np.ndarray:
        return np.zeros_like(like)

    for ladder in ((-6, 3, -9), (-14, 2, -16), (0, 1, -1)):
        yield codec, "round_nearest_f32", (x, out(), *ladder, limits.astype(narrow))
        for mode in range(9):
            yield codec, "round_f64", (wide, out(wide), *ladder, limits, mode, chance)
            yield codec, "round_f64", (x, out(), *ladder, limits, mode, chance)
    yield codec, "round_powers_f32", (x, out(), narrow(np.inf))
    for bits in (7, 10, 23):
        yield codec, "round_bits_f32", (x, out(), bits, limits.astype(narrow))
    thresholds, table = np.sort(rng.standard_normal(15)).astype(narrow), np.sort(rng.standard_normal(16)).astype(narrow)
    keys = (np.arange(1 << 16, dtype=np.int64) - (1 << 15)) << 16
    first = np.where(keys < 0, keys ^ 0x7FFFFFFF, keys).astype(np.int32).view(narrow)
    places = np.searchsorted(thresholds, np.where(np.isnan(first), np.copysign(np.inf, first), first))
    starts = np.append(places, thresholds.size).astype(np.int32)
    for kind in (np.float32, np.float64, np.uint8, np.uint16):
        entries = (table * 50 + 128).astype(kind)
        yield codec, "look_up_f32", (x, np.zeros(count, kind), entries, thresholds, starts, 7.0)
        yield codec, "look_up_f64", (wide, np.zeros(count, kind), entries, thresholds.astype(np.float64), 7.0)
    e4m3 = np.concatenate(
        [np.ldexp(np.arange(8.0, 16.0), e) for e in range(-9, 6)] + [np.arange(8.0) * 2.0**-9, [np.nan]]
    )
    e4m3 = np.concatenate([e4m3, -e4m3])
    for kind in (np.uint8, np.uint16, np.uint32):
        codes = np.zeros(e4m3.size, kind)
        yield codec, "encode_f32", (e4m3.astype(narrow), codes, 20, 120 << 3, 2.0**-6, 2.0**9, 8, 127, 128, 127)
        yield codec, "encode_fixed_f32", (np.rint(plain * 40), np.zeros(count, kind), narrow(1.0), 255)
    for kind, bits in ((np.uint16, 16), (np.uint32, 32)):
        infinity = 0xFF << (bits - 9)
        yield codec, "encode_bits_f32", (x, np.zeros(count, kind), bits - 9, bits, infinity + (infinity >> 9), infinity)
    for kind in (np.uint8, np.uint16, np.uint32, np.uint64):
        codes = np.zeros(e4m3.size, kind)
        yield codec, "encode_f64", (e4m3, codes, 49, 1016 << 3, 2.0**-6, 2.0**9, 8, 127, 128, 127)
        yield codec, "encode_fixed_f64", (np.rint(plain * 40.0).astype(np.float64), np.zeros(count, kind), 1.0, 255)
    for kind in (np.uint8, np.uint16):
        codes = rng.integers(0, 256, count).astype(kind)
        yield codec, "decode_table", (codes, rng.standard_normal(256).astype(narrow), out())
        yield codec, "decode_fixed", (codes, 128, -127, narrow(0.5), out())
    rows = np.concatenate([plain, x]).reshape(8, 100)
    for size in (16, 32, 100):
        groups = -(-100 // size)
        scale = (np.abs(rng.standard_normal((8, groups))) + 0.1).astype(narrow)
        scale[3, 0] = 0.0
        yield codec, "group_amax", (rows, size, np.zeros_like(scale))
        yield codec, "group_ends", (rows, size, np.zeros_like(scale), np.zeros_like(scale))
        for divides in (True, False):
            fixed = (scale, divides, scale + narrow(0.5))
            yield codec, "round_groups_f32", (rows, size, *fixed, out(rows), 0, 1, -1, limits.astype(narrow))
        for name in ("divide_groups", "multiply_groups", "add_groups"):
            yield codec, name, (rows, size, scale, out(rows))
    yield codec, "add_errors", (plain, np.rint(plain), np.zeros(7))
    yield codec, "add_errors", (plain.astype(np.float64), wide, np.zeros(7))
    yield codec, "add_sizes", (x, 1e5, np.zeros(4))
    yield codec, "add_sizes", (wide, 1e5, np.zeros(4))


def answers() -> dict[str, np.ndarray]:
    """What every call answers, and what its arguments hold afterwards."""
    found: dict[str, np.ndarray] = {}
    for calls in (attention_calls, other_kernel_calls, codec_calls):
        for number, (module, name, arguments) in enumerate(calls()):
            label = f"{module.__name__} {name} {number}"
            with np.errstate(all="ignore"):
                answer = getattr(module, name)(*arguments)
            if answer is not None:
                found[label] = np.asarray(answer)
            for place, argument in enumerate(arguments):
                if isinstance(argument, np.ndarray):
                    found[f"{label} {place}"] = argument
    return found


if __name__ == "__main__":
    is_plain = inspect.isfunction(gemm.many)
    print("plain" if is_plain else f"compiled (unset {PLAIN})")
    np.savez(sys.argv[1], **answers())
