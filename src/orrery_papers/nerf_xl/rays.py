"""Rays through a volume that is cut over devices: each composites its own part, and parts are joined exactly.

With a_i = 1 - exp(-density_i x length_i) and what is left before a sample, T_i = product of (1 - a_j) for j < i,

    colour = sum of T_i a_i colour_i = sum over parts of (product of T of the parts before) x colour of the part

so that a part's colour and its transmittance are all that a device has to tell the others: four numbers a ray, however
many samples it took. NeRF-XL, arXiv 2404.16221.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.device import Device
from orrery.network.collective import Collective, predict_collective

Floats = NDArray[np.float64]

NUMBER_BYTES = 4.0
NUM_TOLD = 4.0
"""Three colours and a transmittance."""

NUM_PASSES = 2.0
"""Parts are told in the forward pass, and the gradients of the joined ray come back."""


def composited(colours: Floats, densities: Floats, lengths: Floats) -> tuple[Floats, Floats]:
    """Colour of each ray (rays x 3) and what passes through it, from samples in order along its second axis."""
    passes = np.exp(-densities * lengths)
    before = np.cumprod(np.concatenate([np.ones_like(passes[:, :1]), passes[:, :-1]], axis=1), axis=1)
    weights = before * (1.0 - passes)
    return (weights[..., None] * colours).sum(axis=1), passes.prod(axis=1)


def joined(parts: list[tuple[Floats, Floats]]) -> Floats:
    """Colour of each ray from its parts, nearest first."""
    colour, left = np.zeros_like(parts[0][0]), np.ones_like(parts[0][1])
    for part, passes in parts:
        colour = colour + left[:, None] * part
        left = left * passes
    return colour


@dataclass(frozen=True, slots=True, kw_only=True)
class RayBatch:
    """Rays of one training step, and what a sample costs."""

    num_rays: float
    num_samples: float  # of a ray, all parts together
    flops_per_sample: float  # forward and backward
    reached_frac: float  # of the device's peak in 16 bits

    def step_s(self, device: Device, num_devices: int) -> float:
        """Samples dealt out evenly, then every device learns all parts of all rays."""
        rate = device.peak_flops_per_s(("fp16",))[1] * self.reached_frac
        computed_s = self.num_rays * self.num_samples * self.flops_per_sample / rate / num_devices
        description = Collective(
            kind="all_gather",
            num_devices=num_devices,
            message_bytes=num_devices * self.num_rays * NUM_TOLD * NUMBER_BYTES,
        )
        return computed_s + NUM_PASSES * float(predict_collective(description, device).time_s)
