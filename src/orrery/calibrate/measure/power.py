"""Meters of power: what each counts, which of them this machine has, and why not the others.

Every meter counts energy upwards; mean power is the energy of a stretch of time over its length.
"""

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from orrery.base.errors import OrreryError

POWERCAP, HWMON = Path("/sys/class/powercap"), Path("/sys/class/hwmon")
MICRO, MILLI = 1e-6, 1e-3
RAPL_ZONES = ("package", "dram")
"""Zones that do not contain one another: "core" and "uncore" lie within a package, "psys" around everything."""

READ_EVERY_S = 0.02
"""How often a meter is read while work runs: counters wrap, and power that is not counted must be summed."""


class Meter(Protocol):
    """Energy of one thing since some moment; to be read often enough that its counter does not wrap twice."""

    name: str  # "rapl", "nvml:0", "amdgpu:0"
    measures: str  # "processor packages and memory", "NVIDIA H200 board"
    board: str  # the board's identity ("GPU-…"); blank where none is told

    def energy_j(self) -> float:
        """Counted so far."""
        ...

    def limit_w(self) -> float | None:
        """The power limit in force; None where it is not told."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Meters:
    """The meters that can be read here, and one sentence for each kind that cannot."""

    found: tuple[Meter, ...]
    absent: tuple[str, ...]


def meters() -> Meters:
    """Return the power meters of this machine."""
    found: list[Meter] = []
    absent: list[str] = []
    for look in (rapl, nvml, amdgpu):
        got = look()
        if isinstance(got, str):
            absent.append(got)
        else:
            found += got
    return Meters(found=tuple(found), absent=tuple(absent))


def mean_power_w(call: Callable[[], Any], meter: Meter, seconds: float) -> float:
    """Watts while ``call`` runs again and again for about ``seconds``; ``call`` waits until its device is done."""
    before_j, start = meter.energy_j(), time.perf_counter()
    now = read = start
    while now - start < seconds:
        call()
        now = time.perf_counter()
        if now - read > READ_EVERY_S:
            meter.energy_j()
            read = now
    joules = meter.energy_j() - before_j
    took_s = time.perf_counter() - start
    if took_s <= 0 or joules <= 0:
        raise OrreryError(f"The meter {meter.name} counted nothing in {took_s:.2f} s: measure for longer.")
    return joules / took_s


class _Rapl:
    """Intel's and AMD's running average power limit, as Linux shows it: microjoules that wrap around."""

    def __init__(self, zones: Sequence[Path]) -> None:
        self.name, self.board = "rapl", ""
        self.measures = " and ".join(sorted({_text(zone / "name").split("-")[0] for zone in zones}, reverse=True))
        self._ranges = {zone: _number(zone / "max_energy_range_uj") for zone in zones}
        self._last = {zone: _number(zone / "energy_uj") for zone in zones}
        self._counted_j = 0.0

    def energy_j(self) -> float:
        for zone, range_uj in self._ranges.items():
            now = _number(zone / "energy_uj")
            step = now - self._last[zone]
            self._counted_j += MICRO * (step if step >= 0 else step + range_uj)
            self._last[zone] = now
        return self._counted_j

    def limit_w(self) -> float | None:
        return None


class _Summed:
    """Energy of a device that tells its power only: summed from one reading to the next (trapezium)."""

    def __init__(self, board: "_Board", power_w: Callable[[], float]) -> None:
        self.name, self.measures, self.board, self.limit_w = board.name, board.measures, board.identity, board.limit_w
        self._power_w = power_w
        self._counted_j = 0.0
        self._at_s, self._last_w = time.perf_counter(), power_w()

    def energy_j(self) -> float:
        now_s, now_w = time.perf_counter(), self._power_w()
        self._counted_j += (now_s - self._at_s) * (now_w + self._last_w) / 2.0
        self._at_s, self._last_w = now_s, now_w
        return self._counted_j


class _Counted:
    """Energy that the device counts itself."""

    def __init__(self, board: "_Board", energy_j: Callable[[], float]) -> None:
        self.name, self.measures, self.board, self.limit_w = board.name, board.measures, board.identity, board.limit_w
        self.energy_j = energy_j


def _untold() -> None:
    """No limit that a meter tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Board:
    """A board's name, its identity and its power limit, as it tells them."""

    name: str
    measures: str
    identity: str = ""
    limit_w: Callable[[], float | None] = _untold


def rapl(root: Path = POWERCAP) -> list[Meter] | str:
    """All packages of this machine, and their memory, as one meter."""
    if platform.system() == "Darwin":
        return "macOS shows processor power to the superuser only (powermetrics)"
    zones = [z for z in sorted(root.glob("intel-rapl:*")) if _text(z / "name").startswith(RAPL_ZONES)]
    if not zones:
        return f"no processor energy counters (RAPL) under {root}: a virtual machine, or a system that has none"
    try:
        return [_Rapl(zones)]
    except PermissionError:
        return f"processor energy counters (RAPL) are there, but {zones[0] / 'energy_uj'} is readable by root only"
    except (OSError, ValueError) as error:
        return f"processor energy counters (RAPL) cannot be read: {error}"


def nvml(library: ModuleType | None = None) -> list[Meter] | str:
    """Every NVIDIA board, through pynvml where that is installed."""
    try:
        library = library or import_module("pynvml")
    except ImportError:
        return "NVIDIA boards are read through pynvml, which is not installed (pip install nvidia-ml-py)"
    try:
        library.nvmlInit()
        return [_board(library, index) for index in range(library.nvmlDeviceGetCount())] or "NVML sees no board"
    except library.NVMLError as error:
        return f"NVIDIA's NVML does not answer: {error}"


def _board(library: ModuleType, index: int) -> Meter:
    """By its own energy counter (Volta and later), else by its power."""
    handle = library.nvmlDeviceGetHandleByIndex(index)

    def limit_w() -> float | None:
        try:
            return MILLI * library.nvmlDeviceGetEnforcedPowerLimit(handle)
        except library.NVMLError:
            return None

    board = _Board(
        name=f"nvml:{index}",
        measures=f"{_plain(library.nvmlDeviceGetName(handle))} board",
        identity=_plain(library.nvmlDeviceGetUUID(handle)),
        limit_w=limit_w,
    )
    try:
        library.nvmlDeviceGetTotalEnergyConsumption(handle)
    except library.NVMLError:
        return _Summed(board, lambda: MILLI * library.nvmlDeviceGetPowerUsage(handle))
    return _Counted(board, lambda: MILLI * library.nvmlDeviceGetTotalEnergyConsumption(handle))


def _plain(words: str | bytes) -> str:
    """Text, which older versions of the library give as bytes."""
    return words.decode() if isinstance(words, bytes) else words


def amdgpu(root: Path = HWMON) -> list[Meter] | str:
    """Every board that Linux's amdgpu driver shows, by the power it averages."""
    found: list[Meter] = []
    for folder in sorted(root.glob("hwmon*")):
        files = [f for f in (folder / "power1_average", folder / "power1_input") if f.exists()]
        if files and _text(folder / "name") == "amdgpu":
            found.append(_Summed(_Board(name=f"amdgpu:{len(found)}", measures="AMD board"), _microwatts(files[0])))
    return found or f"no AMD board under {root}"


def _microwatts(file: Path) -> Callable[[], float]:
    return lambda: MICRO * _number(file)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _number(file: Path) -> float:
    return float(file.read_text(encoding="utf-8"))
