"""Use without a pause: identities, limits and refusals."""

import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.scenario.sustained import lowered

PHONE = {
    "model": "qwen2.5-1.5b",
    "device": "iphone-16-pro",
    "weights": "int4",
    "input_tokens": 258,
    "output_tokens": 200,
    "batch": 1,
}


def test_a_phone_throttles_and_its_parts_add_up():
    found = orrery.estimate(**PHONE, sustained_s=600).sustained
    cool_s = found.throttles_after_s
    assert 0.0 < cool_s < 600.0
    assert found.warm.power_w == pytest.approx(3.5, rel=1e-3)  # what the device keeps up
    assert found.warm.clock_frac < 1.0 == found.cold.clock_frac
    tokens = found.cold.output_tokens_per_s * cool_s + found.warm.output_tokens_per_s * (600.0 - cool_s)
    assert found.num_output_tokens == pytest.approx(tokens)
    # 50 kJ: the cold part at its power, the rest at 3.5 W
    left_s = (50_000.0 - found.cold.power_w * cool_s) / found.warm.power_w
    assert found.battery_s == pytest.approx(cool_s + left_s)
    assert found.battery_tokens == pytest.approx(
        found.cold.output_tokens_per_s * cool_s + found.warm.output_tokens_per_s * left_s
    )


def test_what_is_kept_up_does_not_throttle():
    found = orrery.estimate(**PHONE, sustained_s=600, sustained_w=20, battery_wh=10).sustained
    assert (found.throttles_after_s, found.warm) == (None, found.cold)
    assert found.output_tokens_per_s == found.cold.output_tokens_per_s
    assert found.battery_s == pytest.approx(36_000.0 / found.cold.power_w)
    plain = orrery.estimate(**PHONE)
    assert plain.sustained is None
    assert found.cold.output_tokens_per_s == plain.estimate.output_tokens_per_s


def test_a_short_use_is_all_cold_and_more_shedding_is_never_slower():
    short = orrery.estimate(**PHONE, sustained_s=1).sustained
    assert short.output_tokens_per_s == pytest.approx(short.cold.output_tokens_per_s)
    rates = [
        orrery.estimate(**PHONE, sustained_s=3600, sustained_w=w).sustained.output_tokens_per_s for w in (1.0, 2, 4, 8)
    ]
    assert rates == sorted(rates)
    hardly = orrery.estimate(**PHONE, sustained_s=3600, sustained_w=0.81).sustained.warm
    assert (hardly.clock_frac, hardly.power_w) == (0.1, pytest.approx(0.81))
    assert hardly.busy_frac < 1.0


def test_memory_follows_the_clock_where_there_is_a_battery():
    phone, card = get_device("iphone-16-pro"), get_device("rtx-5080")
    assert lowered(phone, 0.5).memory_bandwidth_bytes_per_s == phone.memory_bandwidth_bytes_per_s / 2
    assert lowered(card, 0.5).memory_bandwidth_bytes_per_s == card.memory_bandwidth_bytes_per_s
    assert lowered(phone, 1.0).dense_flops_per_s == phone.dense_flops_per_s


def test_refusals_say_what_to_write():
    for change, words in (
        ({"battery_wh": 10}, "battery_wh: has no effect without sustained_s"),
        ({"sustained_s": 60, "device": "rtx-5080"}, "nothing is known of how rtx-5080 warms"),
        ({"sustained_s": 60, "sustained_w": 0.5}, "not above the 0.8 W of idling"),
        ({"sustained_s": 60, "device": "h100-sxm", "tp": 2, "weights": "bf16"}, "sustained_s: is of one device"),
    ):
        with pytest.raises(ScenarioError, match=words):
            orrery.estimate(**{**PHONE, **change})
