"""A row of servers: what it draws, how rules answer a reading, and that more of them fit when clocks may fall."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.execution.memory import Infeasible
from orrery.fleet.power import POWER_CAPS
from orrery.fleet.power.capping import Clocks, Reading
from orrery.fleet.power.oversubscribe import Tolerance, largest_row, late_frac
from orrery.fleet.power.phases import Phases, clocked, phases
from orrery.fleet.power.row import Row, run

ROW = Row(
    num_servers=20,
    limit_w=20 * 1000.0,
    busy_frac=0.8,
    peak_to_trough_ratio=1.0,
    low_priority_frac=0.5,
    run_s=600.0,
    tick_s=1.0,
    reading_s=2.0,
    delay_s=10.0,
)
ANY = Tolerance(low_p50_frac=9.0, low_p99_frac=9.0, high_p50_frac=9.0, high_p99_frac=9.0)


def server(clock_ratio):
    """Prompts that follow the clock, answers that do not."""
    return Phases(
        prompt_s=4.0 / clock_ratio, prompt_w=400.0 + 600.0 * clock_ratio**2, decode_s=16.0, decode_w=600.0, idle_w=300.0
    )


def rule(name, **given):
    technique = POWER_CAPS.get(name)
    return lambda reading: technique.rule(reading, technique.knobs(**given))


def test_the_mean_draw_is_that_of_the_phases():
    drawn = run(replace(ROW, run_s=6000.0), server, rule("cap-none"))
    expected = 0.8 * (4 * 1000 + 16 * 600) / 20 + 0.2 * 300
    assert drawn.drawn_w.mean() / 20 == pytest.approx(expected, rel=0.03)
    assert drawn.num_brakes == 0
    assert drawn.low_s.min() >= 20.0


def test_a_day_has_a_trough():
    busy, day = (run(replace(ROW, peak_to_trough_ratio=p), server, rule("cap-none")).drawn_w for p in (1.0, 4.0))
    assert day[:60].mean() < 0.8 * busy[:60].mean()
    assert day[270:330].mean() > 1.1 * day[:60].mean()


def test_half_of_the_servers_are_of_low_priority_and_only_they_slow_down():
    cap = rule("cap-two-thresholds", first_frac=0.1, second_frac=1.0)
    free, capped = run(ROW, server, rule("cap-none")), run(ROW, server, cap)
    assert late_frac(capped.high_s, free.high_s, 50.0) == pytest.approx(0.0, abs=1e-9)
    assert late_frac(capped.low_s, free.low_s, 50.0) > 0.01
    assert capped.drawn_w.mean() < free.drawn_w.mean()


def test_two_thresholds_step_by_step_and_back():
    cap = rule("cap-two-thresholds")
    assert cap(Reading(drawn_frac=0.79, clocks=Clocks())) == Clocks()
    first = cap(Reading(drawn_frac=0.81, clocks=Clocks()))
    assert (first.low_ratio, first.high_ratio) == (0.904, 1.0)
    assert cap(Reading(drawn_frac=0.76, clocks=first)) == first  # not released yet
    assert cap(Reading(drawn_frac=0.74, clocks=first)) == Clocks()
    second = cap(Reading(drawn_frac=0.90, clocks=first))
    assert second.low_ratio < first.low_ratio
    assert second.high_ratio < 1.0
    assert cap(Reading(drawn_frac=0.85, clocks=second)) == second


def test_a_cap_for_everyone_slows_everyone():
    both = rule("cap-everyone")(Reading(drawn_frac=0.95, clocks=Clocks()))
    assert both.low_ratio == both.high_ratio < 1.0


def test_more_servers_fit_than_rated_draws_allow_and_still_more_with_caps():
    row = replace(ROW, run_s=300.0)
    none, capped = (largest_row(row, server, rule(name), ANY) for name in ("cap-none", "cap-two-thresholds"))
    assert none.more_frac > 0.2
    assert capped.num_servers >= none.num_servers
    assert capped.drawn.drawn_w.max() <= row.limit_w
    strict = replace(ANY, high_p50_frac=-1.0)
    assert largest_row(row, server, rule("cap-two-thresholds"), strict).more_frac == 0.0


def test_a_lower_clock_slows_arithmetic_alone_and_draws_less(deploy):
    device = get_device("a100-sxm-80gb")
    low = clocked(device, 0.5)
    assert low.dense_flops_per_s["fp16"] == device.dense_flops_per_s["fp16"] / 2
    assert low.memory_bandwidth_bytes_per_s == device.memory_bandwidth_bytes_per_s
    assert low.power_limit_w - low.idle_power_w == pytest.approx(
        0.5 * 0.8**2 * (device.power_limit_w - device.idle_power_w)
    )
    whole = deploy(model="llama-2-7b", device="a100-sxm-80gb")
    full, slow = (phases(whole, 8, 1024, 64, 100.0, ratio) for ratio in (1.0, 0.7))
    assert not isinstance(full, Infeasible)
    assert not isinstance(slow, Infeasible)
    assert slow.prompt_s > 1.15 * full.prompt_s
    assert slow.decode_s < 1.1 * full.decode_s
    assert full.prompt_w > full.decode_w > full.idle_w > 100.0
    assert slow.prompt_w < full.prompt_w


def test_a_model_that_does_not_fit_says_so(deploy):
    whole = deploy(model="llama-2-70b", device="a100-sxm-80gb")
    assert isinstance(phases(whole, 8, 1024, 64, 100.0), Infeasible)


def test_late_is_nothing_without_work():
    assert late_frac(np.empty(0), np.empty(0), 50.0) == 0.0
