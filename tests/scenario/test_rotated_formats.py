"""Rotation in blocks: the width is the user's, and what makes no sense is refused."""

import pytest

import orrery
from orrery.base.errors import ScenarioError


def sqnr(**settings):
    (row,) = orrery.compare_formats("nvint4", on="outliers", **settings).to_json()["results"]
    return row["sqnr_db"]


def test_the_width_of_a_row_is_the_default_and_other_blocks_keep_another_signal():
    assert sqnr(rotate=True, rotate_block=1024) == sqnr(rotate=True)
    assert sqnr(rotate=True, rotate_block=32) > sqnr(rotate=True, rotate_block=4) > sqnr()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rotate_block": 32}, "no effect without rotate"),
        ({"rotate": True, "rotate_block": 7}, "no Hadamard matrix"),
        ({"rotate": True, "rotate_block": 2048}, "no multiple of 2048"),
    ],
)
def test_blocks_that_cannot_turn_are_refused(settings, words):
    with pytest.raises(ScenarioError, match=words):
        sqnr(**settings)
