"""Sessions of orrery split over a link that changes: by hand, at their limits, and from files."""

from math import inf

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.links import NAMES, uplink
from orrery.execution.edge.cuts import Cut
from orrery.execution.edge.session import Frames, Watts, delays_s, followed, policy, sampled
from orrery.scenario.link_trace import link_trace
from orrery.scenario.split import split

ASKED = {"model": "resnet-50", "device": "raspberry-pi-4-8gb", "server": "rtx-4090"}
WIDTHS = {"bottleneck": "conv2_3:3,conv2_3:12,conv2_3:48", "bottleneck_bits": 8}
WATTS = Watts(busy_w=6.0, sending_w=4.0, idle_w=3.0)


def test_following_by_hand():
    # delays 1 + 10 / rate and 3: at rates 10, 2, 10 that is 2, 6, 2 beside 3, 3, 3
    cuts = [
        Cut(name="a", head_s=1.0, tail_s=0.0, sent_bytes=10.0),
        Cut(name="b", head_s=3.0, tail_s=0.0, sent_bytes=0.0),
    ]
    frames = Frames(link_bytes_per_s=np.array([10.0, 2.0, 10.0]), way_s=0.0, watts=WATTS)
    delays = delays_s(cuts, frames)
    assert delays.tolist() == [[2.0, 3.0], [6.0, 3.0], [2.0, 3.0]]
    picked = followed(delays, np.zeros(2))
    assert picked.tolist() == [0, 1, 0]
    free = policy("f", cuts, picked, frames)
    assert (free.mean_s, free.num_switches, free.shares) == (pytest.approx(7 / 3), 2, (("a", 2 / 3), ("b", 1 / 3)))
    # a: 1 s busy, 1 s sending; b: 3 s busy
    assert free.mean_energy_j == pytest.approx((2 * (6 + 4) + 18) / 3)
    # loading b takes 0.5 s and loading a 0.25 s, while the device is busy
    loaded = policy("l", cuts, picked, frames, [0.25, 0.5])
    assert loaded.mean_s == pytest.approx((7 + 0.75) / 3)
    assert loaded.mean_energy_j == pytest.approx(free.mean_energy_j + 6 * 0.75 / 3)


def test_a_limit_takes_the_widest_that_keeps_it():
    delays = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [5.0, 9.0, 9.0]])
    quality = np.array([3.0, 12.0, 48.0])
    assert followed(delays, quality, 4.0).tolist() == [2, 1, 0]
    assert followed(delays, quality, inf).tolist() == [0, 0, 0]


def test_a_signal_holds_until_the_next():
    times, values = np.array([0.0, 1.0, 5.0]), np.array([1.0, 2.0, 3.0])
    assert sampled(times, values, np.array([0.0, 0.9, 1.0, 4.9, 7.0])).tolist() == [1.0, 1.0, 2.0, 2.0, 3.0]


def test_a_flat_link_gains_nothing_from_following(tmp_path):
    path = tmp_path / "flat.csv"
    path.write_text("time_s,mbit_per_s\n0,5\n100,5\n")
    found = split(**ASKED, **WIDTHS, link_trace=str(path), storage_bytes_per_s=1e7, limit_s=0.2)
    always, *_, free, loaded = found.session.policies
    assert (free.num_switches, free.mean_s, loaded.mean_s) == (0, always.mean_s, always.mean_s)
    assert found.session.num_frames == 100


def test_a_link_that_changes_is_followed(tmp_path):
    path = tmp_path / "steps.csv"
    path.write_text("time_s,mbit_per_s\n" + "".join(f"{10 * i},{(1, 60)[i % 2]}\n" for i in range(11)))
    found = split(**ASKED, **WIDTHS, link_trace=str(path), storage_bytes_per_s=2e7, battery_wh=10)
    always, *_, free, loaded = found.session.policies
    assert free.mean_s < always.mean_s
    # nine changes; the head of conv2_3:3 is read each time that the link slows down
    assert free.num_switches == loaded.num_switches == 9
    assert loaded.mean_s > free.mean_s
    assert found.session.battery_s[0] == pytest.approx(
        36000 / (always.mean_energy_j + 3.0 * (1.0 - always.mean_s)), rel=1e-9
    )
    # within 0.15 s a slow link takes the narrowest encoder and a fast one the whole picture, which loses nothing
    widths = split(**ASKED, **WIDTHS, link_trace=str(path), limit_s=0.15).session.policies[-1]
    assert (widths.shares, widths.in_time_frac) == ((("server", 0.5), ("conv2_3:3", 0.5)), 1.0)


def test_drawn_uplinks_are_seeded_and_keep_their_median():
    for name in NAMES:
        link = uplink(name)
        times, rates = link.trace(20_000.0, 1)
        assert len(times) == len(rates) == 20_000
        assert np.median(rates) == pytest.approx(link.each_way_bytes_per_s, rel=0.1)
        # one standard deviation of the logarithm is log 2
        assert np.std(np.log(rates)) == pytest.approx(np.log(link.spread_ratio), rel=0.1)
        assert (rates == link.trace(20_000.0, 1)[1]).all()
    assert not (uplink("4g").trace(10.0, 1)[1] == uplink("4g").trace(10.0, 2)[1]).any()


def test_broken_traces_and_settings_are_refused_in_words(tmp_path):
    for text, words in (
        ("time_s,rate\n0,1\n1,1\n", "write time_s and mbit_per_s"),
        ("time_s,mbit_per_s\n0,1\n", "two or more"),
        ("time_s,mbit_per_s\n0,1\n0,2\n", "line 3: time_s 0 comes after 0"),
        ("time_s,mbit_per_s\n0,1\n1,-2\n", "line 3: mbit_per_s must be above 0"),
        ("time_s,mbit_per_s\n0,1\n1,nan\n", "line 3: mbit_per_s: got 'nan'"),
    ):
        path = tmp_path / "t.csv"
        path.write_text(text)
        with pytest.raises(ScenarioError, match=words):
            link_trace(str(path), 0)
    for change, words in (
        ({"link_trace": "3g"}, "write 4g, 5g, wifi, satellite"),
        ({"link_trace": "4g", "frames_per_s": 1000}, "write a lower rate"),
        ({"link_rates": "1", "limit_s": 1}, "limit_s: has no effect without link_trace"),
        ({}, "link_rates: missing|link_rates"),
    ):
        with pytest.raises(ScenarioError, match=words):
            split(**ASKED, **change)
