"""Sparse and wide-result products, a step's demand, borrowed constants and placed copies, worked out by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.kernels.attention import choice
from orrery.kernels.elementwise.rule import machine_vector
from orrery.kernels.energy.steps import StepLaw
from orrery.kernels.gemm import rule as gemm
from orrery.kernels.latent import prefill as latent
from orrery.kernels.lowbit.lanes import VectorCores, product_s
from orrery.kernels.moe import rule as moe
from orrery.kernels.moe.replicas import placed
from orrery.kernels.ops import Gemm, MoE, Recurrent
from orrery.kernels.resolve import is_as_wide

# --- what a product's machine is


def machine(**op):
    """Rate, and bytes of weights and of results, of a machine with 8 FLOP/s, 2 and 4 bytes."""
    plain = np.zeros(len(gemm.kernel.MACHINE))
    plain[[gemm.RATE, gemm.WEIGHT, gemm.RESULT]] = 8.0, 2.0, 4.0
    found = gemm._machine_for(Gemm(m=1, n=1, k=1, format="bf16", **op), plain)
    assert plain[[gemm.RATE, gemm.WEIGHT, gemm.RESULT]].tolist() == [8.0, 2.0, 4.0]
    return found[[gemm.RATE, gemm.WEIGHT, gemm.RESULT]].tolist()


def test_half_of_the_weights_with_two_bits_each_to_say_which():
    """Twice the rate, and 0.5 (2 + 2 / 8) bytes a weight; results as wide as the op says."""
    assert machine() == [8.0, 2.0, 4.0]
    assert machine(kept_frac=0.5, index_bits=2.0) == [16.0, 1.125, 4.0]
    assert machine(result_bytes=1.0) == [8.0, 2.0, 1.0]
    assert machine(kept_frac=0.25, result_bytes=2.0) == [32.0, 0.5, 2.0]


def test_latent_attention_has_one_matrix_rate_and_neither_window_nor_packing():
    values = {name: float(i) for i, name in enumerate(latent.CONSTANTS, start=1)}
    assert latent.vector(values).tolist() == [1, 2, 2, 2, 2, 3, 4, 5, 0, 6, 7, 8, 0, 9]


def test_no_cache_counts_as_one_byte():
    def device(cache_bytes):
        return SimpleNamespace(
            vector_flops_per_s=3.0, memory_bandwidth_bytes_per_s=5.0, last_level_cache_bytes=cache_bytes
        )

    assert machine_vector(device(7.0)).tolist() == [3, 5, 7]
    assert machine_vector(device(0.0)).tolist() == [3, 5, 1]


def test_a_step_that_takes_no_time_demands_nothing():
    """Half of the time in products and a quarter in memory, to the power of a half: 0.7071 + 0.5."""
    law = StepLaw(idle_w=10.0, span_w=100.0, matrix_weight=1.0, memory_weight=1.0, concave_power=0.5)
    assert law.demand_frac(2.0, 1.0, 4.0) == pytest.approx(0.5**0.5 + 0.5)
    assert law.demand_frac(2.0, 1.0, 0.0) == 0.0
    assert law.powers_w(np.array([2.0, 0.25]), np.array([1.0, 0.25]), np.array([4.0, 4.0])) == pytest.approx(
        [110.0, 10 + 100 * 0.5]
    )


# --- lanes


def test_four_bits_that_are_not_packed_are_spread_to_eight():
    """16 products an instruction; a mask and a shift for 16 weights, three instructions for four results."""
    cores = VectorCores(
        num_cores=4, clock_hz=1e9, register_bits=128, num_units=1, has_dot_products=True, memory_bytes_per_s=1e18
    )
    multiplied, spread, scaled = 8 * 64 * 32 / 16, 2 * 64 * 32 / 16, 3 * 8 * 64 / 4
    assert product_s(8, 64, 32, 4, 4, cores, is_packed=False) == pytest.approx((multiplied + spread + scaled) / 4e9)
    assert product_s(8, 64, 32, 4, 4, cores) == pytest.approx((multiplied / 2 + scaled) / 4e9)
    assert product_s(8, 64, 32, 8, 8, cores, is_packed=False) == pytest.approx((multiplied + scaled) / 4e9)


# --- constants that are borrowed


def measured(origin, engine="e"):
    return SimpleNamespace(origin=origin, engine=engine, law="", name=f"{origin} {engine}")


@pytest.mark.parametrize(
    ("known", "engine", "taken", "kin", "other"),
    [
        ({("first", "e"): "device", ("second", "e"): "device"}, "e", ("first", "e"), False, False),
        ({("second", "e"): "device"}, "e", ("second", "e"), True, False),
        ({("first", "f"): "device"}, "e", ("first", "f"), False, True),
        ({("first", "f"): "device"}, "", ("first", "f"), False, False),  # no engine was asked for
        ({("first", "e"): "any", ("second", "e"): "device"}, "e", ("second", "e"), True, False),
        ({("first", "f"): "device", ("second", "e"): "device"}, "e", ("first", "f"), False, True),
        ({("second", "f"): "generation"}, "e", ("second", "f"), True, True),
    ],
)
def test_constants_of_kin_and_of_other_engines_are_widened(monkeypatch, known, engine, taken, kin, other):
    """The device's own class first, then its engine; what was measured on any device comes last."""
    made = {("attention", key, maker): measured(origin, maker) for (key, maker), origin in known.items()}
    device = SimpleNamespace(name="d", calibrations=made, peak_flops_per_s=lambda rates: (rates[0], 1.0))
    monkeypatch.setattr(choice, "ENGINES", ("e", "f"))
    monkeypatch.setattr(choice, "ALIKE", {})
    monkeypatch.setattr(choice, "_keys", lambda device, compute, kv: ["first", "second"])
    monkeypatch.setattr(
        choice, "get_format", lambda name: SimpleNamespace(name=name, bytes_per_element=2, rates=("x",))
    )
    monkeypatch.setattr(choice, "widened", lambda found, is_kin, is_other_engine: (found, is_kin, is_other_engine))
    monkeypatch.setattr(choice, "unhindered", lambda found, device, format, names: found)
    found = choice.choose.__wrapped__(device, "attention", "bf16", "bf16", engine)
    assert found.calibration == (made["attention", *taken], kin, other)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("fp8", "int8", True),
        ("fp8", "bf16", False),
        ("int8", "int8_weight_only", False),  # one leaves activations wide
        ("nvfp4", "mxfp4", True),  # scales aside
        ("nvfp4", "fp8", False),
    ],
)
def test_formats_of_as_many_bits(one, other, alike):
    assert is_as_wide(one, other) is alike


