"""Storage of dependence management: a few counters a warp, or bits for every register."""

import pytest

from orrery.base.errors import OutOfRange
from orrery.hardware.dependence import Core, counter_bits, scoreboard_bits

CORE = Core(num_warps=2, num_registers=10)


def test_counters_are_counted_by_warp():
    assert counter_bits(CORE, num_counters=6, width=6, stall=4) == 2 * 41


def test_a_scoreboard_grows_with_the_logarithm_of_readers():
    assert scoreboard_bits(CORE, 1) == 2 * 10 * 2
    assert scoreboard_bits(CORE, 63) == 2 * 10 * 7
    assert scoreboard_bits(CORE, 64) == 2 * 10 * 8
    assert scoreboard_bits(CORE, 0) == 2 * 10


def test_a_processor_without_warps_is_refused():
    with pytest.raises(OutOfRange, match="above 0"):
        Core(num_warps=0, num_registers=1)
