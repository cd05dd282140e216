"""A machine that is played: a small CPU with the constants that are believed before anything is measured."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from orrery.calibrate.device.pool import exchanges_of, pool_of
from orrery.calibrate.device.prior import with_prior
from orrery.calibrate.device.search import Search
from orrery.calibrate.device.unknowns import unknowns_of
from orrery.calibrate.measure import quiet
from orrery.calibrate.measure.backends.on_numpy import NumpyBackend
from orrery.hardware.device import Device, Link

LINK = Link(name="loopback", each_way_bytes_per_s=1.2e10, latency_s=1e-6, topology="bus", num_devices=2)
BARE = Device(
    name="box",
    title="Box",
    vendor="Me",
    kind="cpu",
    generation="host",
    memory_capacity_bytes=32e9,
    memory_bandwidth_bytes_per_s=1.5e10,
    dense_flops_per_s={"fp32": 1.3e11},
    vector_flops_per_s=1.3e11,
    num_compute_units=2,
    compute_clock_hz=2.5e9,
    last_level_cache_bytes=3.5e7,
    power_limit_w=100.0,
    idle_power_w=10.0,
    scaleup=LINK,
    scaleout=LINK,
    host=LINK,
    devices_per_node=2,
)


@pytest.fixture(scope="session")
def box() -> Device:
    """The machine."""
    return with_prior(BARE, NumpyBackend(), ("fp32",))


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements begin without listening to the machine for a second and a half."""
    monkeypatch.setattr(quiet, "LISTENS", 1)
    monkeypatch.setattr(quiet, "LISTEN_S", 0.0)


@pytest.fixture(scope="session")
def searching() -> Callable[[Device], Search]:
    """A search that has not measured anything yet."""

    def begin(device: Device) -> Search:
        pool = (*pool_of(device, "numpy", ("fp32",)), *exchanges_of("tcp", 2))
        return Search(unknowns=unknowns_of(device, [work.key for work in pool]), pool=pool)

    return begin


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Writes a text, or what is to be JSON, and says where."""

    def write(content: object, name: str = "run.json") -> Path:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write
