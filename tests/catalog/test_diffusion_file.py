"""A pipeline's file: what is wrong with it is named with its place, whatever stands there."""

import tempfile
from pathlib import Path

import pytest
from battery import over

from orrery.base.errors import FactError, OrreryError
from orrery.catalog.diffusion import FOLDER, get_diffusion

PLAIN = (FOLDER / "Wan-AI--Wan2.1-T2V-1.3B-Diffusers.toml").read_text(encoding="utf-8")

BROKEN = [
    ("width = 1536", "width = 1537", "no multiple of num_heads"),
    ("width = 1536", "width = -1", "whole number from 1"),
    ("width = 1536", 'width = "wide"', "whole number from 1"),
    ("width = 1536", "breadth = 1536", "there is no 'breadth'"),
    ("num_heads = 12\n", "", "num_heads: missing"),
    ('kind = "cross"', 'kind = "crossed"', "write one of joint"),
    ("has_rope = true", "has_rope = 1", "true or false"),
    ("stride = 192", "stride = 512", "stride at most tile"),
    ("spatial = 8", "spatial = 0", "whole number from 1"),
    ("frame_rate_hz = 16", "frame_rate_hz = nan", "above 0"),
    ("[[published.blocks]]", "[[published.bricks]]", "blocks: got None"),
    ("[published.pipeline]", "[published.line]", "pipeline: got None"),
    ('guidance = "sequential"', "guidance = []", "write one of none"),
    ('name = "umT5-XXL encoder"', "name = 5", "text in quotes"),
]


@over(BROKEN, named=lambda old, new, words: new)
def test_a_mistake_is_named(old, new, words):
    assert old in PLAIN
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mine.toml"
        file.write_text(PLAIN.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(FactError) as caught:
            get_diffusion(file)
    assert words in str(caught.value)
    assert "mine.toml" in str(caught.value)


@over(["", "published = 3", "[published]\nblocks = 3", "x"])
def test_any_text_is_answered_by_a_sentence(text):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mine.toml"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(OrreryError, match=r"mine\.toml"):
            get_diffusion(file)
