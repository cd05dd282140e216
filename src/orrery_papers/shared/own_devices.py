"""Devices of set-ups that differ from an entry, as ``orrery show device NAME --as-file FILE --fact …`` writes them."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from orrery.catalog.own_device import own_device

UNITS = {"_bytes_per_s": " B/s", "_flops_per_s": " FLOP/s", "_bytes": " B", "_hz": " Hz", "_s": " s"}
"""Ending of a fact -> how a device file writes its unit; the first that fits counts."""


@contextmanager
def device_file(like: str, facts: Mapping[str, float]) -> Generator[str]:
    """The path of a device file, for as long as the block lasts: these facts, all others as on the device ``like``."""
    stated = {name: f"{value:.12g}{_unit(name)}" for name, value in facts.items()}
    with TemporaryDirectory() as folder:
        (path := Path(folder) / "own.toml").write_text(own_device(like, stated), encoding="utf-8")
        yield str(path)


def _unit(name: str) -> str:
    return next((symbol for ending, symbol in UNITS.items() if name.endswith(ending)), "")
