"""``orrery formats`` side by side: what is counted where it is asked for, and which fronts a format is on."""

from dataclasses import replace

import pytest

from orrery.base.errors import ScenarioError
from orrery.hardware.lut_count import mac_circuit
from orrery.numerics.parse import parse_format
from orrery.scenario.compare_formats import compare_formats
from orrery.scenario.format_circuits import check_cost, circuit_of, describe


def test_circuits_are_counted_where_they_are_asked_for():
    plain, tables = compare_formats("int4", "int8"), compare_formats("int4", "int8", cost="lut", sum_terms=64)
    assert [row.circuit for row in plain.results] == [None, None]
    four, eight = (row.circuit for row in tables.results)
    assert (four, eight) == tuple(mac_circuit(parse_format(name).element, "lut", 64) for name in ("int4", "int8"))
    assert four.luts < eight.luts
    assert (four.dsps, eight.dsps) == (0, 0)
    assert compare_formats("int8", cost="dsp").results[0].circuit == mac_circuit(
        parse_format("int8").element, "dsp", 1024
    )
    assert any("sums of 64 products exact" in note for note in tables.notes)
    assert not any(note.startswith("cost:") for note in plain.notes)


def test_fronts_without_a_device_are_of_memory_and_of_tables():
    """Fewer bits cost signal: both widths are on the front of memory. Twins are both on it; a wider one with a smaller
    signal is on none."""
    first, second, twin = compare_formats("int4", "int8", "int8/tensor", cost="lut").results
    assert "memory" in first.fronts
    assert "lut" in first.fronts
    assert "memory" in second.fronts
    assert "prefill" not in first.fronts
    assert "dsp" not in first.fronts
    assert ("memory" in twin.fronts) == (twin.sqnr_db >= second.sqnr_db)
    worse = compare_formats("int8", "e5m2/tensor").results[1]  # as wide, and two bits of mantissa
    assert worse.fronts == ()


def test_speed_is_told_on_a_device_alone():
    found = compare_formats("fp8", "int3/16:fp16", device="h100-sxm")
    assert found.base.speed.prefill.speedup_ratio == 1.0
    assert found.results[0].speed.prefill.speedup_ratio > 1.0
    assert found.results[1].speed is None
    assert any(note.startswith("int3/16:fp16: no kernel in this format is known") for note in found.notes)
    assert {"prefill", "decode"} <= set(found.results[0].fronts)
    assert not {"prefill", "decode"} & set(found.results[1].fronts)
    assert (compare_formats("fp8").base, compare_formats("fp8").device) == (None, "")


def test_one_block_size_for_the_formats_that_have_blocks():
    """The smaller of 16 and 32, and crests of which a block can have: below the root of nine tenths of 16."""
    found = compare_formats("nvfp4", "mxfp4", "int8")
    assert found.crest_block_elements == 16
    assert 1.0 < max(row.crest_factor for row in found.by_crest) < (0.9 * 16) ** 0.5
    assert compare_formats("nvfp4", "int8").by_crest == ()


def test_costs_and_their_sums():
    check_cost(None, None)
    check_cost("dsp", 5)
    with pytest.raises(ScenarioError, match="sum_terms: has no effect without cost"):
        check_cost(None, 5)
    with pytest.raises(ScenarioError, match="cost: got 'area'; write lut or dsp"):
        check_cost("area", None)
    notes: list[str] = []
    mixture = replace(parse_format("int8"), name="int4+int8", element=None)
    assert circuit_of(mixture, "lut", None, notes) is None
    assert notes == ["int4+int8: a mixture of formats has no circuit of its own"]
    assert "sums of 1024 products" in describe("lut", None)
    assert "multiplier blocks" in describe("dsp", None)
    with pytest.raises(ScenarioError, match="model: needs a device"):
        compare_formats("fp8", model="llama-3.2-1b")
