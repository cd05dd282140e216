"""Pictures in patches: bytes by counting, and times that meet at one device."""

from dataclasses import replace

import pytest

from orrery.catalog.devices import get_device
from orrery.execution.patches import Picture, alone, get_patches
from orrery.execution.patches.picture import kernels_s
from orrery.models.denoiser import Convolution, TransformerLayer, stable_diffusion_xl

LAYERS = (
    Convolution(num_inputs=4, num_outputs=16),
    TransformerLayer(width=16, num_heads=2, ffn_size=64, text_width=16, is_gated=True, shrink=2),
)
SMALL = Picture(
    layers=LAYERS,
    height=64,
    width=32,
    num_guided=2,
    num_text_tokens=8,
    num_steps=10,
    num_waiting_steps=2,
    device=get_device("a100-sxm-80gb"),
    num_devices=4,
    devices_per_node=4,
)
LARGE = replace(SMALL, layers=tuple(stable_diffusion_xl()), height=256, width=256, num_text_tokens=77)


def run(picture, name, **knobs):
    technique = get_patches(name)
    return technique.rule(picture, technique.knobs(**knobs))


def test_a_patch_s_caches_and_borders_are_counted():
    tokens = 32 // 4 * 16
    assert SMALL.cache_bytes == 2 * 16 * tokens * 2 * 2
    assert SMALL.border_bytes == 2 * 32 * 4 * 2 * 2


def test_everybody_receives_three_patches_or_one_and_a_half():
    whole, parts = run(SMALL, "patch-whole-context"), run(SMALL, "patch-neighbour-context")
    assert whole.received_bytes == 3 * (SMALL.cache_bytes + SMALL.border_bytes)
    assert parts.received_bytes == 1.5 * SMALL.cache_bytes + 3 * SMALL.border_bytes


def test_two_devices_gain_nothing_by_having_neighbours_only():
    two = replace(SMALL, num_devices=2)
    received = {run(two, name).received_bytes for name in ("patch-whole-context", "patch-neighbour-context")}
    assert len(received) == 1


def test_reading_less_is_faster_and_reading_everything_is_not():
    times = [run(LARGE, "patch-neighbour-context", read_frac=frac).compute_s for frac in (0.0, 0.3, 1.0)]
    assert times == sorted(times)
    assert times[0] < times[-1] < run(LARGE, "patch-whole-context").compute_s


def test_a_step_takes_the_longer_of_kernels_and_exchange_and_first_steps_wait():
    found = run(LARGE, "patch-whole-context")
    steady = max(found.compute_s, found.exchange_s) * (LARGE.num_steps - LARGE.num_waiting_steps)
    assert found.time_s > steady + LARGE.num_waiting_steps * found.compute_s
    never = run(replace(LARGE, num_waiting_steps=0), "patch-whole-context")
    assert never.time_s == pytest.approx(LARGE.num_steps * max(never.compute_s, never.exchange_s))


def test_one_device_is_the_baseline():
    one = replace(LARGE, num_devices=1)
    assert alone(one) == LARGE.num_steps * kernels_s(one, 1.0)
    assert alone(one) / run(LARGE, "patch-whole-context").time_s < LARGE.num_devices


def test_a_large_picture_alone_takes_what_distrifusion_measured():
    """140 s for 50 guided steps at 3840 x 3840 on one A100 (arXiv 2402.19481, as recalled)."""
    one = replace(LARGE, height=480, width=480, num_devices=1, num_steps=50)
    assert alone(one) == pytest.approx(140.0, rel=0.1)
