"""A device picks the peak that a format may use; a cluster knows which link a group must cross."""

import pytest

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.hardware.cluster import Cluster


def test_the_first_known_rate_is_taken() -> None:
    hopper = get_device("h100-sxm")
    assert hopper.peak_flops_per_s(("fp4", "fp8", "bf16")) == ("fp8", hopper.dense_flops_per_s["fp8"])
    ampere = get_device("a100-sxm-80gb")
    assert ampere.peak_flops_per_s(("fp8", "bf16"))[0] == "bf16"


def test_a_rate_nobody_states_is_out_of_range_and_says_what_there_is() -> None:
    with pytest.raises(OutOfRange, match=r"states no peak rate for any of fp4; it has .*bf16"):
        get_device("a100-sxm-80gb").peak_flops_per_s(("fp4",))


def test_the_slowest_link_is_the_scale_out_once_a_group_leaves_the_node() -> None:
    device = get_device("h100-sxm")
    cluster = Cluster(device=device, num_devices=20, devices_per_node=8)
    assert cluster.num_nodes == 3
    assert cluster.link(8) is device.scaleup
    assert cluster.link(9) is device.scaleout
