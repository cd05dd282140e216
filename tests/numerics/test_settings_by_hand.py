"""Settings of recipes and rules: their ends, what they are where nobody says, and words that spell formats out."""

from dataclasses import fields
from math import inf

import pytest

from orrery.base.errors import UnknownName
from orrery.numerics.arithmetic.accumulation import Platform
from orrery.numerics.arithmetic.channel_blocks import BlockKnobs
from orrery.numerics.arithmetic.dyadic import RequantiseKnobs
from orrery.numerics.arithmetic.integer import ExpKnobs, check_step
from orrery.numerics.arithmetic.ledger import Ledger
from orrery.numerics.arithmetic.matmul import Counts
from orrery.numerics.arithmetic.techniques.accumulation_fixed_point import FixedPointKnobs
from orrery.numerics.arithmetic.techniques.gelu_shift import GeluKnobs
from orrery.numerics.arithmetic.techniques.matmul_bit_decomposed import BitDecomposedKnobs
from orrery.numerics.arithmetic.techniques.matmul_element_scaled import ElementScaledKnobs
from orrery.numerics.arithmetic.techniques.matmul_group_scaled import GroupScaledKnobs
from orrery.numerics.arithmetic.techniques.matmul_lookup import LookupKnobs
from orrery.numerics.experiments.fitting import Plan
from orrery.numerics.experiments.networks import Decoder
from orrery.numerics.experiments.studies import dfp, fp4_design_space
from orrery.numerics.families.fixed import Fixed
from orrery.numerics.families.minifloat import Minifloat
from orrery.numerics.format import Format
from orrery.numerics.learning.techniques.gaussian_weights_linear import GaussianWeightsKnobs
from orrery.numerics.learning.techniques.integer_linear import IntegerKnobs
from orrery.numerics.learning.techniques.nvfp4_linear import Nvfp4Knobs
from orrery.numerics.learning.techniques.quartet_linear import QuartetKnobs
from orrery.numerics.learning.techniques.rounded_linear import RoundedKnobs
from orrery.numerics.recipes.compensated import Compensation
from orrery.numerics.recipes.learned import Learning
from orrery.numerics.recipes.techniques.clipping_search import Clipping
from orrery.numerics.recipes.techniques.exponent_bias import ExponentBias
from orrery.numerics.recipes.techniques.format_search import FormatSearch
from orrery.numerics.recipes.techniques.hadamard import Hadamard
from orrery.numerics.recipes.techniques.kurtail import KurTail
from orrery.numerics.recipes.techniques.low_rank import LowRank
from orrery.numerics.recipes.techniques.mr_gptq import MicroRotated
from orrery.numerics.recipes.techniques.power_exponent import PowerExponent
from orrery.numerics.recipes.techniques.qfx import Qfx
from orrery.numerics.recipes.techniques.smoothquant import SmoothQuant
from orrery.numerics.registry import get_format

