"""A device of one's own."""

from pathlib import Path

from orrery.base.errors import OrreryError
from orrery.catalog.device_file import device_tables, read_device
from orrery.catalog.devices import get_device, template

NAME = "device.toml"
PLAIN = template().encode()
CALIBRATED = (
    PLAIN
    + b"""
[conditions]
widen_ratio = 1.5
[[calibration]]
op = "gemm"
format = "bf16"
engine = "cublas"
from = "sheet"
at = "12 products"
constants = { launch_s = 1e-6 }
spread = { low_80 = 0.9, high_80 = 1.1, low_95 = 0.8, high_95 = 1.2 }
range = { m = [1, 4096] }
"""
)
SEEDS = (PLAIN, CALIBRATED)
WORDS = (
    b"[]",
    b"{}",
    b"nan",
    b"inf",
    b"true",
    b"2026-11-23",
    b"9" * 400,
    b'"80 GB"',
    b'"-1 GB"',
    b'"1e999 B"',
    b"also = [{",
    b'basis = "assumed"',
    b'"3.35 TB/s"',
    b"[[calibration]]",
    b"[conditions]",
    b"[sources.sheet]",
    b"widen_ratio",
    b"law",
)
REFUSALS = (OrreryError,)


def read(path: Path) -> None:
    """The device with its calibrations; nothing is kept of the file read before."""
    get_device(str(path))


def forget() -> None:
    """Drop what readers keep of files, which here are all called the same."""
    read_device.cache_clear()
    device_tables.cache_clear()
