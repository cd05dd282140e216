"""The measured kernels as orrery answers them: every row of every table beside its prediction, by device and engine.

One reader for all ops, through the same op objects that ``orrery check`` builds; what was fitted stands as shipped.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from moe_rows import engine_of
from numpy.typing import NDArray

from orrery import kernels
from orrery.base.errors import OrreryError
from orrery.catalog.devices import get_device
from orrery.evidence.kernel_rows import MOE, READERS, bound, skew, unlearned_device
from orrery.evidence.split import SHAPE_COLUMNS, sides
from orrery.evidence.tables import Table, read_table
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels.ops import MoE, Op, Timing
from orrery.kernels.residual.terms import names_of, terms
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]
Key = tuple[str, str, str]  # device, format, engine

TABLES = (
    "gemm",
    "attention_prefill",
    "attention_decode",
    "mla",
    "moe",
    "model_layers",
    "small_kernels",
    "kernel_power",
)
ELEMENTWISE = ("norm", "rope", "gated_activation", "add", "embedding", "softmax")
WORDS = ("device", "op", "format", "kv_format", "engine", "gated_ffn", "routing")


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Rows of one table that share every word: what was asked, what was answered, what was measured."""

    table: str
    device: Device
    op: Op
    kind: str  # the op's word in the table
    engine: str  # the engine's word
    calibration: Calibration
    timing: Timing
    physics: Timing  # without what trees learned
    time_s: Floats
    power_w: Floats
    side: NDArray[np.str_]
    shape: NDArray[np.str_]  # what identifies a weight shape or layer
    possible: NDArray[np.bool_] = field(repr=False)  # rows that beat no physical bound

    @property
    def key(self) -> Key:
        """Whose constants answered."""
        return self.device.name, self.calibration.format, self.calibration.engine

    @property
    def is_own(self) -> bool:
        """Whether the constants come from this very device and engine; element-wise kernels are nobody's."""
        is_alike = self.engine == self.calibration.engine or self.kind in ELEMENTWISE
        return self.calibration.origin == "device" and is_alike

    @cached_property
    def features(self) -> Floats:
        """What trees may know of every row."""
        return terms(self.op, self.timing, self.device.last_level_cache_bytes)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the features."""
        return names_of(type(self.op))

    @property
    def off(self) -> Floats:
        """log(measured / predicted)."""
        return np.log(self.time_s / self.timing.time_s)

    @property
    def off_physics(self) -> Floats:
        """The same of the physics alone."""
        return np.log(self.time_s / self.physics.time_s)

    def on(self, side: str) -> NDArray[np.bool_]:
        """The rows of one side that beat no bound."""
        return (self.side == side) & self.possible


def read(data: Path, names: tuple[str, ...] = TABLES) -> list[Rows]:
    """Every group of rows that orrery has an answer for."""
    return [rows for name in names for path in (data / "kernels").glob(f"{name}.csv*") for rows in _groups(path)]


def _groups(path: Path) -> Iterator[Rows]:
    table = read_table(path)
    columns = [table.words(c) for c in WORDS]
    words = zip(*(table.words(c) for c in ("engine", "kernel", "format", "op")), strict=True)
    engine = np.array([engine_of(e, k, f) if op == "moe" else e for e, k, f, op in words])
    columns[WORDS.index("engine")] = engine
    keys = np.array(["|".join(words) for words in zip(*columns, strict=True)])
    for key in np.unique(keys):
        word = dict(zip(WORDS, key.split("|"), strict=True))
        try:
            yield _group(path.name, table.take(keys == key), word)
        except OrreryError:
            continue  # a device, an op or a format that orrery does not answer for


def _group(name: str, table: Table, word: dict[str, str]) -> Rows:
    device, op = get_device(word["device"]), _op(table, word)
    what = "elementwise" if word["op"] in ELEMENTWISE else word["op"]
    columns = SHAPE_COLUMNS.get(what, SHAPE_COLUMNS["gemm"])
    timing = kernels.predict(op, device, word["engine"])
    time_s = table.numbers("time_s")
    return Rows(
        table=name,
        device=device,
        op=op,
        kind=word["op"],
        engine=word["engine"],
        timing=timing,
        time_s=time_s,
        calibration=kernels.calibration(op, device, word["engine"]),
        physics=kernels.predict(op, unlearned_device(device.name), word["engine"]),
        power_w=table.numbers("power_w"),
        side=sides(table, what if what in SHAPE_COLUMNS else "gemm"),
        shape=np.array(["|".join(map(str, row)) for row in zip(*(table.words(c) for c in columns), strict=True)]),
        possible=time_s >= bound(timing, device),
    )


def _op(table: Table, word: dict[str, str]) -> Op:
    format = get_format(word["format"] or "bf16").name
    kv = get_format(word["kv_format"]).name if word["kv_format"] else format
    if word["op"] == "moe":
        sizes = {c: np.nan_to_num(table.numbers(c), nan=1).astype(np.int64) for c in (*MOE, "tp", "ep")}
        is_gated = word["gated_ffn"].casefold() not in ("false", "0", "no")
        return MoE(**sizes, format=format, is_gated=is_gated, skew=skew(word["routing"]))
    reader = READERS[word["op"]]
    columns = {c: table.numbers(c) for c in (*reader.needs, *reader.may)}
    filled = {c: np.where(np.isnan(v), reader.may.get(c, 0), v).astype(np.int64) for c, v in columns.items()}
    return reader.build(filled, format, kv)
