"""Takeover between a device and processors near the memory, worked out by hand."""

import pytest

from orrery.base.errors import OutOfRange
from orrery.hardware.roofs import Roofs
from orrery_papers.duplex_logic_pim.takeover import takeover_flops_per_byte


def test_the_nearer_processor_takes_over_where_both_take_as_long():
    near, far = Roofs(flops_per_s=2.0, bytes_per_s=12.0), Roofs(flops_per_s=10.0, bytes_per_s=3.0)
    assert takeover_flops_per_byte(near, far) == pytest.approx(2 / 3)


@pytest.mark.parametrize(("flops", "moved"), [(2.0, 3.0), (10.0, 12.0), (11.0, 12.0), (2.0, 2.0)])
def test_nothing_takes_over_from_one_that_does_neither_better(flops, moved):
    with pytest.raises(OutOfRange, match="neither takes over"):
        takeover_flops_per_byte(Roofs(flops_per_s=flops, bytes_per_s=moved), Roofs(flops_per_s=10.0, bytes_per_s=3.0))
