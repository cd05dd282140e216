"""Facts of formats counted by hand: values of an element, its edges, its scales, and its speed on a device."""

import math

import pytest

from orrery.catalog.devices import get_device
from orrery.numerics.parse import parse_format
from orrery.scenario.format_facts import edges_of, error_curve, facts_of, plain_facts, scales_of, table_of
from orrery.scenario.format_speed import registered, speed_of

ELEMENTS = {
    # exponents -6 to 8 of eight values, the last of them without its NaN, and seven subnormal ones
    "e4m3fn": (8, 448.0, -448.0, 2.0**-6, 2.0**-9, 2 * (15 * 8 - 1 + 7) + 1),
    # exponents -14 to 15 of four values and three subnormal ones
    "e5m2": (8, 57344.0, -57344.0, 2.0**-14, 2.0**-16, 2 * (30 * 4 + 3) + 1),
    "e2m1": (4, 6.0, -6.0, 1.0, 0.5, 15),
    "fp16": (16, 65504.0, -65504.0, 2.0**-14, 2.0**-24, 2 * (30 * 1024 + 1023) + 1),
    "bf16": (16, (2 - 2**-7) * 2.0**127, -(2 - 2**-7) * 2.0**127, 2.0**-126, 2.0**-133, 2 * (254 * 128 + 127) + 1),
    "int4/row": (4, 7.0, -8.0, None, 1.0, 16),
    "int8": (8, 127.0, -127.0, None, 1.0, 255),
    "q4_1": (4, 15.0, 0.0, None, 1.0, 16),
}


@pytest.mark.parametrize(("name", "facts"), ELEMENTS.items(), ids=ELEMENTS)
def test_values_of_an_element(name, facts):
    element = parse_format(name).element
    found = facts_of(element)
    bits, highest, lowest, smallest_normal, smallest, num_values = facts
    assert (found.element_bits, found.highest, found.lowest) == (bits, highest, lowest)
    assert (found.smallest_normal, found.smallest, found.num_values) == (smallest_normal, smallest, num_values)
    assert found.range_decades == pytest.approx(math.log10(highest / smallest))
    table = table_of(element)
    assert len(table) == (2**bits if bits <= 8 else 0)
    if table:
        assert len({value for value in table if math.isfinite(value)}) == num_values


def test_what_comes_of_numbers_beyond_an_element():
    """Half of the smallest lies between it and 0, which is even; 1.5 times the largest is past it."""
    eight = parse_format("fp8")
    found = edges_of(eight, eight.element)
    assert found["unscaled 672"] == found["unscaled infinity"] == "448 (saturated; else NaN)"
    assert (found["unscaled NaN"], found["unscaled minus zero"]) == ("NaN", "-0")
    assert found["unscaled half of the smallest"] == "0"
    sixteen = parse_format("fp16")
    assert edges_of(sixteen, sixteen.element) == {
        "unscaled 98256": "65504 (saturated; else infinity)",
        "unscaled infinity": "65504 (saturated; else infinity)",
        "unscaled NaN": "NaN",
        "unscaled half of the smallest": "0",
        "unscaled minus zero": "-0",
    }
    wide = parse_format("bf16")  # 1.5 times its largest is no number of 32 bits
    assert len(edges_of(wide, wide.element)) == 4
    short = "the last group of a row"
    blocks = parse_format("mxfp8")
    assert short in edges_of(blocks, blocks.element)
    assert short not in found
    assert edges_of(blocks, blocks.element)["a group of zeros"] == "zeros"
    assert edges_of(blocks, blocks.element)["a group with NaN"] == "all of it becomes NaN"


@pytest.mark.parametrize(
    ("name", "lines", "rule"),
    [
        ("bf16", [], "none: numbers stand as they are"),
        ("nvfp4", ["one e4m3fn scale for 16 in a row", "one fp32 scale a tensor"], "the group's largest magnitude"),
        ("mxfp8", ["one ue8m0 scale for 32 in a row"], "a power of two"),
        ("fp8_block", ["one fp32 scale for a block of 128 x 128"], "the group's largest magnitude"),
        ("int4/row", ["one fp32 scale a row (a channel of weights, a token of activations)"], "the group's largest"),
        ("uint4/16:fp16:zero", ["one fp16 scale for 16 in a row"], "the group's largest"),
    ],
)
def test_scales_in_words(name, lines, rule):
    *found, last = scales_of(parse_format(name))
    assert found == lines
    assert last.startswith(rule)
    assert last.endswith("a whole number of steps is added") == (name == "uint4/16:fp16:zero")


def test_errors_below_the_largest_value():
    """Between 6 and 1.5 a fifth is lost at 5 and at 2.5, the middles of the widest steps; between 1.5 and 0.375 a third
    at 0.75 and, below the smallest, at 0.375."""
    curve = error_curve(parse_format("e2m1").element, 4, 4)
    assert [below for below, _ in curve] == [0.5, 1.5, 2.5, 3.5]
    losses = [loss for _, loss in curve]
    assert losses[0] == losses[1] == pytest.approx(0.2, abs=0.015)
    assert losses[2] == losses[3] == pytest.approx(1 / 3)


def test_what_a_machine_sees_of_a_format():
    """Four bits and a scale of eight for 16 are 4.5; tables are of at most 16 bits."""
    found = plain_facts(parse_format("nvfp4"))
    assert (found["bits_per_element"], found["bytes_per_element"]) == (4.5, 4.5 / 8)
    assert (found["scale_bits_per_element"], found["block_elements"]) == (0.5, 16)
    assert found["has_table"]
    assert not plain_facts(parse_format("fp32"))["has_table"]


def test_a_format_that_spells_out_a_registered_one():
    assert registered(parse_format("nvfp4")).name == "nvfp4"
    assert registered(parse_format("e4m3fn/tensor")).name == "fp8"
    assert registered(parse_format("int3/16:fp16")) is None


def test_speed_of_a_format():
    """An activation is cast from two bytes to one; four-bit weights with a scale of two bytes for 128 are 33 / 64 of a
    byte, 3.88 times fewer."""
    device = get_device("h100-sxm")
    base = speed_of("bf16", device, "", None)
    assert (base.memory_ratio, base.prefill.speedup_ratio, base.prefill.cast_s, base.activations) == (1, 1, 0, "bf16")
    eight = speed_of("fp8", device, "", base)
    assert (eight.rate, eight.peak_flops_per_s, eight.memory_ratio) == ("fp8", 1979e12, 2.0)
    assert (eight.activations, eight.cast_bytes_per_element, eight.scales_per_element) == ("fp8", 3.0, 0.0)
    for one, other, tokens in ((eight.prefill, base.prefill, 8192), (eight.decode, base.decode, 16)):
        assert one.tokens == tokens
        assert one.time_s == one.product_s + one.cast_s > one.product_s
        assert one.speedup_ratio == pytest.approx(other.product_s / (one.product_s + one.cast_s))
        assert one.interval.low_95 < one.product_s < one.interval.high_95
    four = speed_of("int4_weight_only", device, "", base)
    assert (four.activations, four.rate, four.cast_bytes_per_element) == ("bf16", "bf16", 0.0)
    assert four.memory_ratio == pytest.approx(2 * 64 / 33)
    assert four.prefill.cast_s == 0.0
