"""Denoisers as layers: multiply-adds against published ones, and how they grow with the picture."""

import pytest

from orrery.models.denoiser import Convolution, TransformerLayer, ltx_video, stable_diffusion_xl, unet


def test_sdxl_takes_the_multiply_adds_that_distrifusion_reports():
    """6763 G for the guided and the unguided pass of a picture of 1024 x 1024 (arXiv 2402.19481)."""
    counted = sum(layer.num_multiply_adds(128 * 128, 77) for layer in stable_diffusion_xl())
    assert 2 * counted == pytest.approx(6763e9, rel=0.002)


def test_sdxl_attends_in_seventy_layers():
    layers = [layer for layer in stable_diffusion_xl() if isinstance(layer, TransformerLayer)]
    assert len(layers) == 70
    assert {(layer.width, layer.num_heads, layer.shrink) for layer in layers} == {(640, 10, 2), (1280, 20, 4)}


def test_ltx_video_has_about_two_billion_weights():
    """Products of a single token, attention and text left out: weights of the layers that it passes."""
    layers = [layer for layer in ltx_video() if isinstance(layer, TransformerLayer)]
    weights = sum(8 * t.width**2 + t.width * (t.ffn_inputs + t.ffn_size) for t in layers)
    assert weights == pytest.approx(1.9e9, rel=0.02)


def test_attention_grows_with_the_square_of_the_picture_and_convolutions_with_it():
    for kind, least, most in ((Convolution, 4.0, 4.0), (TransformerLayer, 4.5, 16.0)):
        layers = [layer for layer in stable_diffusion_xl() if isinstance(layer, kind)]
        small, large = (sum(layer.num_multiply_adds(side**2, 0) for layer in layers) for side in (256, 512))
        assert least <= large / small <= most


def test_what_goes_down_is_taken_up_again():
    """One level: a block's inputs on the way up are what came from below and what was passed across."""
    layers = list(unet(widths=(8,), depths=(0,), head_size=4, text_width=8, channels=2))
    inputs = [layer.num_inputs for layer in layers if isinstance(layer, Convolution) and layer.kernel == 3]
    assert inputs == [2, 8, 8, 8, 8, 8, 8, 8, 8, 16, 8, 16, 8, 16, 8, 8]
