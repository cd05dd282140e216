"""Identity and settings of this machine: the conditions of a measurement."""

import ctypes
import importlib.metadata
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import psutil

from orrery.calibrate.measure.facts import cpu_title, is_virtual, num_cores, quota_cores

GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The machine and its libraries at one moment; None is what this system does not tell, said in ``missing``."""

    system: str
    cpu: str
    is_virtual: bool | None
    num_cores: int  # that this process may use
    num_quota_cores: float | None  # cores' worth of time that the container may use; None: no limit
    python: str
    numpy: str
    blas: str
    num_blas_threads: int | None
    torch: str | None
    load_ratio: float | None  # processes that want a core, over a minute, per core of the machine
    clock_hz: float | None
    max_clock_hz: float | None
    governor: str | None
    missing: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Every field by its name."""
        return {name: getattr(self, name) for name in self.__slots__}


def conditions() -> Conditions:
    """Return the conditions of this machine as they are now."""
    clock_hz, max_clock_hz = _clocks()
    governor, threads, load = _governor(), num_blas_threads(), _load()
    absent = {
        "the clock now": clock_hz,
        "the highest clock": max_clock_hz,
        "the frequency governor": governor,
        "the number of BLAS threads": threads,
        "the load average": load,
        "whether it is virtual": is_virtual(),
    }
    return Conditions(
        system=platform.platform(),
        cpu=str(cpu_title().value),
        is_virtual=is_virtual(),
        num_cores=num_cores(),
        num_quota_cores=quota_cores(),
        python=platform.python_version(),
        numpy=np.__version__,
        blas=_blas(),
        num_blas_threads=threads,
        torch=_version("torch"),
        load_ratio=load,
        clock_hz=clock_hz,
        max_clock_hz=max_clock_hz,
        governor=governor,
        missing=tuple(f"{name} is not told by this system" for name, value in absent.items() if value is None),
    )


def num_blas_threads() -> int | None:
    """Threads that NumPy's OpenBLAS uses, asked of the library as it is loaded; None where it is another BLAS."""
    suffixes = ("", "64_")
    for path in _loaded("openblas"):
        library = ctypes.CDLL(path)
        for name in (f"{lead}openblas_get_num_threads{end}" for lead in ("scipy_", "") for end in suffixes):
            if hasattr(library, name):
                return int(getattr(library, name)())
    return None


def _loaded(word: str) -> tuple[str, ...]:
    """Shared libraries of this process with ``word`` in their names."""
    try:
        maps = psutil.Process().memory_maps()
    except (AttributeError, psutil.Error, RuntimeError, OSError):
        beside = Path(np.__file__).parent
        folders = (beside / ".dylibs", beside.parent / "numpy.libs")
        return tuple(str(file) for folder in folders for file in folder.glob(f"*{word}*"))
    return tuple(sorted({m.path for m in maps if word in Path(m.path).name}))


def _blas() -> str:
    shown = cast("dict[str, Any]", np.show_config(mode="dicts") or {})
    readings = shown.get("Build Dependencies", {}).get("blas", {})
    return f"{readings.get('name', 'unknown BLAS')} {readings.get('version', '')}".strip()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _clocks() -> tuple[float | None, float | None]:
    try:
        readings = psutil.cpu_freq()
    except (OSError, RuntimeError, AttributeError):
        return None, None
    return (readings.current * 1e6 or None, readings.max * 1e6 or None) if readings else (None, None)


def _governor() -> str | None:
    try:
        return GOVERNOR.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


def _load() -> float | None:
    try:
        return psutil.getloadavg()[0] / (psutil.cpu_count() or 1)
    except (OSError, AttributeError):
        return None
