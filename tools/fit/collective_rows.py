"""Measured rows of collectives, and the errors of predictions of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
from intervals import QUANTILES
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.catalog.devices import get_device
from orrery.evidence.split import FIT, TEST, sides
from orrery.evidence.split import side as side_of
from orrery.evidence.tables import read_table
from orrery.hardware.device import Device
from orrery.network.group import group_of
from orrery.network.plan import candidates
from orrery.network.resolve import library_key

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Rows of one device, collective and library."""

    device: Device
    kind: str
    library: str
    num_devices: NDArray[np.int64]
    per_node: NDArray[np.int64]
    size_bytes: Floats
    time_s: Floats
    side: NDArray[np.str_]

    def take(self, mask: NDArray[np.bool_]) -> "Rows":
        """Only these rows."""
        return Rows(
            self.device,
            self.kind,
            self.library,
            self.num_devices[mask],
            self.per_node[mask],
            self.size_bytes[mask],
            self.time_s[mask],
            self.side[mask],
        )

    def on(self, side: str) -> "Rows":
        """Only the rows of one side."""
        return self.take(self.side == side)

    def inside(self) -> "Rows":
        """Only the rows of one node."""
        return self.take(self.num_devices <= self.per_node)

    @property
    def is_bus(self) -> bool:
        """Devices without a link of their own."""
        return self.device.scaleup.topology == "bus"


def read_rows(folder: Path) -> list[Rows]:
    """Every measured group of the collective tables whose device is named to the variant."""
    table = read_table(folder / "kernels/collectives.csv.gz")
    keys = sorted(set(zip(table.columns["device"], table.columns["collective"], table.columns["library"], strict=True)))
    device, kind, library = table.words("device"), table.words("collective"), table.words("library")
    n, per_node = table.numbers("num_devices").astype(np.int64), table.numbers("devices_per_node").astype(np.int64)
    size, time, side = table.numbers("message_bytes"), table.numbers("time_s"), sides(table, "collective")
    found: list[Rows] = []
    for d, k, lib in keys:
        here = (device == d) & (kind == k) & (library == lib)
        if d and get_device(d).name == d:  # a family name stands for boxes of several kinds
            words = (get_device(d), k, library_key(lib))
            found.append(Rows(*words, n[here], per_node[here], size[here], time[here], side[here]))
    return [*found, *read_more(folder)]


SYSTEMS = {"gb300": "gb300", "rtx_pro_6000_server": "rtx-pro-6000-server"}
LIBRARIES = {
    "TRTLLM": "tensorrt-llm",
    "vLLM_custom_graph": "vllm",
    "vLLM_custom_eager": "vllm-eager",
    "SGLang_CustomAllReduce_graph": "sglang",
    "SGLang_CustomAllReduce_eager": "sglang-eager",
}


def read_more(folder: Path) -> list[Rows]:
    """Engines' all-reduce on newer devices. On a bus with more than two devices all engines call the vendor's library:
    their times are equal, and TensorRT-LLM's stand for it."""
    table = (
        duckdb.connect()
        .execute(f"select * from '{folder / 'kernels_aiconfigurator/custom_allreduce_perf__new_devices.parquet'}'")
        .df()
    )
    found: list[Rows] = []
    for (system, source), some in table.groupby(["system", "kernel_source"]):
        if system not in SYSTEMS:
            continue
        device, library = get_device(SYSTEMS[system]), LIBRARIES[source]
        n, size = some.num_gpus.to_numpy(np.int64), some.message_size.to_numpy(float) * 2.0
        time = some.latency.to_numpy(float) * 1e-3
        side = np.array([side_of(["all_reduce", str(a), str(int(b))]) for a, b in zip(n, size, strict=True)])
        rows = Rows(device, "all_reduce", library, n, np.maximum(n, device.devices_per_node), size, time, side)
        is_alone = (n <= 2) | (device.scaleup.topology != "bus")
        found.append(rows.take(is_alone))
        if library == "tensorrt-llm" and not is_alone.all():
            vendor = rows.take(~is_alone)
            found.append(replace(vendor, library="nccl"))
    return found


def predict_s(rows: Rows, constants: Mapping[str, float]) -> Floats:
    """The model's times for rows, with constants that are still being fitted."""
    out = np.empty(len(rows.time_s))
    for n, per_node in {(int(a), int(b)) for a, b in zip(rows.num_devices, rows.per_node, strict=True)}:
        here = (rows.num_devices == n) & (rows.per_node == per_node)
        size = rows.size_bytes[here]
        plan = candidates(group_of(rows.kind, n, per_node, rows.device), rows.device, constants)
        times = [c.latency_s + c.slope_s_per_bytes * size + np.sqrt(c.root_s2_per_bytes * size) for c in plan]
        out[here] = np.maximum(np.min(times, axis=0), constants.get("host_s", 0.0))
    return out


def errors(rows: Rows, constants: Mapping[str, float]) -> Floats:
    """measured / predicted of every row."""
    return rows.time_s / predict_s(rows, constants)


NOISE = {"low_80": 0.97, "high_80": 1.03, "low_95": 0.95, "high_95": 1.05}  # no timer repeats better


def quantiles(*ratios: Floats) -> dict[str, float]:
    """The four quantiles of a spread: the widest of several samples of measured / predicted.

    A device's own rows for intervals are few, so its kin's stand beside them. The levels are those of a new draw,
    p (n + 1) of n, which for few rows are the extremes.
    """
    found: dict[str, float] = {}
    for name, level in QUANTILES.items():
        widest = min if name.startswith("low") else max
        values = [float(np.quantile(r, level, method="weibull")) for r in ratios]
        found[name] = round(widest(NOISE[name], *values), 4)
    return found


def summary(ratio: Floats) -> str:
    """Median, mean and 90th percentile of the error in %, bias (median of predicted / measured), and rows."""
    error = np.abs(1.0 / ratio - 1.0) * 100
    return (
        f"{np.median(error):6.1f} {error.mean():6.1f} {np.quantile(error, 0.9):6.1f} {np.median(1 / ratio):6.2f}"
        f" {len(ratio):5d}"
    )


def baselines(rows: Rows) -> tuple[Floats, Floats]:
    """measured / predicted on TEST rows of the datasheet bandwidth alone, and of a latency and a rate fitted to it."""
    passes = {"all_reduce": 2.0, "send_recv": 2.0}.get(rows.kind, 1.0)
    roof = passes * (rows.num_devices - 1) / rows.num_devices * rows.size_bytes
    roof = roof / rows.device.scaleup.each_way_bytes_per_s
    at_fit, at_test = rows.side == FIT, rows.side == TEST

    def residual(x: Floats) -> Floats:
        return np.log((np.exp(x[0]) + np.exp(x[1]) * roof[at_fit]) / rows.time_s[at_fit])

    found = least_squares(residual, [np.log(1e-5), 0.3], loss="soft_l1", f_scale=0.1)
    two = np.exp(found.x[0]) + np.exp(found.x[1]) * roof[at_test]
    return rows.time_s[at_test] / roof[at_test], rows.time_s[at_test] / two
