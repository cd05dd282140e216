"""Formats by layer on an FPGA: shares of its fabric by hand, what blocks change, limits and refusals."""

import pytest

from orrery import bits, compare_formats
from orrery.base.errors import OutOfRange, ScenarioError
from orrery.catalog.devices import get_device
from orrery.kernels.ops import MoE
from orrery.planner.bits.fabric import Fabric
from orrery.planner.bits.layer import product

CARD = get_device("alveo-u280")
TABLES, BLOCKS = Fabric(device=CARD, cost="lut", num_terms=1024), Fabric(device=CARD, cost="dsp", num_terms=1024)
HERTZ = 300e6


def test_a_product_takes_its_share_of_the_fabric_by_hand():
    # int8: 89 tables of 0.7 x 1,304,000, a multiply-add a cycle of 300 MHz each
    time_s, flops, moved = TABLES.once(product(1024, 512, 2048), "int8")
    macs = 1024 * 512 * 2048
    assert time_s == pytest.approx(macs * 89 / (0.7 * 1_304_000) / HERTZ)
    assert flops == 2 * macs
    assert moved == pytest.approx(1024 * 2048 + 2048 * 512 + 1024 * 512)
    # two at once in each of 0.7 x 9,024 blocks
    assert BLOCKS.once(product(1024, 512, 2048), "int8")[0] == pytest.approx(macs / (2 * 0.7 * 9024) / HERTZ)
    assert TABLES.energy_j("int8", 2.0, flops, moved) == 2.0 * 225


def test_floats_on_blocks_may_wait_for_the_tables_beside_them():
    assert BLOCKS.share("e2m1/row") == max(0.25 / (0.7 * 9024), 41 / (0.7 * 1_304_000))
    assert BLOCKS.share("e5m2/row") > BLOCKS.share("e4m3/row") > BLOCKS.share("int8")


def test_a_product_of_one_row_waits_for_its_weights_in_any_circuit():
    one, other = (TABLES.once(product(1, 4096, 4096), name)[0] for name in ("int4/row", "e2m1/row"))
    assert one == other == pytest.approx((4096 * 4096 + 2 * 4096) / 2 / 460e9)


def test_what_has_no_circuit_is_refused():
    with pytest.raises(OutOfRange, match="mixture"):
        TABLES.share("q4_k_m")
    experts = MoE(tokens=1, hidden_size=8, ffn_size=8, num_experts=2, experts_per_token=1, format="bf16")
    with pytest.raises(OutOfRange, match="experts"):
        TABLES.once(experts, "int8")
    for change, words in (
        ({"device": "h100-sxm"}, "states no lookup tables"),
        ({"cost": "gates"}, "write lut or dsp"),
        ({"cost": None, "sum_terms": 8}, "no effect without cost"),
        ({"engine": "vllm"}, "engine: of kernels"),
    ):
        settings = {"model": "llama-3.2-1b", "device": "alveo-u280", "formats": "int8,int4", "cost": "lut", **change}
        with pytest.raises(ScenarioError, match=words):
            bits(**{k: v for k, v in settings.items() if v is not None})


def test_the_mixture_meets_the_limit_and_no_limit_takes_the_widest():
    settings = {"model": "llama-3.2-1b", "device": "alveo-u280", "formats": "int8,int5/row,int4/row", "tokens": 256}
    free, tight = bits(**settings, cost="lut"), bits(**settings, cost="lut", latency_ratio=0.6)
    eight, _, four = free.uniform
    assert eight.latency_s / four.latency_s == pytest.approx(89 / 33)
    assert set(free.best.formats) == {"int8"}
    assert tight.best.total("latency") <= 0.6 * eight.latency_s
    assert eight.perturbation_ratio < tight.best.perturbation_ratio < four.perturbation_ratio


def test_formats_side_by_side_by_tables_and_by_blocks():
    names = ("int4/row", "int8", "e2m1/row", "nf4")
    plain, tables, blocks = (compare_formats(*names, **more) for more in ({}, {"cost": "lut"}, {"cost": "dsp"}))
    assert [r.circuit for r in plain.results] == [None] * 4
    assert [r.circuit and r.circuit.luts for r in tables.results] == [33, 89, 44, None]
    assert [r.circuit and r.circuit.dsps for r in blocks.results] == [0.25, 0.5, 0.25, None]
    assert "lut" in tables.results[1].fronts
    assert not any("lut" in r.fronts for r in plain.results)
    assert any(note.startswith("nf4: no circuit") for note in tables.notes)
    shorter = compare_formats("int8", cost="lut", sum_terms=1).results[0].circuit
    assert shorter.luts == 89 - 10
    # other cost, other front: int4 is the cheapest in tables, and as cheap as e2m1 in blocks, which keeps more
    assert "lut" in tables.results[0].fronts
    assert "dsp" not in blocks.results[0].fronts
