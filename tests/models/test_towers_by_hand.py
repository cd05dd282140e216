"""Vision towers two wide with a feed-forward part of three, counted by hand.

A layer of square attention with biases is 4 x (4 + 2), up 6 + 3, down 6 + 2, two norms 8: 49.
"""

import pytest

from orrery.models.fields import Fields
from orrery.models.towers import TOWERS, tower_parameters

SMALL = {"hidden_size": 2, "intermediate_size": 3}
TWO = SMALL | {"num_hidden_layers": 2}
PROJECTED = {"vision_output_dim": 7, "image_size": 28, "projector_input_dim": 4, "projector_output_dim": 5}


def counted(kind, vision, text_hidden=5):
    return tower_parameters(Fields({"model_type": kind, "vision_config": vision}, "config"), text_hidden)[0]


@pytest.mark.parametrize(
    ("kind", "vision", "parameters"),
    [
        # 2 frames of 3 x 16 x 16; 2304 positions; layers; merger of 4 patches 72 + 45 and a norm; one deep merger
        (
            "qwen3_vl",
            SMALL | {"out_hidden_size": 5, "depth": 2, "deepstack_visual_indexes": [1]},
            3074 + 4608 + 98 + 121 + 133,
        ),
        # 3 x 14 x 14, no bias, and a class; five positions, a gate; nine shapes of four tiles: five places of each, and
        # twice one with a gate; two norms; layers of 16 + 9 + 8 + 8, one of two with two gates; two to seven
        (
            "mllama",
            SMALL | {"image_size": 28, "num_hidden_layers": 1, "num_global_layers": 1, "vision_output_dim": 7},
            1176 + 2 + 10 + 1 + 9 * 4 * 5 * 2 + 2 * (9 * 4 * 2 + 1) + 8 + 41 + 43 + 40,
        ),
        # 2 frames of 3 x 14 x 14, no bias; layers of 24 + gate and up 18 + 8 + 4; merger 2 + 72 + 45
        ("qwen2_5_vl", SMALL | {"depth": 2}, 2352 + 108 + 119),
        # one frame of 3 x 14 x 14 twice, no bias; layers of 24, four times as wide 24 + 18, norms 8; merger 4 + 72 + 45
        ("qwen2_vl", {"embed_dim": 2, "depth": 2}, 2352 + 148 + 121),
        ("qwen2_vl", {"embed_dim": 2, "depth": 2, "mlp_ratio": 2}, 2352 + 108 + 121),
        # 2 x 2 patches and a class; adapter 12 + 25; projector 7 x 5
        ("llama4", TWO | PROJECTED, 1176 + 2 + 10 + 8 + 98 + 37 + 35),
        # heads of 64: q, k, v and out 512, gate, up and down 18, norms 128 + 8; two tables of 10240 positions
        ("gemma4", TWO | {"num_attention_heads": 1}, 1536 + 40960 + 2 * 666 + 10),
        ("gemma4", TWO | {"num_attention_heads": 2, "num_key_value_heads": 1}, 1536 + 40960 + 2 * 922 + 10),
        # 2 frames of 3 x 14 x 14; layers of attention 24, up 6 x 2 + 6, down 12 + 2, norms 8; merger 4 + 72 + 45
        ("qwen2_vl", {"embed_dim": 2, "mlp_ratio": 3, "depth": 2}, 2352 + 2 * 64 + 121),
        # 3 x 14 x 14 and bias; a class and 2 x 2 positions; layers: attention without biases of q, k, v 18, up 9,
        # down 8, norms and scales 12, with biases 6 more; norm 16, 8 x 5 + 5, 5 x 5 + 5
        ("internvl", TWO | {"image_size": 28}, 1178 + 2 + 10 + 2 * 47 + 91),
        ("interns1", TWO | {"image_size": [28, 28], "attention_bias": True}, 1178 + 2 + 10 + 2 * 53 + 91),
        # 4 for norms of queries and keys, RMS norms 4 less
        ("internvl", TWO | {"image_size": 28, "norm_type": "rms_norm", "use_qk_norm": True}, 1178 + 12 + 2 * 47 + 91),
        # 2 frames of 3 x 14 x 14; 2 x 2 positions; two norms 4; layers of 16 + gated 3 x 2 x 5 + norms 4; four patches
        # merged 8 x 5 + 5; in the width of the model 25, a norm 10 and gated 3 x 5 x 3
        ("glm4v_moe", SMALL | {"depth": 2, "image_size": 28}, 2354 + 8 + 4 + 100 + 45 + 80),
        # 14 x 14 positions; last norm 4; pooling 2 + 24 + 9 + 8 + 4; norm and matrix into the model 2 + 10
        ("gemma3", TWO, 1538 + 392 + 98 + 4 + 47 + 12),
        ("gemma3", TWO | {"vision_use_head": False}, 1538 + 392 + 98 + 4 + 12),
        # layers of 16 + 18 + 4; norm 2; four patches merged: norm 2, 8 x 2, 2 x 5, 5 x 5
        ("mistral3", TWO, 1536 + 2 + 76 + 53),
        # a grid of 64 x 64; four patches merged: norm 4, 72, 45
        ("kimi_k25", TWO, 1178 + 8192 + 98 + 4 + 121),
        ("kimi_vl", TWO, 1178 + 8192 + 98 + 4 + 121),
        ("kimi_k25", TWO | {"merge_kernel_size": [1, 3]}, 1178 + 8192 + 98 + 4 + (4 + 42 + 35)),
        # 2 frames; norms before and after; 2 -> 5 -> 5, then 4 x 5 -> 5 -> 5
        ("minimax_m3_vl", TWO, 2352 + 4 + 98 + 45 + 135),
    ],
)
def test_a_small_tower_is_counted(kind, vision, parameters):
    assert counted(kind, vision) == parameters


