"""Rays in parts against an obvious loop, and a batch over devices."""

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery_papers.nerf_xl.rays import RayBatch, composited, joined


def drawn(rays, samples):
    random = np.random.default_rng(1)
    return (
        random.random((rays, samples, 3)),
        random.exponential(3.0, (rays, samples)),
        random.random((rays, samples)) / 8,
    )


def marched(colours, densities, lengths):
    """One sample after the other."""
    result = []
    for ray in range(len(colours)):
        colour, left = np.zeros(3), 1.0
        for sample in range(colours.shape[1]):
            opacity = 1 - np.exp(-densities[ray, sample] * lengths[ray, sample])
            colour += left * opacity * colours[ray, sample]
            left *= 1 - opacity
        result.append((colour, left))
    return result


def test_compositing_is_marching():
    samples = drawn(5, 17)
    colour, left = composited(*samples)
    for i, (expected, passed) in enumerate(marched(*samples)):
        assert colour[i] == pytest.approx(expected)
        assert left[i] == pytest.approx(passed)


@pytest.mark.parametrize("cuts", [[], [1], [3, 9], [2, 2, 16]])
def test_joined_parts_are_the_whole_ray(cuts):
    colours, densities, lengths = drawn(4, 17)
    whole, _ = composited(colours, densities, lengths)
    at = list(zip([0, *cuts], [*cuts, 17], strict=True))
    parts = [composited(colours[:, a:b], densities[:, a:b], lengths[:, a:b]) for a, b in at]
    assert joined(parts) == pytest.approx(whole, abs=1e-15)


def test_the_order_of_parts_matters():
    near, far = (np.array([[1.0, 0, 0]]), np.array([0.25])), (np.array([[0, 1.0, 0]]), np.array([0.5]))
    assert joined([near, far])[0] == pytest.approx([1, 0.25, 0])
    assert joined([far, near])[0] == pytest.approx([0.5, 1, 0])


def test_samples_are_shared_out_and_telling_is_not_free():
    device = get_device("a100-sxm-80gb")
    batch = RayBatch(num_rays=4096, num_samples=64, flops_per_sample=5e4, reached_frac=0.1)
    one, four = batch.step_s(device, 1), batch.step_s(device, 4)
    assert one == pytest.approx(4096 * 64 * 5e4 / (0.1 * 312e12))
    assert one / 4 < four < one
