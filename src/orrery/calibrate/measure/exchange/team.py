"""A team of processes on this machine that exchange buffers, and how long the slowest of them takes."""

import json
import os
import platform
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from orrery.base.errors import OrreryError, UnknownName
from orrery.calibrate.measure.clock import Timed, time_samples
from orrery.calibrate.measure.exchange import worker
from orrery.calibrate.measure.exchange.tcp import KINDS, MIN_BYTES, TIMEOUT_S
from orrery.calibrate.measure.torch_kernels import load

LIBRARIES = ("tcp", "gloo", "nccl")
THERE_AND_BACK = ("send_recv", "broadcast")
"""Kinds that go one way: sent back at once, and half of that is their time, so that none overlaps the next."""

SKEW_S = 20e-6
"""The last process leaves the barrier about one loopback latency after the first; a sample is long beside that."""

GLANCE_S = 0.5
"""How often the start looks whether a worker has ended instead of calling."""

LEAVE_S = 5.0
"""Workers that have not left so long after their last word are ended."""


class Team:
    """``num_processes`` that exchange through ``library``: "tcp" (two, sockets and NumPy), "gloo", or "nccl".

    Works between ``with`` and its end; loopback only. Processes are started for it and end with it, whatever happens.
    """

    def __init__(self, library: str, num_processes: int = 2) -> None:
        if library not in LIBRARIES:
            raise UnknownName("library", library, LIBRARIES)
        if num_processes < 2 or (library == "tcp" and num_processes != 2):
            raise OrreryError(f"A team over tcp is of two, any other of two or more; got {num_processes}.")
        torch = load()
        if library != "tcp" and torch is None:
            raise OrreryError(f"{library} comes with PyTorch, which is not installed: pip install torch, or take tcp.")
        if library == "nccl" and torch and (seen := torch.cuda.device_count()) < num_processes:
            raise OrreryError(f"nccl joins a device a process: {num_processes} asked for, PyTorch sees {seen}.")
        self.library, self.num_processes = library, num_processes
        self._open = ExitStack()
        self._processes: list[subprocess.Popen[str]] = []
        self._lines: list[Any] = []

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def time(self, kind: str, message_bytes: int, *, budget_s: float = 0.25, least_samples: int = 7) -> Timed:
        """One collective of ``message_bytes`` (the whole buffer of one process, as nccl-tests counts it)."""
        if kind not in KINDS:
            raise UnknownName("collective", kind, KINDS)
        if message_bytes < MIN_BYTES:
            raise OrreryError(f"A message has at least {MIN_BYTES} bytes; got {message_bytes}.")
        if not self._lines:
            raise OrreryError("The team is not there: `with Team(…) as team:` starts it.")

        def sample(repeats: int) -> float:
            return self._sample(kind, message_bytes, repeats)

        timed = time_samples(sample, step_s=SKEW_S, budget_s=budget_s, least_samples=least_samples)
        return timed.over(2) if kind in THERE_AND_BACK else timed

    def _sample(self, kind: str, message_bytes: int, repeats: int) -> float:
        self._tell(kind=kind, message_bytes=message_bytes, repeats=repeats)
        return max(float(self._hear(lines)["time_s"]) for lines in self._lines)

    def _start(self) -> None:
        folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="orrery-"))
        door = self._open.enter_context(socket.create_server((worker.LOOPBACK, 0)))
        door.settimeout(GLANCE_S)
        token = secrets.token_hex(16)
        for rank in range(self.num_processes):
            process = subprocess.Popen(
                [sys.executable, "-m", worker.__name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                text=True,
                env=_environment(),
            )
            self._processes.append(process)
            assert process.stdin
            _say(
                process.stdin,
                port=door.getsockname()[1],
                token=token,
                rank=rank,
                library=self.library,
                num_processes=self.num_processes,
                rendezvous=str(Path(folder) / "rendezvous"),
            )
        ports = self._greet(door, token)
        self._tell(ports=ports)
        for lines in self._lines:
            self._hear(lines)

    def _greet(self, door: socket.socket, token: str) -> list[int]:
        """Takes the workers' calls; the port that each listens on, by rank."""
        called: dict[int, tuple[int, Any]] = {}
        deadline_s = time.monotonic() + TIMEOUT_S
        while len(called) < self.num_processes:
            try:
                connection = self._open.enter_context(door.accept()[0])
            except TimeoutError:
                if time.monotonic() > deadline_s or any(p.poll() is not None for p in self._processes):
                    raise OrreryError(f"A process of the {self.library} team did not start.") from None
                continue
            connection.settimeout(TIMEOUT_S)
            lines = self._open.enter_context(connection.makefile("rw", encoding="utf-8"))
            reply = self._hear(lines)
            if reply.get("token") == token:  # any process of this machine can call
                called[int(reply["rank"])] = int(reply["port"]), lines
        self._lines = [called[rank][1] for rank in range(self.num_processes)]
        return [called[rank][0] for rank in range(self.num_processes)]

    def _tell(self, **words: Any) -> None:
        """The same to every worker."""
        try:
            for lines in self._lines:
                _say(lines, **words)
        except OSError as error:
            raise OrreryError(f"A process of the {self.library} team has left: {error}.") from None

    def _hear(self, lines: Any) -> dict[str, Any]:
        try:
            line = lines.readline()
        except OSError as error:
            raise OrreryError(f"A process of the {self.library} team fell silent: {error}.") from None
        reply: dict[str, Any] = json.loads(line) if line else {"error": "it has ended"}
        if "error" in reply:
            raise OrreryError(f"A process of the {self.library} team failed: {reply['error']}.")
        return reply

    def _end(self) -> None:
        """Closing the lines tells the workers to leave; whoever does not is ended."""
        self._lines = []
        with suppress(OSError):  # lines that could not be sent to a worker that is gone
            self._open.close()
        for process in self._processes:
            if process.stdin:
                process.stdin.close()
            try:
                process.wait(timeout=LEAVE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes = []


def _environment() -> dict[str, str]:
    """The parent's, with its import path, and libraries kept to the loopback interface."""
    loopback = {"Linux": "lo", "Darwin": "lo0"}.get(platform.system())
    only = {name: loopback for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME") if loopback}
    return {**os.environ, **only, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def _say(lines: Any, **words: Any) -> None:
    lines.write(json.dumps(words) + "\n")
    lines.flush()
