"""Banks, roofs, counters, tables of an FPGA and the fields of a device: small cases worked out by hand."""

from dataclasses import MISSING, fields
from types import SimpleNamespace

import pytest

from orrery.base.errors import OutOfRange
from orrery.hardware.banked_memory import BankedMemory
from orrery.hardware.cluster import Cluster
from orrery.hardware.dependence import Core, counter_bits, scoreboard_bits
from orrery.hardware.device import Device, Link
from orrery.hardware.lut_count import mac_luts
from orrery.hardware.roofs import Roofs, shared_s
from orrery.numerics.names import get_element

SIZES = {
    "num_channels": 2,
    "num_banks": 4,
    "column_bytes": 32.0,
    "column_s": 1.0,
    "row_bytes": 64.0,
    "open_s": 100.0,
    "close_s": 10.0,
    "channel_bytes_per_s": 0.5,
}
BANKS = BankedMemory(**SIZES)


def test_one_product_sends_its_vector_whole_to_each_channel():
    # 9 rows on 8 banks: 2 a bank, each of 50 x 2 bytes: 4 columns; 200 bytes: 4 DRAM rows; results 18 bytes at 1 B/s
    assert BANKS.product_s(9, 50) == 100 / 0.5 + 8 * 1.0 + 4 * 110.0 + 18.0


def test_many_products_share_the_channels():
    # 3 vectors of 100 bytes over two channels; 27 rows on 8 banks: 4 a bank, 16 columns, 400 bytes: 7 DRAM rows
    assert BANKS.product_s(9, 50, times=3) == 300 / 0.5 / 2 + 16 * 1.0 + 7 * 110.0 + 54.0


def test_writing_opens_a_row_and_crosses_all_pins():
    assert BANKS.pins_bytes_per_s == 1.0
    assert BANKS.write_s(7.0) == 117.0
    assert BankedMemory(**SIZES | {"channel_bytes_per_s": 2.0}).write_s(8.0) == 112.0, "8 bytes at 4 bytes a second"


def test_energy_is_rows_columns_multiply_adds_and_pins():
    free = BANKS.product_j(9, 50)
    assert free == pytest.approx(450 * 2.0e-12, rel=1e-9)  # 1.1 pJ a multiplication, 0.9 pJ an addition
    opened = BankedMemory(**SIZES, open_j=64.0)
    assert opened.product_j(9, 50) - free == pytest.approx(900.0)
    assert opened.product_j(9, 50, times=3) == pytest.approx(2700.0)
    read = BankedMemory(**SIZES, read_j_per_bytes=2.0)
    assert read.product_j(9, 50) == pytest.approx(1800.0)
    pins = BankedMemory(**SIZES, pin_j_per_bytes=1.0)
    assert pins.product_j(9, 50) == pytest.approx(2 * 100 + 18)  # to both channels
    assert pins.product_j(9, 50, times=3) == pytest.approx(300 + 54)
    assert BankedMemory(**SIZES, element_bytes=4.0, pin_j_per_bytes=1.0).product_j(9, 50) == pytest.approx(436.0)


@pytest.mark.parametrize("size", ["num_channels", "num_banks", "column_bytes", "column_s", "channel_bytes_per_s"])
def test_banks_need_every_size(size):
    with pytest.raises(OutOfRange, match="above 0"):
        BankedMemory(**(SIZES | {size: 0}))
    assert BankedMemory(**(SIZES | {"row_bytes": 32.0})).row_bytes == 32.0  # a row of one column


def test_work_shared_by_two_processors_adds_their_rates():
    near, far = Roofs(flops_per_s=2.0, bytes_per_s=12.0), Roofs(flops_per_s=10.0, bytes_per_s=3.0)
    assert (near.time_s(24.0, 36.0), near.time_s(4.0, 36.0)) == (12.0, 3.0)
    assert far.time_s(24.0, 36.0) == 12.0
    assert shared_s(near, far, 24.0, 36.0) == 6.0
    assert shared_s(near, far, 4.0, 36.0) == pytest.approx(2.4)  # 3 s and 12 s
    assert near.ridge_flops_per_byte == pytest.approx(1 / 6)


@pytest.mark.parametrize("rates", [(0.0, 1.0), (1.0, 0.0)])
def test_roofs_are_above_zero(rates):
    with pytest.raises(OutOfRange, match="above 0"):
        Roofs(flops_per_s=rates[0], bytes_per_s=rates[1])
    assert Roofs(flops_per_s=0.5, bytes_per_s=0.25).time_s(1.0, 1.0) == 4.0


def test_the_least_core_keeps_one_warp_of_one_register():
    core = Core(num_warps=1, num_registers=1)
    assert counter_bits(core, num_counters=2, width=3, stall=5) == 12.0
    assert scoreboard_bits(core, 2) == 3.0  # one writer; 0, 1 or 2 readers take two bits
    with pytest.raises(OutOfRange, match="above 0"):
        Core(num_warps=3, num_registers=0)


@pytest.mark.parametrize(
    ("weight", "activation", "tables"),
    [
        # 5 exponent bits with infinities: 30 exponents, 29 shifts each: 6 + 58 bits through three levels of four
        ("e5m2", "e5m2", (8, 9, 192, 65)),
        # 14 exponents, 13 shifts each; significands of 4 bits: 34 bits through ceil(log2(27) / 2) = 3 levels
        ("e4m3", "e4m3", (15, 8, 102, 35)),
        # significands of 2 and 4 bits; without infinities 2 shifts; 13 more: 21 bits through two levels
        ("e2m1", "e4m3", (5, 8, 42, 22)),
    ],
)
def test_a_float_product_alone_needs_no_headroom(weight, activation, tables):
    found = mac_luts(get_element(weight), get_element(activation), 1)
    assert (found.multiplier, found.exponents, found.shifter, found.accumulator) == tables
    assert found.total == sum(tables)
    assert mac_luts(get_element(weight), get_element(activation), 5).accumulator == tables[3] + 3


def test_what_a_device_leaves_unsaid():
    left = {f.name: f.default for f in fields(Device) if f.default is not MISSING}
    assert left == {
        "devices_per_node": 8,
        "host_power_w": 0.0,
        "host_time_ratio": 1.0,
        "battery_j": 0.0,
        "sustained_power_w": 0.0,
        "thermal_time_constant_s": 0.0,
        "num_lookup_tables": 0,
        "num_multiplier_blocks": 0,
        "near_memory": None,
        "power_modes": (),
        "unrest_ratio": 1.0,
        "notes": (),
    }
    link = Link(name="wire", each_way_bytes_per_s=1.0, latency_s=0.0)
    assert (link.topology, link.num_devices, link.has_reduction) == ("switch", 0, False)


@pytest.mark.parametrize(("devices", "nodes"), [(1, 1), (8, 1), (9, 2), (16, 2), (17, 3)])
def test_nodes_are_filled_one_after_the_other(devices, nodes):
    device = SimpleNamespace(scaleup="inside", scaleout="between")
    cluster = Cluster(device=device, num_devices=devices, devices_per_node=8)
    assert cluster.num_nodes == nodes
    assert [cluster.link(n) for n in (1, 8, 9)] == ["inside", "inside", "between"]
