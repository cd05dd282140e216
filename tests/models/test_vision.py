"""Images as towers see them: patches, tokens and products, by each model's own rule."""

import pytest

from orrery.catalog.models import get_model, model_names
from orrery.models.fields import Fields
from orrery.models.vision import best_tiles, smart_resized, vision_tower


@pytest.mark.parametrize(
    ("model", "height", "width", "patches", "tokens"),
    [
        # 1080 / 28 = 38.6 and 1920 / 28 = 68.6: 39 x 69 tokens of four patches
        ("Qwen/Qwen2.5-VL-7B-Instruct", 1080, 1920, 10764, 2691),
        # 1080 / 32 = 33.75 and 1920 / 32 = 60: 34 x 60
        ("Qwen/Qwen3-VL-8B-Instruct", 1080, 1920, 8160, 2040),
        # always one square of 896: 64 x 64 patches, averaged to 256 tokens
        ("google/gemma-3-27b-it", 1080, 1920, 4096, 256),
        # 1540 / 1920: 866 x 1540 pixels, 31 rows of 55 tokens, each with one that ends it
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", 1080, 1920, 6820, 31 * 56),
        # below 16,384 patches nothing is shrunk; 38.6 x 68.6 padded to 39 x 69
        ("moonshotai/Kimi-K2.5", 1080, 1920, 10764, 2691),
        # three rows of five tiles of 336 and the whole again: 16 x 577 patches, 16 x 144 + 15 + 3 tokens
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 1080, 1920, 16 * 577, 2322),
    ],
)
def test_an_image_of_1080p(model, height, width, patches, tokens):
    tower = get_model(model).tower
    assert tower is not None
    view = tower.view(height, width)
    assert (view.sequences * view.patches, view.tokens) == (patches, tokens)


def test_sides_are_whole_granules_within_the_bounds():
    """4000 x 4000 is 16 million: at most 1 million is 1000 x 1000, cut to 31 x 32; at least 65,536 is 8 x 32 a side."""
    assert smart_resized(4000, 4000, 32, 65_536, 1_000_000) == (992, 992)
    assert smart_resized(100, 100, 32, 65_536, 1_000_000) == (256, 256)
    assert smart_resized(500, 700, 32, 65_536, 1_000_000) == (512, 704)


def test_an_image_of_one_tile_is_seen_once():
    assert best_tiles(336, 336, 336, 16) == (1, 1)
    assert best_tiles(336, 672, 336, 16) == (1, 2)
    tower = get_model("meta-llama/Llama-4-Scout-17B-16E-Instruct").tower
    assert tower is not None
    assert tower.view(336, 336).sequences == 1


def projected(kind, vision, **outer):
    """The shapes of a small tower's projector and of its embedding: (patches a row, inputs, outputs, count)."""
    tower = vision_tower(Fields({"model_type": kind, "vision_config": vision, **outer}, "config"), 5)
    assert tower is not None
    found = [p for p in tower.products if p.name == "patches" or p.name.startswith("projector")]
    return [(p.patches, p.inputs, p.outputs, p.count) for p in found]


def test_a_small_tower_s_products_by_hand():
    """Two features: an embedding of patches 14 or 16 a side (two frames in Qwen's), and what merges 2 x 2 of them."""
    small = {"hidden_size": 2, "intermediate_size": 3, "num_hidden_layers": 2, "depth": 2}
    merged = [(4, 8, 8, 1), (4, 8, 5, 1)]
    assert projected("qwen2_5_vl", small) == [(1, 2 * 3 * 14 * 14, 2, 1), *merged]
    deep = small | {"out_hidden_size": 5, "deepstack_visual_indexes": [1]}
    assert projected("qwen3_vl", deep) == [(1, 2 * 3 * 16 * 16, 2, 1), (4, 8, 8, 2), (4, 8, 5, 2)]
    assert projected("mistral3", small) == [(1, 3 * 14 * 14, 2, 1), (4, 8, 2, 1), (4, 2, 5, 1), (4, 5, 5, 1)]
    assert projected("mistral3", small, spatial_merge_size=3)[1] == (9, 18, 2, 1)
    assert projected("kimi_k25", small | {"merge_kernel_size": [1, 3]})[1:] == [(3, 6, 6, 1), (3, 6, 5, 1)]
    # 64 x 64 patches are averaged to 256 tokens, 16 each
    assert projected("gemma3", small) == [(1, 3 * 14 * 14, 2, 1), (16, 2, 5, 1)]
    assert projected("llama4", small)[1:] == [(4, 8, 4096, 1), (4, 4096, 4096, 1), (4, 4096, 5, 1)]


def test_products_are_the_towers_weights():
    """All matrices together are what the memory counts, but for norms, biases and positions (1.9 % at most)."""
    off = []
    for name in model_names():
        model = get_model(name)
        if model.tower and not 0.98 < model.tower.num_weights / model.tower_parameters <= 1.0:
            off.append((name, model.tower.num_weights / model.tower_parameters))
    assert not off
