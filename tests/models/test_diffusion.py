"""Diffusion pipelines: tokens, operations and weights by hand, and every catalogued one against published sizes."""

from dataclasses import replace

import pytest
from battery import over

from orrery.catalog.diffusion import diffusion_names, find_diffusion, get_diffusion
from orrery.models.diffusion import Block, Decoder, Level, attentions, overlapped

TOKENS = {
    "flux.1-dev": (1024 // 16) ** 2,
    "SANA1.5_4.8B_1024px_diffusers": (1024 // 32) ** 2,
    "wan2.1-t2v-14b": 21 * (480 // 16) * (832 // 16),  # (81 - 1) / 4 + 1 frames
    "HunyuanVideo": 33 * (720 // 16) * (1280 // 16),
    "CogVideoX1.5-5B": 11 * (768 // 16) * (1360 // 16),  # 21 latent frames in pairs, the last one padded
    "cogvideox-2b": 13 * (480 // 16) * (720 // 16),
}
each_size = over(TOKENS.items(), named=lambda name, _: name)

WEIGHTS = {
    "PixArt-Sigma-XL-2-1024-MS": 0.61e9,
    "HunyuanDiT-v1.2-Diffusers": 1.5e9,
    "FLUX.1-dev": 11.9e9,
    "FLUX.1-schnell": 11.9e9,
    "stable-diffusion-3-medium-diffusers": 2.03e9,
    "stable-diffusion-3.5-large": 8.06e9,
    "stable-diffusion-3.5-medium": 2.24e9,
    "SANA1.5_1.6B_1024px_diffusers": 1.6e9,
    "SANA1.5_4.8B_1024px_diffusers": 4.8e9,
    "Qwen-Image": 20.4e9,
    "Wan2.1-T2V-1.3B-Diffusers": 1.42e9,
    "Wan2.1-T2V-14B-Diffusers": 14.3e9,
    "HunyuanVideo": 12.8e9,
    "CogVideoX-2b": 1.69e9,
    "CogVideoX-5b": 5.57e9,
    "CogVideoX1.5-5B": 5.57e9,
    "mochi-1-preview": 10.0e9,
}
each_weight = over(WEIGHTS.items(), named=lambda name, _: name)


@each_size
def test_tokens_are_counted_by_hand(name, tokens):
    model = get_diffusion(name)
    assert model.num_tokens(model.height, model.width, model.num_frames) == tokens


def test_what_is_left_of_a_side_makes_no_token_and_what_is_left_of_time_does():
    """Pixels by eight, latents by patches of two a side: 1000 are 125 and 62; 81 frames by four are 21, by two 11."""
    model = replace(get_diffusion("mochi-1-preview"), spatial=8, temporal=4, patch=2, patch_frames=2)
    assert model.latent_grid(1000, 80, 81) == (125, 10, 21)
    assert model.token_grid(1000, 80, 81) == (62, 5, 11)
    assert model.num_tokens(1000, 80, 81) == 62 * 5 * 11
    assert model.token_grid(1007, 87, 84) == (62, 5, 11), "20 and 3/4 of four frames behind the first"
    assert model.latent_grid(1000, 80, 85)[2] == 22


@each_weight
def test_matrices_come_to_the_published_parameters(name, published):
    assert get_diffusion(name).transformer_weights == pytest.approx(published, rel=0.07)


def test_operations_of_one_block_by_hand():
    """Ten tokens of a picture and two of text, width 8: products of 12 x 8^2 a token, scores and sums over 12 x 12."""
    block = Block(kind="single", count=1, width=8, num_heads=2, ffn_size=32)
    model = replace(get_diffusion("flux.1-dev"), blocks=(block,))
    assert model.step_macs(10, 2) == 12 * (4 * 64 + 2 * 8 * 32) + 2 * 8 * 12 * 12
    joint = replace(model, blocks=(replace(block, kind="joint"),))
    assert joint.step_macs(10, 2) == model.step_macs(10, 2)  # other weights, as many
    cross = replace(model, blocks=(replace(block, kind="cross"),))
    by_hand = 10 * (6 * 64 + 2 * 8 * 32) + 2 * (2 * 64) + 2 * 8 * (10 * 10 + 10 * 2)
    assert cross.step_macs(10, 2) == by_hand


def test_linear_attention_has_no_square():
    block = Block(kind="linear", count=1, width=8, num_heads=2, ffn_size=32)
    assert list(attentions(block, 10, 2)) == [(10, 2, 1)]
    assert list(attentions(replace(block, kind="cross"), 10, 2)) == [(10, 10, 1), (10, 2, 1)]


def test_a_decoder_by_hand():
    """One level of two residual blocks at 4 x 4, doubled to 8 x 8, and one block there that halves the width."""
    levels = (Level(width=4, count=2, doubles_space=True), Level(width=2, count=1, doubles_space=False))
    macs, elements = Decoder(levels=levels, taps=9).work(4, 4, 1)
    coarse = 16 * 9 * (4 * 8 + 2 * 16) + 64 * 9 * 16
    assert macs == coarse + 64 * 9 * 2 * (4 + 2)
    assert elements == 2 * 16 * 4 + 64 * 4 + 64 * 2


def test_frames_double_but_for_the_first():
    levels = (Level(width=1, count=1, doubles_space=False, doubles_time=True),) * 2 + (
        Level(width=1, count=1, doubles_space=False),
    )
    assert Decoder(levels=levels, taps=27).work(1, 1, 21)[1] == 21 + 41 + 81


def test_tiles_overlap():
    assert overlapped(480, 256, 192) == (256 + 256 + 96) / 480
    assert overlapped(480, 480, 480) == 1.0
    assert Decoder(levels=(Level(width=1, count=1, doubles_space=False),), taps=9).overlap(480, 832) == 1.0


def test_names_are_read_in_any_spelling():
    for name in diffusion_names():
        assert find_diffusion(name) == find_diffusion(name.rsplit("/")[-1].lower()) == name
    assert find_diffusion("flux-1-dev") == "black-forest-labs/FLUX.1-dev"
    assert find_diffusion("llama-3.1-8b") is None