WHOLE = [
    (BlockKnobs, "block_elements", 1, 65536),
    (RequantiseKnobs, "num_bits", 2, 16),
    (ExpKnobs, "num_shift_bits", 1, 24),
    (ExpKnobs, "num_output_bits", 2, 16),
    (FixedPointKnobs, "num_bits", 2, 16),
    (FixedPointKnobs, "num_chained", 0, 2**20),
    (BitDecomposedKnobs, "activation_bits", 1, 16),
    (ElementScaledKnobs, "tile_tokens", 1, 2**20),
    (LookupKnobs, "table_inputs", 1, 12),
    (GaussianWeightsKnobs, "block_elements", 1, 4096),
    (IntegerKnobs, "bits", 2, 16),
    (IntegerKnobs, "block_elements", 1, 4096),
    (RoundedKnobs, "hadamard_elements", 0, 4096),
    (Compensation, "block_columns", 1, 65536),
    (Learning, "num_steps", 1, 1_000_000),
    (Clipping, "num_clips", 1, 1000),
    (ExponentBias, "most_shift", 0, 127),
    (FormatSearch, "num_clips", 1, 1000),
    (FormatSearch, "num_rounds", 1, 100),
    (Hadamard, "block_channels", 0, 2**20),
    (KurTail, "block_channels", 0, 2**20),
    (KurTail, "num_steps", 0, 100_000),
    (LowRank, "rank", 1, 65536),
    (MicroRotated, "block_channels", 1, 65536),
    (MicroRotated, "num_clips", 1, 1000),
    (Qfx, "width_bits", 2, 16),
    (Qfx, "num_powers", 0, 16),
    (Qfx, "num_steps", 0, 1_000_000),
]
RATIOS = [
    (GaussianWeightsKnobs, "noise_bits", 1.0, 24.0),
    (RoundedKnobs, "slope_order", 0.0, 100.0),
    (QuartetKnobs, "clip_ratio", 0.5, 10.0),
    (QuartetKnobs, "headroom_frac", 0.1, 1.0),
    (Clipping, "least_ratio", 0.01, 1.0),
    (FormatSearch, "least_ratio", 0.001, 1.0),
    (MicroRotated, "least_ratio", 0.01, 1.0),
    (PowerExponent, "exponent", 0.0, 2.0),
    (SmoothQuant, "migration_frac", 0.0, 1.0),
]
ABOVE = [
    (BlockKnobs, "outlier_ratio", 1.0),
    (Compensation, "damping_frac", 0.0),
    (Learning, "step_ratio", 0.0),
    (Learning, "penalty_ratio", 0.0),
    (KurTail, "turn_ratio", 0.0),
    (MicroRotated, "damping_frac", 0.0),
    (Qfx, "rate_frac", 0.0),
    (Qfx, "point_bits", 0.0),
    (Platform, "num_fused", 0),
    (Platform, "num_splits", 0),
    (Platform, "num_lanes", 0),
]


@pytest.mark.parametrize(("kind", "name", "low", "high"), [*WHOLE, *RATIOS])
def test_a_setting_reaches_both_ends_and_no_further(kind, name, low, high):
    for value in (low, high):
        assert getattr(kind(**{name: value}), name) == value
    beyond = 1 if isinstance(low, int) else 1e-6
    for wrong in (low - beyond, high + beyond):
        with pytest.raises(Exception, match=name):
            kind(**{name: wrong})


@pytest.mark.parametrize(("kind", "name", "low"), ABOVE)
def test_a_setting_is_above_its_end(kind, name, low):
    more = low + (1 if isinstance(low, int) else 1e-6)
    assert getattr(kind(**{name: more}), name) == more
    with pytest.raises(Exception, match=name):
        kind(**{name: low})


