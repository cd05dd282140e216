"""What is read of a system's files, and what is said where there are none."""

import numpy as np
import pytest

from orrery.calibrate.measure import facts
from orrery.calibrate.measure.state import conditions, num_blas_threads
from orrery.catalog.device_file import KINDS, PLAUSIBLE


def test_the_host_tells_plausible_facts():
    result = facts.host_facts()
    assert {"title", "kind", "memory_capacity_bytes", "num_compute_units"} <= set(result)
    assert result["kind"].value in KINDS
    for name, known in result.items():
        assert known.at
        if name in PLAUSIBLE:
            low, high = PLAUSIBLE[name]
            assert low <= known.value <= high


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, None),
        ({"cpu.max": "max 100000"}, None),
        ({"cpu.max": "150000 100000"}, 1.5),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ({"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, 2.0),
        ({"cpu.max": "nonsense"}, None),
    ],
)
def test_a_containers_share_of_the_processor(tmp_path, files, cores):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert facts.quota_cores(tmp_path) == cores


def test_a_containers_share_of_the_memory(tmp_path):
    whole = facts.memory_capacity(tmp_path).value
    (tmp_path / "memory.max").write_text("max")
    assert facts.memory_capacity(tmp_path).value == whole
    (tmp_path / "memory.max").write_text("1073741824")
    assert facts.memory_capacity(tmp_path).value == 2**30


def cache(root, core, index, level, size, shared, kind="Unified"):
    folder = root / f"cpu{core}/cache/index{index}"
    folder.mkdir(parents=True)
    for name, text in (("level", level), ("size", size), ("shared_cpu_list", shared), ("type", kind)):
        (folder / name).write_text(f"{text}\n")


def test_caches_of_the_last_level_add_up_over_the_cores_that_reach_them(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "affinity", lambda: (0, 1, 2))
    for core, shared in ((0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3"), (4, "4-5")):
        cache(tmp_path, core, 0, 1, "32K", str(core), "Data")
        cache(tmp_path, core, 3, 3, "16M", shared)
    assert facts.last_level_cache(tmp_path).value == 2 * 16 * 2**20


def test_without_cache_files_nothing_is_made_up(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "sysctl", lambda name: "")
    assert facts.last_level_cache(tmp_path) is None


def test_macos_is_asked_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(facts, "sysctl", {"hw.l3cachesize": "0", "hw.perflevel0.l2cachesize": "16777216"}.get)
    assert facts.last_level_cache(tmp_path).value == 2**24


def test_conditions_name_what_matters_and_what_is_missing():
    result = conditions()
    assert result.numpy == np.__version__
    assert result.num_cores >= 1
    written = result.to_json()
    for name in ("clock_hz", "governor", "max_clock_hz"):
        assert written[name] is not None or any("clock" in m or "governor" in m for m in result.missing)


def test_the_number_of_blas_threads_follows_its_library():
    threads = num_blas_threads()
    assert threads is None or 1 <= threads <= 1024
