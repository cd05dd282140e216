"""Takeover of processors near the memory, against the roofs of both."""

import pytest

from orrery.base.errors import OutOfRange
from orrery.hardware.roofs import Roofs
from orrery_papers.duplex_logic_pim.takeover import takeover_flops_per_byte

FAR, NEAR = Roofs(flops_per_s=1000e12, bytes_per_s=3e12), Roofs(flops_per_s=96e12, bytes_per_s=12e12)


def test_the_near_processor_wins_below_the_takeover_and_not_above():
    turn = takeover_flops_per_byte(NEAR, FAR)
    assert turn == pytest.approx(32.0)
    assert NEAR.ridge_flops_per_byte == pytest.approx(8.0)
    for intensity, wins in ((1.0, True), (31.0, True), (33.0, False), (300.0, False)):
        assert (NEAR.time_s(intensity * 1e9, 1e9) < FAR.time_s(intensity * 1e9, 1e9)) is wins
    with pytest.raises(OutOfRange, match="neither takes over"):
        takeover_flops_per_byte(FAR, NEAR)
