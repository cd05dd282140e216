"""U-Nets as layers: multiply-adds and weights against published ones, and how they grow with the picture."""

import pytest
from battery import over

from orrery.base.errors import FactError
from orrery.catalog.diffusion import get_diffusion
from orrery.models.diffusion import Convolution
from orrery.models.diffusion_file import diffusion_model
from orrery.models.unet import UNet

SDXL = get_diffusion("stable-diffusion-xl-base-1.0")
SMALL = {"widths": [8], "depths": [1], "head_size": 4, "text_width": 8, "channels": 2}


def test_sdxl_takes_the_multiply_adds_that_distrifusion_reports():
    """6763 G for the guided and the unguided pass of a picture of 1024 x 1024 (arXiv 2402.19481)."""
    assert 2 * SDXL.step_macs(128 * 128, 77) == pytest.approx(6763e9, rel=0.002)


def test_sdxl_has_2_6_billion_weights_and_attends_in_seventy_layers():
    assert SDXL.transformer_weights == pytest.approx(2.567e9, rel=0.02)
    assert {(b.width, b.num_heads, b.shrink, b.count) for b in SDXL.blocks} == {(640, 10, 2, 10), (1280, 20, 4, 60)}
    assert SDXL.shrink == 4


def test_attention_grows_with_the_square_of_the_picture_and_convolutions_with_it():
    small, large = (sum(side**2 / c.shrink**2 * c.num_weights for c in SDXL.convolutions) for side in (256, 512))
    assert large == 4 * small
    assert 4 < SDXL.step_macs(512**2, 77) / SDXL.step_macs(256**2, 77) < 16


def test_what_goes_down_is_taken_up_again():
    """One level: a block's inputs on the way up are what came from below and what was passed across."""
    layers = list(UNet(widths=(8,), depths=(0,), head_size=4, text_width=8, channels=2).layers())
    inputs = [layer.num_inputs for layer in layers if isinstance(layer, Convolution) and layer.kernel == 3]
    assert inputs == [2, 8, 8, 8, 8, 8, 8, 8, 8, 16, 8, 16, 8, 16, 8, 8]


WRONG = [
    ({"widths": [8, 8]}, "as many"),
    ({"depths": [0]}, "none above 0"),
    ({"depths": "1"}, "whole numbers"),
    ({"widths": [0]}, "whole numbers"),
    ({"head_size": 3}, "divides no width"),
    ({"speed": 3}, "there is no"),
]


@over(WRONG, named=lambda changes, words: words)
def test_a_wrong_table_is_refused_with_its_place(changes, words):
    tables = {"unet": SMALL | changes, "encoders": [], "decoder": {"levels": [{}]}}
    with pytest.raises(FactError, match=words):
        diffusion_model("mine", tables | _rest(), "mine.toml")


def test_a_network_is_a_unet_or_blocks_and_not_both():
    with pytest.raises(FactError, match="leave blocks out"):
        diffusion_model("mine", {"unet": SMALL, "blocks": [{}]} | _rest(), "mine.toml")


def _rest():
    """What stands beside the denoiser in a file."""
    encoder = {"name": "words", "num_parameters": 1e6, "num_layers": 2, "num_tokens": 8}
    level = {"width": 8, "count": 1, "doubles_space": False}
    return {"encoders": [encoder], "decoder": {"taps": 9, "levels": [level]}}
