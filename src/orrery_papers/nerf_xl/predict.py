"""NeRF-XL: rays in parts against whole rays, and a step's time over devices."""

from collections.abc import Iterator

import numpy as np

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.nerf_xl.rays import RayBatch, composited, joined

NUM_DRAWN_RAYS = 256


def predict(paper: Paper) -> Iterator[Prediction]:
    """One device's step over that of all, and drawn rays both ways."""
    setup = paper.setups["rays"]
    device, count = get_device(setup.word("device")), int(setup.number("num_devices"))
    batch = RayBatch(
        num_rays=setup.number("num_step_rays"),
        num_samples=setup.number("num_ray_samples"),
        flops_per_sample=setup.number("sample_flops"),
        reached_frac=setup.number("peak_frac"),
    )
    alone_s, together_s = batch.step_s(device, 1), batch.step_s(device, count)
    yield Prediction(
        claim="faster-with-devices",
        predicted=alone_s / together_s,
        because=f"{alone_s * 1e3:.2f} ms a step on one, {together_s * 1e3:.2f} ms on {count}, which tell each other "
        "four numbers a ray",
    )
    yield Prediction(
        claim="equivalent",
        predicted=largest_difference(setup),
        because=f"{NUM_DRAWN_RAYS} drawn rays of {setup.number('num_ray_samples'):.0f} samples in {count} parts",
    )


def largest_difference(setup: Setup) -> float:
    """Between colours of whole rays and of joined parts."""
    random, shape = np.random.default_rng(0), (NUM_DRAWN_RAYS, int(setup.number("num_ray_samples")))
    colours, densities, lengths = (
        random.random((*shape, 3)),
        random.exponential(2.0, shape),
        random.random(shape) / 64.0,
    )
    whole, _ = composited(colours, densities, lengths)
    cuts = np.array_split(np.arange(shape[1]), int(setup.number("num_devices")))
    parts = [composited(colours[:, at], densities[:, at], lengths[:, at]) for at in cuts]
    return float(np.abs(whole - joined(parts)).max())
