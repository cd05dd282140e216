"""Constants of the questions by hand: units by definition, widths by name, grids by step, sizes that nobody writes."""

import re

import numpy as np
import pytest

from orrery.scenario import (
    answer_budget,
    capacity,
    embeddings,
    format_signal,
    format_speed,
    host_attention,
    image_model,
    link_trace,
    mix,
    objectives,
    power_row,
    quantize,
    quantize_layers,
    recommendation,
    rl_plan,
    rotation_fit,
    safetensors,
    shift,
    speech,
    split,
    sustained,
    train_run,
)
from orrery.scenario.fields_kernel import KERNEL_BY_NAME
from orrery.scenario.fleet import build, wide_area
from orrery.scenario.kernel import products
from orrery.scenario.kernel.operators import OPERATORS
from orrery.scenario.search import blocks
from orrery.scenario.train_with import changed, slices
from orrery.scenario.what_if import break_even


def test_units_by_their_definition():
    hour_s, kilo, mega, giga = 60 * 60, 10**3, 10**6, 10**9
    assert {train_run.S_PER_HOUR, speech.SECONDS_PER_HOUR, shift.S_PER_HOUR} == {hour_s}
    assert {train_run.S_PER_DAY, changed.S_PER_DAY} == {24 * hour_s}
    assert 4 * 365 * 6 * hour_s + 6 * hour_s == build.YEAR_S  # a day in four years more
    assert {split.J_PER_WH, sustained.J_PER_WH} == {hour_s}
    assert kilo * hour_s == shift.J_PER_KWH
    assert kilo * kilo == shift.G_PER_TONNE
    assert shift.MAX_HOURS == 24 * 366
    assert mega == link_trace.BYTES_PER_S_OF_MBIT * 8
    assert giga == wide_area.BYTES_PER_GB
    assert {embeddings.MILLION, recommendation.MILLION, image_model.THOUSAND**2} == {mega}
    assert giga == objectives.LONGEST_MS


@pytest.mark.parametrize(
    ("widths", "unit_bits"),
    [
        (safetensors.BITS, 1),
        (products.LANE_BITS, 1),
        (split.ELEMENT_BYTES, 8),
        (speech.FORMATS, 8),
        (recommendation.FORMATS, 8),
    ],
)
def test_widths_are_in_their_names(widths, unit_bits):
    for name, width in widths.items():
        bits = 8 if name == "BOOL" else int(re.findall(r"\d+", name)[0])
        assert width * unit_bits == bits, name


@pytest.mark.parametrize(
    ("grid", "first", "ratio", "last"),
    [
        (answer_budget.COUNTS, 1, 2, 256),
        (blocks.DEGREES, 1, 2, 8),
        (slices.ROWS, 1, 2, 4),
        (slices.COLUMNS, 1, 2, 4),
        (break_even.RATIOS, 1 / 16, 2, 16),
        (host_attention.CURVE, 1 / 4, 4, 64),
        (mix.EDGES, 64, 4, 16384),
        (products.TEXTBOOK_TILES, 8, 2, 32),
    ],
)
def test_grids_of_equal_ratios(grid, first, ratio, last):
    assert (grid[0], grid[-1]) == (first, last)
    assert np.divide(grid[1:], grid[:-1]).tolist() == [ratio] * (len(grid) - 1)


@pytest.mark.parametrize(
    ("grid", "first", "step", "last"),
    [(break_even.SHARES, 0.05, 0.05, 1.0), (power_row.BUSY, 0.5, 0.1, 1.0), (rl_plan.EIGHTHS, 1, 1, 7)],
)
def test_grids_of_equal_steps(grid, first, step, last):
    assert (grid[0], grid[-1]) == (first, last)
    assert np.diff(grid) == pytest.approx(np.full(len(grid) - 1, step))


def test_tensors_that_nobody_names():
    """A layer's width and a row of blocks of 128, in 16 bits; a prompt is as long as the layer is wide."""
    assert (format_signal.SHAPE, quantize.COLUMNS, quantize.BLOCK_COLUMNS) == ((512, 1024), 1024, 128)
    assert (quantize.WIDE_BYTES * 8, format_speed.SIXTEEN) == (16, 16)
    assert format_speed.PREFILL_TOKENS == format_speed.WIDTH == 8192
    assert rotation_fit.CALIBRATION_TOKENS == 512 * rotation_fit.SEQUENCE_TOKENS == 512 * 2048
    assert (quantize_layers.MAX_OUTPUTS, quantize_layers.MAX_FEATURES) == (512, 4096)
    assert quantize_layers.TOKENS_PER_FEATURE == 2
    assert pytest.approx(3 / 200) == capacity.TOLERANCE


USUAL = {
    ("conv", "taps"): 3 * 3,
    ("attention", "head_size"): 128,
    ("sort", "key_bits"): 32,
    ("spgemm", "entries_per_row"): 8,
    ("rnn", "gates"): 4,
    ("tree-recurrence", "head_size"): 64,
    ("fused-mlp", "rows_per_load"): 128,
    ("launch-queue", "query_tokens"): 512,
    ("instruction", "m"): 64,
    ("instruction", "k"): 16,
}
ALONE = {"batch", "tp", "ep", "num_heads"}


def test_sizes_that_nobody_writes():
    """One product on one device, what the operator usually has, or nothing: then it is worked out from the others."""
    for operator in OPERATORS.values():
        for name, size in operator.sizes.items():
            if size is None:
                continue
            usual = USUAL.get((operator.name, name), 64 if name == "draws" else int(name in ALONE))
            assert size == usual, f"{operator.name}: {name}"
            assert size == 0 or KERNEL_BY_NAME[name].holds(size), f"{operator.name}: {name}"
