"""Power modes of boards: what slows, what is drawn, what stays, and what is refused."""

import pytest

import orrery
from orrery.base.errors import FactError, UnknownName
from orrery.catalog.devices import FOLDER, describe, get_device

NANO, SLOW = get_device("jetson-nano"), get_device("jetson-nano@5w")


def test_a_mode_by_hand():
    """640 of 921.6 MHz; the memory keeps its clock there, and half of the watts are left."""
    ratio = 640 / 921.6
    assert SLOW.compute_clock_hz == 640e6
    assert SLOW.dense_flops_per_s["fp16"] == pytest.approx(ratio * 472e9)
    assert SLOW.vector_flops_per_s == pytest.approx(ratio * 236e9)
    assert SLOW.memory_bandwidth_bytes_per_s == NANO.memory_bandwidth_bytes_per_s
    assert (SLOW.power_limit_w, SLOW.idle_power_w) == (5.0, NANO.idle_power_w)
    assert (SLOW.name, SLOW.generation, SLOW.calibrations) == ("jetson-nano@5w", "maxwell", NANO.calibrations)


def test_a_mode_that_slows_its_memory_slows_the_way_to_the_host_that_it_is():
    slow = get_device("NVIDIA Jetson Orin Nano 8GB@15W")
    assert slow.memory_bandwidth_bytes_per_s == slow.host.each_way_bytes_per_s == 68e9


def test_a_mode_at_the_device_s_own_clock_and_watts_is_the_device(tmp_path):
    text = (FOLDER / "jetson-nano.toml").read_text().split("[[power_mode]]")[0]
    file = tmp_path / "own.toml"
    mode = '[[power_mode]]\nname = "all"\n{}\n'.format(
        "\n".join(
            f'{key} = {{ value = "{value}", from = "modes", at = "here" }}'
            for key, value in (("compute_clock_hz", "921.6 MHz"), ("power_limit_w", "10 W"))
        )
    )
    file.write_text(text + mode)
    own, same = get_device(str(file)), get_device(f"{file}@all")
    assert same.dense_flops_per_s == own.dense_flops_per_s
    assert (same.vector_flops_per_s, same.power_limit_w) == (own.vector_flops_per_s, own.power_limit_w)


def test_less_power_takes_longer_and_fewer_joules_where_arithmetic_binds():
    def alone(device):
        rates = orrery.split(model="resnet-50", device=device, server="l4", link_rates="0.01", precision="fp16").rates
        return rates[0].delay_s, rates[0].energy_j

    (fast_s, fast_j), (slow_s, slow_j) = alone("jetson-nano"), alone("jetson-nano@5w")
    assert fast_s < slow_s < fast_s * 921.6 / 640 + 1e-9
    assert slow_j == pytest.approx(5.0 * slow_s, rel=1e-3)
    assert slow_j < fast_j


def test_modes_are_shown_with_their_sources():
    rows = {row.fact: row for row in describe(NANO)}
    assert rows["@5w power_limit_w"].value == 5.0
    assert "Power Management for Jetson Nano" in rows["@5w power_limit_w"].source


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('name = "5w"', "lacks compute_clock_hz, power_limit_w"),
        ('name = "5 W"', "write a small word"),
        ('name = "5w"\ncolour = 1', "unknown key colour"),
        (
            'name = "5w"\ncompute_clock_hz = { value = "2 GHz", from = "modes", at = "x" }\n'
            'power_limit_w = { value = "5 W", from = "modes", at = "x" }',
            "write up to the device's own",
        ),
    ],
)
def test_modes_that_make_no_sense_are_refused(tmp_path, line, words):
    text = (FOLDER / "jetson-nano.toml").read_text().split("[[power_mode]]")[0]
    file = tmp_path / "mine.toml"
    file.write_text(f"{text}[[power_mode]]\n{line}\n")
    with pytest.raises(FactError, match=words):
        get_device(str(file))


def test_a_mode_that_a_device_has_not_is_refused():
    with pytest.raises(UnknownName, match=r"no power mode of jetson-nano '7w'.*5w"):
        get_device("jetson-nano@7w")
    with pytest.raises(FactError, match="l4 has no power modes"):
        get_device("l4@7w")
    with pytest.raises(UnknownName, match="There is no device"):
        get_device("jetson-nanu@5w")
