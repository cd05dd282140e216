"""Constants of cold starts, the paths that weights come by, and the load times that were published."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path as File
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.sources import Fact, Source, parse_fact, read_facts, read_toml
from orrery.fleet.cold_start.start import Constants
from orrery.fleet.cold_start.weights import Loader, Path, Rates
from orrery.hardware.device import Device

FOLDER = File(__file__).parent / "facts"

LOADERS = {
    "safetensors": Loader(name="safetensors", is_streaming=False, reads_whole=True),
    "runai_streamer": Loader(name="runai_streamer", is_streaming=True, reads_whole=False),
    "fastsafetensors": Loader(name="fastsafetensors", is_streaming=True, reads_whole=False),
    "tensorizer": Loader(name="tensorizer", is_streaming=True, reads_whole=False),
    "sharded_state": Loader(name="sharded_state", is_streaming=False, reads_whole=False),
}
"""Names of vLLM's --load-format -> what it does: all tensors by each process, streams, or a rank's own files."""

PATHS = ("registry", "object-store", "network-disk", "nvme", "page-cache", "peer")
"""Where weights may come from."""


@cache
def cold_start_facts() -> Mapping[str, Fact]:
    """Return every constant of a start with its source."""
    return read_facts(FOLDER / "cold_start.toml")[0]


def _value(name: str) -> float:
    return float(cold_start_facts()[name].value)


def constants() -> Constants:
    """Return what machines, images and engines need."""
    return Constants(**{f.name: _value(f.name) for f in fields(Constants)})


def rates_of(device: Device) -> Rates:
    """Return the rates of a device's host."""
    return Rates(
        link_bytes_per_s=device.host.each_way_bytes_per_s,
        copy_frac=_value("copy_frac"),
        host_bytes_per_s=_value("host_bytes_per_s") / device.host_time_ratio,
    )


def path_of(name: str, device: Device, bytes_per_s: float | None = None) -> Path:
    """Return a path by its name; ``bytes_per_s`` in place of its usual rate, streams then being no limit."""
    if name not in PATHS:
        raise UnknownName("path of weights", name, PATHS)
    if name == "peer":
        rate = bytes_per_s or device.scaleout.each_way_bytes_per_s
        return Path(name=name, bytes_per_s=rate, is_per_device=True)
    if name in ("page-cache", "registry"):
        rate = 0.0 if name == "page-cache" else bytes_per_s or _value("registry_bytes_per_s")
        return Path(name=name, bytes_per_s=rate, is_fetched=name == "registry")
    key = name.replace("-", "_")
    return Path(
        name=name,
        bytes_per_s=bytes_per_s or _value(f"{key}_bytes_per_s"),
        stream_bytes_per_s=_value(f"{key}_stream_bytes_per_s"),
        is_fetched=name == "object-store",
        num_streams=int(_value("num_object_store_streams" if name == "object-store" else "num_disk_streams")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One published time of a part of a start, and what it was measured on."""

    name: str
    part: str  # "weights", "wake", "trace", "compile", "compiled", "capture", "ready"
    model: str
    device: str
    tp: int
    path: str
    loader: str
    path_bytes_per_s: float  # 0 = the path's usual rate
    model_bytes: float  # 0 = as the model holds them
    is_fitted: bool  # a constant of the catalogue was read off this row
    fact: Fact  # the seconds

    @property
    def measured_s(self) -> float:
        """Return the published seconds."""
        return float(self.fact.value)


@cache
def published_starts() -> tuple[Published, ...]:
    """Return every published time."""
    file = FOLDER / "cold_start_measured.toml"
    raw = read_toml(file)
    sources = {key: Source(**table) for key, table in raw["sources"].items()}
    rows: list[dict[str, Any]] = raw["row"]
    return tuple(_published(file.name, row, sources) for row in rows)


def _published(file: str, row: Mapping[str, Any], sources: Mapping[str, Source]) -> Published:
    fact = parse_fact(file, "measured_s", {k: row[k] for k in ("value", "from", "at", "basis") if k in row}, sources)
    return Published(
        name=row["name"],
        part=row["part"],
        model=row["model"],
        device=row["device"],
        tp=row.get("tp", 1),
        path=row.get("path", ""),
        loader=row.get("loader", ""),
        path_bytes_per_s=float(row.get("path_gb_per_s", 0.0)) * 1e9,
        model_bytes=float(row.get("model_gb", 0.0)) * 1e9,
        is_fitted=row.get("fitted", False),
        fact=fact,
    )
