"""Precision recipes: found because their files exist, with bytes and passes that can be counted by hand."""

import pytest

from orrery.base.errors import UnknownName
from orrery.execution.train.recipe_registry import FOLDER, get_recipe, known_recipes
from orrery.numerics.registry import get_format

ALL = list(known_recipes().values())
each = pytest.mark.parametrize("recipe", ALL, ids=[r.name for r in ALL])


@each
def test_formats_exist_and_sources_are_in_the_comments(recipe):
    for word in (recipe.forward_format, recipe.input_gradient_format, recipe.weight_gradient_format):
        assert get_format(word).name == word
    assert get_format(recipe.wide_format).name == recipe.wide_format
    text = (FOLDER / f"{recipe.name.replace('-', '_')}.toml").read_text(encoding="utf-8")
    comments = "".join(line for line in text.splitlines() if line.startswith("#"))
    assert recipe.sources
    assert all(key in comments for key in recipe.sources)


@each
def test_casts_come_with_rounding_only(recipe):
    ways = (recipe.input_casts, recipe.gradient_casts, recipe.weight_casts)
    if recipe.is_narrow:  # two bytes are read, and something is written
        assert all(c > 2 / 3 for c in ways)
        assert get_format(recipe.forward_format).bytes_per_element < 2
    elif not recipe.rounds:
        assert (*ways, recipe.input_gradient_casts, recipe.keeps_inputs_apart) == (0.0, 0.0, 0.0, 0.0, False)
    assert (recipe.weight_copy_bytes > 0) == recipe.rounds


def test_spellings_lead_to_one_recipe_each():
    words = [w.replace("_", "").replace("-", "") for r in ALL for w in (r.name, *r.aliases)]
    assert len(words) == len(set(words))
    assert get_recipe("FP8-CS").name == "fp8_current"
    assert get_recipe("bf16 true").name == "bf16_pure"
    assert get_recipe("fp8_lm").name == "fp8-lm"


def test_a_wrong_name_carries_the_nearest():
    with pytest.raises(UnknownName) as error:
        get_recipe("mxfp9")
    assert "mxfp8" in error.value.near


@pytest.mark.parametrize(
    ("name", "read", "written", "input_bytes"),
    [
        ("fp8", 2.0, 2.0, 4.0),  # cast and transpose
        ("fp8_current", 4.0, 2.0, 6.0),  # the maximum first
        ("mxfp8", 2.0, 2.0 + 2 / 32, 4.0625),  # both directions, each with scales
        ("fp8_block", 2.0, 2.0 + 8 / 128, 4.0625),
        ("nvfp4", 6.0, 2 * 0.5625, 7.125),  # maxima, the plain copy, the rotated copy
        ("ternary", 2.0, 2.0, 4.0),  # normed and rounded in one pass
    ],
)
def test_passes_are_bytes_over_those_of_a_plain_cast(name, read, written, input_bytes):
    recipe = get_recipe(name)
    assert read + written == pytest.approx(input_bytes)
    assert recipe.input_casts == pytest.approx(input_bytes / 3.0)
    assert recipe.gradient_casts == (recipe.input_casts if recipe.is_narrow else 0.0)


def test_quartet_counts_both_directions_and_masks():
    four, mask = get_format("mxfp4").bytes_per_element, 1 / 8
    r = get_recipe("quartet")
    assert r.saved_input_bytes == r.weight_copy_bytes == pytest.approx(four + mask)
    assert r.input_casts * 3 == pytest.approx(2 + four + mask)
    assert r.gradient_casts * 3 == pytest.approx(2 + 2 * four)
    assert r.input_gradient_casts * 3 == pytest.approx(2 * four + (2 + mask + 2))
    assert r.weight_casts * 3 == pytest.approx((2 + four + mask) + 2 * four + (2 + mask + 2))


def test_layers_as_written_move_and_keep_more_than_fused_ones():
    fused, written = get_recipe("ternary"), get_recipe("ternary_unfused")
    assert (written.input_casts * 3, written.input_gradient_casts * 3) == pytest.approx((32 + 34, 76))
    assert (fused.input_gradient_casts * 3, fused.weight_casts * 3) == pytest.approx((8, 50))
    assert (fused.saved_input_bytes, written.saved_input_bytes) == (2, 4 + 2 + 2)
    assert fused.forward_format == written.forward_format == "bf16"


@pytest.mark.parametrize(("name", "format"), [("mxfp8", "mxfp8"), ("nvfp4", "nvfp4"), ("fp8", "fp8"), ("bf16", "bf16")])
def test_what_waits_for_the_backward_pass_is_the_input_in_its_format(name, format):
    assert get_recipe(name).saved_input_bytes == pytest.approx(get_format(format).bytes_per_element)


@pytest.mark.parametrize(
    ("name", "state_bytes"),
    [
        ("fp8-lm-gradients", 2 + 1 + 0 + 8),
        ("fp8-lm-optimizer", 2 + 1 + 0 + 3),  # the paper's 6 bytes
        ("fp8-lm", 1 + 1 + 2 + 3),  # FP8 weights beside their FP16 master
        ("bf16_pure", 2 + 2 + 0 + 4),
        ("fp32", 4 + 4 + 0 + 8),
    ],
)
def test_state_of_a_parameter(name, state_bytes):
    r = get_recipe(name)
    assert r.weights_bytes + r.gradient_bytes + r.master_bytes + r.moments_bytes == state_bytes


def test_the_levels_of_fp8_lm_each_save_something():
    first, second, third = (get_recipe(n) for n in ("fp8-lm-gradients", "fp8-lm-optimizer", "fp8-lm"))
    assert first.gradient_wire_bytes == second.gradient_wire_bytes == third.gradient_wire_bytes == 1.0
    assert first.moments_bytes > second.moments_bytes == third.moments_bytes
    assert first.gathered_weight_bytes == second.gathered_weight_bytes > third.gathered_weight_bytes


def test_wide_recipes_are_not_narrow():
    assert {r.name for r in ALL if not r.rounds} == {"bf16", "bf16_pure", "fp16", "fp32", "tf32"}
