"""How well measured tables are repeated: medians on rows that no fit has seen, a sample of them."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from orrery.catalog.backends import backend_of_kernel
from orrery.catalog.devices import get_device
from orrery.evidence.split import TEST, sides
from orrery.evidence.tables import Table, read_table
from orrery.kernels import elementwise, energy, moe
from orrery.kernels.ops import Elementwise, MoE

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ORRERY_DATA", ROOT.parent / "shared" / "data")) / "kernels"
needs_tables = pytest.mark.skipif(not DATA.is_dir(), reason="the measured tables are not here; set ORRERY_DATA")

EVERY = 5  # one test row in five


def test_rows(name: str, op: str) -> Table:
    """A sample of the rows on the test side."""
    table = read_table(DATA / name)
    table = table.take(table.words("op") == op)
    return table.take(np.flatnonzero(sides(table, "elementwise" if name.startswith("model") else op) == TEST)[::EVERY])


test_rows.__test__ = False


def parts(table: Table, *columns: str) -> Iterator[tuple[tuple[str, ...], Table]]:
    """The rows of every combination of words."""
    words = np.array([table.words(c) for c in columns])
    for key in np.unique(words, axis=1).T:
        yield tuple(str(k) for k in key), table.take((words == key[:, None]).all(axis=0))


@needs_tables
def test_routed_blocks_stay_as_good_as_they_are():
    table = test_rows("moe.csv.gz", "moe")
    ep, routing = table.numbers("ep"), table.words("routing")
    table = table.take((routing == "balanced") | (ep == 8))  # a load table takes a while to draw: of one size only
    off: dict[tuple[str, ...], np.ndarray] = {}
    for key, rows in parts(table, "device", "format", "engine", "gated_ffn", "kernel"):
        device, format, engine, gated, kernel = key
        routing = rows.words("routing")
        names = ("tokens", "hidden_size", "ffn_size", "num_experts", "experts_per_token", "tp", "ep")
        op = MoE(
            **{n: rows.numbers(n) for n in names},
            format=format,
            is_gated=gated == "true",
            skew=np.array([float(w[10:]) if w.startswith("power_law_") else 0.0 for w in routing]),
        )
        engine = f"{backend_of_kernel('moe', kernel, format)}@{engine}"
        predicted = moe.predict(op, get_device(device), engine).time_s
        off[key] = np.abs(predicted / rows.numbers("time_s") - 1)
    assert np.median(np.concatenate(list(off.values()))) < 0.065
    assert {k: float(np.median(o)) for k, o in off.items() if o.size >= 40 and np.median(o) > 0.20} == {}


@needs_tables
def test_element_wise_work_stays_as_good_as_it_is():
    """Times are rounded to 1 us in these tables, and most rows take a few."""
    table = read_table(DATA / "model_layers.csv.gz")
    table = table.take(np.isin(table.words("op"), ["norm", "rope", "gated_activation", "add", "embedding"]))
    table = table.take((sides(table, "elementwise") == TEST) & (table.numbers("time_s") > 20e-6))
    table = table.take(np.arange(len(table))[::EVERY])
    off: list[np.ndarray] = []
    for (device, kind), rows in parts(table, "device", "op"):
        op = Elementwise(kind=kind, tokens=rows.numbers("tokens"), width=rows.numbers("width"))
        off.append(np.abs(elementwise.predict(op, get_device(device)).time_s / rows.numbers("time_s") - 1))
    assert np.median(np.concatenate(off)) < 0.10


@needs_tables
def test_the_power_of_large_products_is_right():
    """Rows that run long enough for the meter to settle."""
    table = test_rows("kernel_power.csv.gz", "gemm")
    table = table.take((table.words("format") == "bf16") & (table.numbers("time_s") > 1e-4))
    for (device,), rows in parts(table, "device"):
        m, n, k, time_s = (rows.numbers(c) for c in ("m", "n", "k", "time_s"))
        power = energy.power_w(get_device(device), "bf16", 2 * m * n * k / time_s, 2 * (m * k + n * k + m * n) / time_s)
        assert np.median(np.abs(power / rows.numbers("power_w") - 1)) < 0.15
