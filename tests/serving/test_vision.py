"""Servers of images: latency adds up, the slowest stage sets the pace, and size decides who it is."""

from dataclasses import replace

import pytest

from orrery.base.errors import ScenarioError
from orrery.serving.vision import ImageServer

SERVER = ImageServer(
    unpacked_bytes=2e5,
    packed_bytes=1e5,
    network_s=2e-3,
    network_batched_s=5e-4,
    core_bytes_per_s=1e8,
    num_cores=8,
    device_bytes_per_s=1e9,
    link_bytes_per_s=2e10,
    link_latency_s=1e-5,
    input_bytes=6e5,
)


def test_a_lone_request_passes_the_stages_in_turn():
    assert SERVER.latency_s(on_device=False) == pytest.approx(2e-3 + 1e-5 + 3e-5 + 2e-3)
    assert SERVER.overhead_frac(on_device=False) == pytest.approx(1 - 2e-3 / 4.04e-3)
    assert SERVER.latency_s(on_device=True) == pytest.approx(2e-4 + 1e-5 + 5e-6 + 2e-3)


def test_the_slowest_stage_sets_the_pace():
    assert SERVER.images_per_s(on_device=False) == pytest.approx(1 / 5e-4)
    large = replace(SERVER, unpacked_bytes=1e7, packed_bytes=5e6)
    assert large.images_per_s(on_device=False) == pytest.approx(8 * 1e8 / 1e7)
    assert large.images_per_s(on_device=True) == pytest.approx(1 / (5e-4 + 1e-2))
    assert large.lost_frac(on_device=False) == pytest.approx(1 - 80 * 5e-4)


def test_the_device_unpacks_at_the_cost_of_its_network():
    assert SERVER.lost_frac(on_device=False) == pytest.approx(0.0)
    assert SERVER.lost_frac(on_device=True) == pytest.approx(2e-4 / 7e-4)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ScenarioError, match="num_cores"):
        replace(SERVER, num_cores=0)
    with pytest.raises(ScenarioError, match="above 0"):
        replace(SERVER, unpacked_bytes=0.0)
