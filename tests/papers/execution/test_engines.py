"""Frames of engines and a device side by side."""

import pytest

from orrery.base.errors import OutOfRange
from orrery_papers.ngpc.engines import EngineFrame


def test_engines_help_until_the_rest_sets_the_pace():
    frames = [EngineFrame(engine_frac=0.8, num_engines=n, rest_ratio=5.0) for n in (1, 10, 20, 40)]
    assert [frame.speedup_ratio for frame in frames] == pytest.approx([1.25, 12.5, 25.0, 25.0])
    assert frames[0].enough_engines == pytest.approx(20.0)


def test_without_a_rest_there_are_never_enough():
    frame = EngineFrame(engine_frac=1.0, num_engines=7, rest_ratio=1.0)
    assert frame.speedup_ratio == pytest.approx(7.0)
    assert frame.enough_engines == float("inf")


def test_shares_lie_between_nothing_and_all():
    with pytest.raises(OutOfRange, match="between 0 and 1"):
        EngineFrame(engine_frac=1.2, num_engines=1, rest_ratio=1)
