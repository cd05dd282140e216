"""Products on an FPGA whose fabric is dealt out to the layers by their work, each in circuits of its own format.

    time     max(multiply-adds x share of the fabric of one / clock, bytes / bandwidth)
    share    lookup tables of a multiply-accumulate / those that can be used; with blocks the larger of both shares

A pipeline in which every layer has a circuit of its own gives a result as often as this sum says: a layer's part of the
fabric is as its work. Weights, inputs and results move once, as codes.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.hardware.device import Device
from orrery.hardware.lut_count import mac_circuit
from orrery.kernels.ops import Gemm, MoE
from orrery.numerics.parse import parse_format

USED_FRAC = 0.7
"""Share of a fabric that designs fill before wires bind. Assumed; alike for every format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """A device's fabric, the circuits that products are built of, and the length of sums that they take up exactly."""

    device: Device
    cost: Literal["lut", "dsp"]
    num_terms: int

    def share(self, format: str) -> float:
        """Share of the usable fabric that one multiply-accumulate takes."""
        element, tables = parse_format(format).element, USED_FRAC * self.device.num_lookup_tables
        if element is None:
            raise OutOfRange(f"{format} is a mixture of formats: no circuit is counted; write one of its elements.")
        found = mac_circuit(element, self.cost, self.num_terms)
        if not found.dsps:
            return found.luts / tables
        return max(found.dsps / (USED_FRAC * self.device.num_multiplier_blocks), found.luts / tables)

    def once(self, work: Gemm | MoE, format: str) -> tuple[float, float, float]:
        """Seconds, operations and bytes of a product."""
        if not isinstance(work, Gemm):
            raise OutOfRange("A block of experts has no circuit of its own; leave cost out, or give a dense model.")
        m, n, k, times = (float(np.asarray(x).item()) for x in (work.m, work.n, work.k, work.batch))
        macs = times * m * n * k
        moved = times * (m * k + k * n + m * n) * parse_format(format).bytes_per_element
        computed_s = macs * self.share(format) / self.device.compute_clock_hz
        return max(computed_s, moved / self.device.memory_bandwidth_bytes_per_s), 2.0 * macs, moved

    def energy_j(self, format: str, time_s: float, flops: float, moved_bytes: float) -> float:
        """Joules of it: a fabric that is full draws the card's limit, whatever its circuits are."""
        return self.device.power_limit_w * time_s