# --- experts


def test_copies_share_the_load_of_their_expert():
    """Half, 0.4 and 0.1, the first on two places: the second expert is the heaviest place, and stands with the last."""
    places = placed(np.array([0.5, 0.4, 0.1]), np.array([2, 1, 1]), 2)
    assert places.tolist() == [1, 2, 0, 0]


def test_rows_that_route_alike_have_one_table_and_others_their_own():
    """Experts dealt out evenly have none; a law by which loads fall has one for each number of ranks."""
    shape = {"hidden_size": 4, "ffn_size": 4, "format": "bf16"}
    even = MoE(tokens=np.array([1, 2]), num_experts=4, experts_per_token=1, **shape)
    assert moe.prepared(even)[1].tolist() == [-1, -1]
    several = MoE(tokens=8, num_experts=4, experts_per_token=1, ep=np.array([1, 2, 1]), skew=1.0, **shape)
    _, which, tables = moe.prepared(several)
    assert which.tolist() == [0, 1, 0]
    assert len(tables) == 2
    none = MoE(tokens=8, num_experts=np.array([1, 1]), experts_per_token=1, skew=1.0, **shape)
    _, which, tables = moe.prepared(none)
    assert which.tolist() == [-1, -1]
    assert tables.shape == (1, 1, 2 + moe.kernel.NUM_HEIGHTS)


def test_what_an_op_leaves_unsaid():
    """Decoding from memory, one head, no convolution; experts of gated networks on one rank, each once."""
    step = Recurrent(tokens=1, sequences=1, state_elements=1, flops_per_token=1.0)
    assert (step.is_decode, step.is_cold, step.num_heads, step.conv_elements, step.width) == (True, True, 1, 0, 0)
    assert step.state_bytes_per_element == 4.0
    block = MoE(tokens=1, hidden_size=1, ffn_size=1, num_experts=1, experts_per_token=1, format="bf16")
    assert (block.tp, block.ep, block.skew, block.num_redundant_experts, block.is_gated) == (1, 1, 0.0, 0, True)
    product = Gemm(m=1, n=1, k=1, format="bf16")
    assert (product.batch, product.is_cold, product.kept_frac) == (1, True, 1.0)