def test_what_a_tower_leaves_unsaid():
    assert counted("llama4", {}) == counted(
        "llama4",
        {
            "hidden_size": 768,
            "intermediate_size": 5632,
            "num_hidden_layers": 34,
            "patch_size": 14,
            "image_size": 448,
            "projector_input_dim": 4096,
            "projector_output_dim": 4096,
            "vision_output_dim": 7680,
            "in_channels": 3,
        },
    )
    assert counted("kimi_k25", {}) == counted(
        "kimi_k25", {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "pos_emb_width": 64}
    )


def test_a_tower_of_another_kind_is_counted_as_an_ordinary_encoder_and_said():
    assert "fuyu" not in TOWERS
    # patches 3 x 14 x 14 x 2 + 2, two layers 98, a projector of 2 x 5 + 5 and 5 x 5 + 5
    found = tower_parameters(Fields({"model_type": "fuyu", "vision_config": TWO}, "config"), 5)
    assert found[0] == 1178 + 98 + 45
    assert found[1] == (
        "the vision tower of 'fuyu' is counted as an ordinary encoder of its sizes: its layers are not known here"
    )
    assert tower_parameters(Fields({"model_type": "fuyu"}, "config"), 5) == (0, "")


def test_a_tower_for_sound_has_two_convolutions_in_front():
    sound = {"d_model": 2, "encoder_ffn_dim": 3, "encoder_layers": 2, "num_mel_bins": 4}
    # 3 x 4 x 2 + 2 and 3 x 2 x 2 + 2, two layers, a projector
    count, said = tower_parameters(Fields({"model_type": "ears", "audio_config": sound}, "config"), 5)
    assert count == 26 + 14 + 98 + 45
    assert said.startswith("the audio tower of 'ears' is counted as an ordinary encoder")


def test_a_tower_without_sizes_is_left_out_and_said():
    inner = {"audio_config": {"codebooks": 8}, "vision_config": TWO}
    count, said = tower_parameters(Fields({"model_type": "omni", "thinker_config": inner}, "config"), 5)
    assert count == 1321
    assert "the audio tower of 'omni' is not counted" in said


def test_glm_5_nexts_tower_is_gated_inside_and_behind():
    """Pictures of two frames, patches of 14: 3 x 2 x 14 x 14 x 2 + 2. A layer two wide: four products with biases, two
    norms and two of a head of one; gate, up and down of three with biases. Four patches to five features, five to five,
    a norm with a shift, a gated part of seven."""
    tower = {"hidden_size": 2, "intermediate_size": 3, "num_heads": 2, "depth": 3, "projection_intermediate_size": 7}
    config = {"model_type": "glm5_next", "vision_config": tower | {"temporal_patch_size": 2}}
    layer = 4 * 6 + 2 * 9 + 8 + 2 * 2 + 2 * 1
    behind = 8 * 5 + 5 + 25 + 10 + 3 * 5 * 7
    assert tower_parameters(Fields(config, "x"), 5) == (3 * 2 * 196 * 2 + 2 + 3 * layer + 2 + behind, "")
