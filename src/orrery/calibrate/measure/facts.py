"""Facts that the operating system states about its processor and that need no measurement."""

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import psutil

from orrery.base.sources import Basis, Fact, Source

SYS, PROC = Path("/sys"), Path("/proc")
VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "0x41": "Arm", "0xc0": "Ampere", "0x61": "Apple"}
"""Makers by what /proc/cpuinfo calls them (``vendor_id``, or the number of an Arm ``CPU implementer``)."""

FALLBACK_CACHE_BYTES = float(64 * 2**20)
"""Taken for the last-level cache where the system does not tell (Windows): few processors have a larger one."""

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


SYSTEM = Source(title="What this machine's system says")


def make_fact(name: str, value: float | str, at: str, source: Source = SYSTEM) -> Fact:
    """A fact as it was read, and where."""
    return Fact(name=name, value=value, basis=Basis.STATED, source=source, at=at)


def host_facts() -> Mapping[str, Fact]:
    """Facts of the processor that runs this process, as one device; what the system does not tell is left out."""
    found = (
        cpu_title(),
        _vendor(),
        make_fact("kind", "cpu", "by nature"),
        memory_capacity(),
        _compute_units(),
        cpu_clock(),
        last_level_cache(),
    )
    return {fact.name: fact for fact in found if fact}


def _compute_units() -> Fact:
    cores, quota = float(num_cores()), quota_cores()
    if quota is not None and quota < cores:
        return make_fact("num_compute_units", max(1.0, float(int(quota))), "the container's share of processor time")
    return make_fact("num_compute_units", cores, "cores that this process may use")


def num_cores() -> int:
    """Cores that this process may use: its affinity where the system has such a thing."""
    return len(affinity()) or os.cpu_count() or 1


def affinity() -> tuple[int, ...]:
    """The numbers of those cores; none where the system (macOS) does not tell."""
    try:
        return tuple(psutil.Process().cpu_affinity() or ())
    except (AttributeError, psutil.Error, RuntimeError):
        return ()


def quota_cores(root: Path = SYS / "fs/cgroup") -> float | None:
    """Cores' worth of time that the container may use a period (control groups, version 2 then 1); None: no limit."""
    try:
        if words := _first(root / "cpu.max").split():
            return None if words[0] == "max" else float(words[0]) / float(words[1])
        quota, period = _first(root / "cpu/cpu.cfs_quota_us"), _first(root / "cpu/cpu.cfs_period_us")
        return float(quota) / float(period) if quota and period and float(quota) > 0 else None
    except (ValueError, IndexError, ZeroDivisionError):
        return None


def memory_capacity(root: Path = SYS / "fs/cgroup") -> Fact:
    """Memory, or what the container may have of it."""
    total = float(psutil.virtual_memory().total)
    for file in ("memory.max", "memory/memory.limit_in_bytes"):
        limit = _first(root / file)
        if limit.isdigit() and float(limit) < total:
            return make_fact("memory_capacity_bytes", float(limit), f"control group, {file}")
    return make_fact("memory_capacity_bytes", total, "psutil.virtual_memory")


def cpu_title() -> Fact:
    """The processor's name."""
    if name := _cpuinfo().get("model name"):
        return make_fact("title", name, "/proc/cpuinfo, model name")
    if name := sysctl("machdep.cpu.brand_string"):
        return make_fact("title", name, "sysctl machdep.cpu.brand_string")
    return make_fact("title", platform.processor() or platform.machine() or "unknown processor", "platform.processor")


def cpu_clock() -> Fact | None:
    """The highest clock, or what there is instead of it."""
    try:
        frequency = psutil.cpu_freq()
    except (OSError, RuntimeError, AttributeError):
        frequency = None
    for clock_mhz, which in ((frequency.max, "max"), (frequency.current, "current")) if frequency else ():
        if clock_mhz and clock_mhz > 100.0:
            return make_fact("compute_clock_hz", clock_mhz * 1e6, f"psutil.cpu_freq, {which}")
    if text := re.search(r"@ ([\d.]+)\s*GHz", str(cpu_title().value)):
        return make_fact("compute_clock_hz", float(text[1]) * 1e9, "the processor's name")
    return None


def last_level_cache(root: Path = SYS / "devices/system/cpu") -> Fact | None:
    """All caches of the last level that the cores of this process reach."""
    mine = affinity() or tuple(range(num_cores()))
    levels: dict[int, dict[str, int]] = {}
    for core in mine:
        for index in sorted((root / f"cpu{core}/cache").glob("index[0-9]*")):
            level, size = _first(index / "level"), re.fullmatch(r"(\d+)([KMG]?)", _first(index / "size"))
            if level.isdigit() and size and _first(index / "type") != "Instruction":
                shared = _first(index / "shared_cpu_list") or str(core)
                levels.setdefault(int(level), {})[shared] = int(size[1]) * UNITS.get(size[2], 1)
    if levels:
        last = max(levels)
        return make_fact("last_level_cache_bytes", float(sum(levels[last].values())), f"{root}, level {last}")
    for name in ("hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize"):
        if (size := sysctl(name)).isdigit() and int(size) > 0:
            return make_fact("last_level_cache_bytes", float(size), f"sysctl {name}")
    return None


@cache
def sysctl(name: str) -> str:
    """Value of a macOS sysctl ``name``; empty on other systems."""
    if platform.system() != "Darwin":
        return ""
    try:
        done = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _vendor() -> Fact | None:
    first = _cpuinfo()
    for key in ("vendor_id", "CPU implementer"):
        if word := first.get(key):
            return make_fact("vendor", VENDORS.get(word, word), f"/proc/cpuinfo, {key}")
    title = str(cpu_title().value)
    if maker := next((m for m in ("Apple", "Intel", "AMD", "Qualcomm") if m.casefold() in title.casefold()), None):
        return make_fact("vendor", maker, cpu_title().at)
    return None


def is_virtual() -> bool | None:
    """Whether the processor is a virtual machine's; None where the system does not say."""
    flags = _cpuinfo().get("flags")
    return "hypervisor" in flags.split() if flags else None


@cache
def _cpuinfo() -> Mapping[str, str]:
    """The first processor of /proc/cpuinfo, a word a key."""
    try:
        text = (PROC / "cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def _first(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