DEFAULTS = [
    (Platform, {"num_fused": 8, "num_guard_bits": 1, "num_splits": 1, "num_lanes": 1}),
    (BlockKnobs, {"block_elements": 128, "outlier_ratio": 8.0}),
    (RequantiseKnobs, {"num_bits": 8}),
    (ExpKnobs, {"num_shift_bits": 15, "num_output_bits": 8}),
    (GeluKnobs, {"num_shift_bits": 23, "num_output_bits": 8}),
    (FixedPointKnobs, {"num_bits": 16}),
    (BitDecomposedKnobs, {"activation_bits": 8}),
    (ElementScaledKnobs, {"tile_tokens": 128}),
    (GroupScaledKnobs, {}),
    (LookupKnobs, {"table_inputs": 4}),
    (Counts, {}),
    (Ledger, {}),
    (Plan, {"steps": 200, "points": 64, "learning_rate": 3e-3, "warmup_frac": 0.05, "held_out": 512}),
    (Decoder, {"vocabulary": 32, "tokens": 32, "width": 64, "num_heads": 4, "num_blocks": 2}),
    (dfp.Sizes, {"points": 64}),
    (dfp.Counts, {}),
    (fp4_design_space.Sizes, {"hidden": 64, "layers": 2, "points": 64}),
    (Fixed, {"is_signed": True}),
    (Minifloat, {"is_signed": True, "has_subnormals": True, "has_zero": True}),
    (Format, {}),
    (GaussianWeightsKnobs, {"noise_bits": 4.0, "block_elements": 32}),
    (IntegerKnobs, {"bits": 8, "block_elements": 32, "is_symmetric": True}),
    (Nvfp4Knobs, {"hadamard_elements": 16}),
    (QuartetKnobs, {"clip_ratio": 2.92247856, "headroom_frac": 0.75}),
    (RoundedKnobs, {"is_cast_again": True}),
    (Compensation, {"damping_frac": 0.01, "block_columns": 128}),
    (Learning, {"num_steps": 500, "step_ratio": 0.02, "penalty_ratio": 10.0}),
    (Clipping, {"least_ratio": 0.4, "num_clips": 25}),
    (ExponentBias, {"most_shift": 3}),
    (FormatSearch, {"least_ratio": 0.1, "num_clips": 20, "num_rounds": 2}),
    (Hadamard, {}),
    (KurTail, {"num_steps": 100, "turn_ratio": 0.1, "is_folded": True}),
    (LowRank, {"rank": 8}),
    (
        MicroRotated,
        {"block_channels": 32, "least_ratio": 0.5, "num_clips": 15, "damping_frac": 0.01, "is_act_order": True},
    ),
    (PowerExponent, {}),
    (Qfx, {"width_bits": 8, "num_steps": 200, "rate_frac": 0.003, "point_bits": 0.03}),
    (SmoothQuant, {"migration_frac": 0.5}),
]


@pytest.mark.parametrize(("kind", "on"), DEFAULTS, ids=lambda x: getattr(x, "__name__", ""))
def test_numbers_and_switches_where_nobody_says(kind, on):
    """All others are 0 or off."""
    numbers = {f.name: f.default for f in fields(kind) if type(f.default) in (int, float, bool)}
    assert {name: value for name, value in numbers.items() if value and value != inf} == on


def test_steps_before_an_integer_exponential():
    """From 2^-12 to a quarter."""
    for step in (2.0**-12, 0.25):
        check_step(step)
    for wrong in (2.0**-12.01, 0.2501):
        with pytest.raises(Exception, match="requantise to between"):
            check_step(wrong)


def test_weights_alone_spelled_out():
    """Five bits and a share of a scale of 16 for every 128; a group's scale is a row's; activations stay wide."""
    found = get_format(" INT5/128 ")
    assert found.name == "int5/128:fp16"
    assert found.element.name == "int5"
    assert found.bits_per_element == 5 + 16 / 128
    assert found.bytes_per_element == (5 + 16 / 128) / 8
    assert found.scaling.levels[0].share == (1, 128)
    assert found.weight_only
    assert found.rates == ("bf16", "fp16")
    assert get_format("uint3/64:bf16").element.name == "uint3"
    assert get_format("int1/32").element.name == "bipolar1"
    plain, grouped = get_format("BIPOLAR2"), get_format("bipolar3/64:bf16")
    assert (plain.name, plain.element.name, plain.bits_per_element) == ("bipolar2", "bipolar2", 2)  # a scale a row
    assert (grouped.name, grouped.bits_per_element) == ("bipolar3/64:bf16", 3 + 16 / 64)
    assert plain.weight_only
    for nothing in ("bipolar9", "bipolar0", "int5", "bipolar2/0"):
        with pytest.raises(UnknownName):
            get_format(nothing)
    assert not get_format("int8").weight_only
    assert get_format("bf16").bytes_per_element == 2
    with pytest.raises(UnknownName, match="int5"):
        get_format("int5/x")
    with pytest.raises(Exception, match="text"):
        get_format(5)
