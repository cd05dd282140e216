"""Products with their time and power: drawn from the rules with noise, or read from a measured table.

The drawn ones are the grid that [liu-2024-gemm-ada] ran through CUTLASS's profiler: sizes, four kernels that differ in
layout, and settings of which only the scalars change the work (beta other than 0 reads C too); 16,128 in all. Noise is
as wide as in the runs that its authors published: 25 power readings of one product, times of one product under equal
scalars, times of four layouts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.user_file import read_user_text
from orrery.base.user_text import csv_table
from orrery.catalog.devices import get_device
from orrery.hardware.device import Device
from orrery.kernels import energy, gemm
from orrery.kernels.gemm.machine import peak_flops_per_s
from orrery.kernels.ops import Gemm
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

ROWS, COLUMNS, DEPTHS = (512, 1024, 2048, 128256), (512, 1024, 2048), (512, 1024, 2048)
BLOCKS = (
    (64, 64, 32),
    (128, 64, 32),
    (64, 128, 32),
    (128, 128, 32),
    (256, 128, 32),
    (128, 256, 32),
    (256, 256, 32),
)
NUM_KERNELS, NUM_LAYOUTS = 4, 4
BETAS = (0.0, 1.0, 0.5, 0.0)

TIME_NOISE_FRAC, LAYOUT_NOISE_FRAC, POWER_NOISE_FRAC = 0.004, 0.033, 0.104
NUM_LAUNCHES, POLL_S = 13, 1.0  # of the profiler: 3 to warm up, 10 that count; nvidia-smi -l 1

WANTED = ("op", "device", "format", "m", "n", "k", "time_s", "power_w")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """One entry a sample: its sizes, its settings, what was seen, and what rules and roofs say of it."""

    shape_elements: Floats  # (samples, 3): m, n, k
    block_elements: Floats  # (samples, 3): the block sizes that were asked for; zeros where nothing was
    peak_flops_per_s: Floats
    bandwidth_bytes_per_s: Floats
    element_bytes: Floats
    limit_w: Floats
    time_s: Floats
    power_w: Floats
    rule_s: Floats  # the GEMM rule's time
    rule_w: Floats  # the energy rule's power
    judged_s: Floats  # what predictions are judged by: measurements, or drawn times before noise was added
    judged_w: Floats

    def rows(self, chosen: NDArray[np.intp]) -> "Samples":
        """Some of the samples."""
        return Samples(**{name: getattr(self, name)[chosen] for name in self.__slots__})

    @property
    def flops(self) -> Floats:
        """A multiply-add is two."""
        return 2.0 * self.shape_elements.prod(axis=1)

    @property
    def moved_bytes(self) -> Floats:
        """Operands and result, once each."""
        m, n, k = self.shape_elements.T
        return (m * k + k * n + m * n) * self.element_bytes


def drawn_samples(device_name: str, format: str, seed: int) -> Samples:
    """The grid, as the GEMM and energy rules see it on that device, with noise."""
    rng, device = np.random.default_rng(seed), get_device(device_name)
    grid = np.array(
        list(
            product(
                ROWS, COLUMNS, DEPTHS, range(NUM_KERNELS), range(NUM_LAYOUTS), range(len(BLOCKS)), range(len(BETAS))
            )
        )
    )
    shape, kernel, block, scalars = grid[:, :3], grid[:, 3], np.array(BLOCKS)[grid[:, 5]], grid[:, 6]
    rule_s, rule_w = _ruled(shape, device, format)
    layout = np.exp(LAYOUT_NOISE_FRAC * rng.standard_normal(NUM_KERNELS))[kernel]
    c_bytes = get_format(format).bytes_per_element * shape[:, 0] * shape[:, 1] * (np.array(BETAS)[scalars] != 0.0)
    time_s = (rule_s + c_bytes / device.memory_bandwidth_bytes_per_s) * layout
    polled = energy.polled_w(device, format, rule_w, NUM_LAUNCHES * rule_s, POLL_S)
    noise = rng.standard_normal((2, len(grid)))
    return Samples(
        shape_elements=shape.astype(np.float64),
        block_elements=block.astype(np.float64),
        **_facts([device] * len(grid), [format] * len(grid)),
        time_s=time_s * np.exp(TIME_NOISE_FRAC * noise[0]),
        power_w=polled * np.exp(POWER_NOISE_FRAC * noise[1]),
        rule_s=rule_s,
        rule_w=polled,
        judged_s=time_s,
        judged_w=polled,
    )


def read_samples(path: Path, device_name: str = "") -> Samples:
    """The products with a power in a measured kernel table (CSV, or gzipped), perhaps of one device alone.

    ScenarioError where there are none.
    """
    rows = [row for row in _products(path) if device_name in ("", get_device(row["device"]).name)]
    if not rows:
        of = f" of {device_name}" if device_name else ""
        raise ScenarioError(f"{path}: has no row{of} with op = gemm, a time_s and a power_w; give a table that has.")
    shape = np.array([[float(row[name]) for name in ("m", "n", "k")] for row in rows])
    devices, formats = [get_device(row["device"]) for row in rows], [row["format"] for row in rows]
    rule_s, rule_w = np.empty(len(rows)), np.empty(len(rows))
    time_s, power_w = (np.array([float(row[name]) for row in rows]) for name in ("time_s", "power_w"))
    for key in dict.fromkeys(zip(devices, formats, strict=True)):
        mine = np.array([pair == key for pair in zip(devices, formats, strict=True)])
        rule_s[mine], rule_w[mine] = _ruled(shape[mine], *key)
    return Samples(
        shape_elements=shape,
        block_elements=np.zeros_like(shape),
        **_facts(devices, formats),
        time_s=time_s,
        power_w=power_w,
        rule_s=rule_s,
        rule_w=rule_w,
        judged_s=time_s,
        judged_w=power_w,
    )


def _products(path: Path) -> Iterator[dict[str, str]]:
    header, lines = csv_table(read_user_text(path, "measured kernel table (CSV)"), path)
    if missing := [name for name in WANTED if name not in header]:
        raise ScenarioError(f"{path}: lacks {', '.join(missing)}; a table of products has {', '.join(WANTED)}.")
    rows = (dict(zip(header, cells, strict=True)) for cells in lines)
    yield from (row for row in rows if row["op"] == "gemm" and row["time_s"] and row["power_w"])


def _ruled(shape: NDArray[np.int64] | Floats, device: Device, format: str) -> tuple[Floats, Floats]:
    """Time and power as the rules see products that repeat."""
    m, n, k = shape.T.astype(np.int64)
    found = gemm.predict(Gemm(m=m, n=n, k=k, format=format, is_cold=False), device)
    return found.time_s, energy.power_w(device, format, found.flops / found.time_s, found.bytes / found.time_s)


def _facts(devices: list[Device], formats: list[str]) -> dict[str, Floats]:
    """Data sheet facts, an entry a sample."""
    number = {name: get_format(name) for name in set(formats)}
    pairs = [(device, number[name]) for device, name in zip(devices, formats, strict=True)]
    return {
        "peak_flops_per_s": np.array([peak_flops_per_s(*pair) for pair in pairs]),
        "bandwidth_bytes_per_s": np.array([device.memory_bandwidth_bytes_per_s for device in devices]),
        "element_bytes": np.array([found.bytes_per_element for _, found in pairs]),
        "limit_w": np.array([device.power_limit_w for device in devices]),
    }
