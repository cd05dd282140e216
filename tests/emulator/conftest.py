"""A server in a thread of its own, on a free port, with the real simulator behind it."""

import asyncio
import threading
import time
import types
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import uvicorn.server

from orrery.base.listening import address_of, listening
from orrery.emulator.serve import Server, serve
from orrery.emulator.start import Ready, ServerOptions, ready
from orrery.emulator.start_fleet import ready_fleet
from orrery.scenario.fleet.read import read_fleet
from orrery.scenario.schema import read_scenario

SCENARIO = {"model": "llama-3.1-8b", "device": "h100-sxm", "max_model_len": 8192}
NAME = "llama"


@dataclass(frozen=True)
class Running:
    """What a test may look at."""

    url: str
    server: Server

    @property
    def pace(self):
        return self.server.pace


def wait_until(holds: Callable[[], object], patience_s: float = 5.0) -> None:
    """Wait until something holds."""
    end_s = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end_s, "it never did"
        time.sleep(0.005)


def running(scenario: dict | None = None, **options):
    """A server, stopped in good order at the end."""
    return serving(
        ready(read_scenario({**SCENARIO, **(scenario or {})}), ServerOptions(names=(NAME, "other"), **options))
    )


def running_fleet(fleet: dict, plays_traffic: bool = False, **options):
    """The same for a fleet, by the keys of its file."""
    inputs, told = read_fleet({**SCENARIO, **fleet}), ServerOptions(names=(NAME,), **options)
    return serving(ready_fleet(inputs, told, plays_traffic=plays_traffic))


@contextmanager
def serving(found) -> Generator[Running]:
    """A server of what stands ready."""
    assert isinstance(found, Ready)
    started, servers = threading.Event(), []
    with listening("127.0.0.1", 0) as listener:
        url = address_of(listener)

        def on_start(server: Server) -> None:
            servers.append(server)
            started.set()

        thread = threading.Thread(target=lambda: asyncio.run(serve(found, listener, on_start)))
        thread.start()
        try:
            assert started.wait(10)
            yield Running(url, servers[0])
        finally:
            servers[0].stop()
            thread.join(10)
    assert not thread.is_alive()


@pytest.fixture(scope="session", autouse=True)
def prompt_ends() -> Generator[None]:
    """Servers that look a hundred times a second whether they are to end, in place of ten: a hundred are started."""
    quick = types.ModuleType("asyncio")
    quick.__dict__.update(vars(asyncio) | {"sleep": lambda delay_s: asyncio.sleep(min(delay_s, 0.01))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.server, "asyncio", quick)
        yield


@pytest.fixture(scope="session")
def fast() -> Generator[Running]:
    """Twenty times as fast as the deployment: for what has nothing to do with time."""
    with running(speed_ratio=20.0) as found:
        yield found


@pytest.fixture(scope="session")
def start() -> Callable:
    """``with start(speed_ratio=…) as found:``"""
    return running


@pytest.fixture(scope="session")
def start_fleet() -> Callable:
    """``with start_fleet({"replicas_max": 3}, speed_ratio=…) as found:``"""
    return running_fleet


@pytest.fixture(scope="session")
def until() -> Callable:
    """``until(lambda: …)`` waits, and fails after some seconds."""
    return wait_until
