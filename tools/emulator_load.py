"""How many tokens a second the emulator streams, and how late they leave, beside a server that only streams.

Three processes: a client that opens all streams and reads them, `orrery emulate`, and, in a second round, a bare server
under the same HTTP stack, which sends chunks as long on fixed deadlines and knows nothing of batches, caches or
metrics. Seconds of processor time are told for each process, because wall time depends on what else a machine does.
"""

import argparse
import asyncio
import gc
import json
import selectors
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import psutil

from orrery.emulator.serve import allow_connections

DEPLOYED = ("--model", "llama-3.1-70b", "--device", "h100-sxm", "--tp", "4", "--replicas", "8")
"""Eight engines, as one would serve a thousand conversations; a step of each makes a token for 125 streams."""

NAME = "llama"
OPENS_S = 0.002
"""Between two streams of a load, so that what is measured is not the storm in which they would all come at once."""

CHUNK = (
    b'data: {"id":"cmpl-0123456789abcdef0123456789abcdef","object":"text_completion","created":1700000000,"model":'
    b'"meta-llama/Llama-3.1-70B-Instruct","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null}]}'
    b"\n\n"
)


class Client:
    """Streams read in one loop over sockets, which costs less than any HTTP client does."""

    def __init__(self, address: str, num_streams: int, num_tokens: int) -> None:
        host, port = address.removeprefix("http://").split(":")
        requested = {"model": NAME, "prompt": " ".join(["the"] * 64), "max_tokens": num_tokens, "ignore_eos": True}
        body = json.dumps(requested | {"stream": True}).encode()
        head = f"POST /v1/completions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n"
        self._request = head.encode() + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body
        self._where, self._num_streams = (host, int(port)), num_streams
        self._selector = selectors.DefaultSelector()

    def read_all(self) -> tuple[int, float]:
        """Tokens of all streams, and from the first that came to the last. They open one after the other."""
        count, left, first_s, last_s = 0, self._num_streams, 0.0, 0.0
        num_asked, begun_s = 0, time.perf_counter()
        while left:
            while num_asked < min(self._num_streams, (time.perf_counter() - begun_s) / OPENS_S):
                self._ask()
                num_asked += 1
            for key, _ in self._selector.select(OPENS_S if num_asked < self._num_streams else None):
                stream = key.fileobj
                assert isinstance(stream, socket.socket)
                data = stream.recv(65536)
                if not data:
                    self._selector.unregister(stream)
                    stream.close()
                    left -= 1
                elif found := data.count(b"data: {"):
                    count, last_s = count + found, time.perf_counter()
                    first_s = first_s or last_s
        return count, last_s - first_s

    def _ask(self) -> None:
        stream = self._opened()
        stream.sendall(self._request)
        stream.setblocking(False)
        self._selector.register(stream, selectors.EVENT_READ)

    @contextmanager
    def idle(self, count: int) -> Generator[None]:
        """So many further connections, each of which is answered at the start and again at the end."""
        retained = [self._opened() for _ in range(count)]
        assert all(map(is_well, retained))
        yield
        assert all(map(is_well, retained)), "a connection was lost"
        for connection in retained:
            connection.close()

    def _opened(self) -> socket.socket:
        return socket.create_connection(self._where, timeout=30)


def is_well(connection: socket.socket) -> bool:
    """Whether the server answers on an open connection."""
    connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
    return connection.recv(4096).startswith(b"HTTP/1.1 200")


async def bare(host: str, gap_s: float, num_tokens: int) -> None:
    """Serve `num_tokens` chunks to every request, one each `gap_s`; GET tells how late they left."""
    import uvicorn

    late_s: list[float] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        kind = b"text/event-stream" if scope["method"] == "POST" else b"application/json"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        if scope["method"] != "POST":
            await send({"type": "http.response.body", "body": json.dumps(p99(late_s)).encode()})
            return
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        for k in range(1, num_tokens + 1):
            await asyncio.sleep(begun_s + k * gap_s - loop.time())
            await send({"type": "http.response.body", "body": CHUNK, "more_body": k < num_tokens})
            late_s.append(loop.time() - begun_s - k * gap_s)

    with socket.create_server((host, 0), backlog=4096) as listener:
        print(json.dumps({"address": f"http://{host}:{listener.getsockname()[1]}"}), flush=True)
        gc.freeze()
        config = uvicorn.Config(app, http="httptools", log_level="error", access_log=False, lifespan="off", ws="none")
        await uvicorn.Server(config).serve(sockets=[listener])


def p99(values: list[float]) -> float:
    """The 99th percentile."""
    return sorted(values)[int(0.99 * len(values))] if values else 0.0


@contextmanager
def started(words: list[str]) -> Generator[tuple[psutil.Process, str]]:
    """A server's process, and where it listens."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            text = ""
            while not text.rstrip().endswith("}"):
                line = process.stdout.readline()
                assert line, "the server did not start"
                text += line
            yield psutil.Process(process.pid), json.loads(text)["address"]
        finally:
            process.terminate()


def lag_p99(page: str) -> float:
    """The upper end of the bucket in which 99 of 100 tokens have left, from /metrics."""
    rows = [x for x in page.splitlines() if x.startswith("orrery:predicted_vs_emulated_lag_seconds_bucket")]
    found = [(float(r.split('le="')[1].split('"')[0]), float(r.rsplit(" ", 1)[1])) for r in rows]
    return next((end for end, count in found if count >= 0.99 * found[-1][1]), float("inf"))


def used(process: psutil.Process) -> float:
    """Seconds of processor time of a server and its workers."""
    return sum(sum(p.cpu_times()[:2]) for p in (process, *process.children(recursive=True)))


def loaded(process: psutil.Process, client: Client) -> dict[str, float]:
    """What one load costs."""
    before_s, own_s = used(process), time.process_time()
    count, took_s = client.read_all()
    used_s = used(process) - before_s
    return {
        "tokens": count,
        "seconds": took_s,
        "tokens_per_s": count / took_s,
        "server_cpu_us_per_token": used_s / count * 1e6,
        "client_cpu_us_per_token": (time.process_time() - own_s) / count * 1e6,
    }


def got(url: str) -> str:
    """A page."""
    with urllib.request.urlopen(url, timeout=30) as page:
        return page.read().decode()


def of_emulator(args: argparse.Namespace) -> dict[str, float]:
    """The emulator under load, beside idle connections."""
    words = [*DEPLOYED, "--port", "0", "--json", "--speed", str(args.speed), "--served-model-name", NAME]
    with started([sys.executable, "-m", "orrery", "emulate", *words]) as (process, address):
        loaded(process, Client(address, 8, 4))
        client = Client(address, args.streams, args.tokens)
        with client.idle(args.idle):
            found = loaded(process, client)
        return found | {"lag_p99_s": lag_p99(got(f"{address}/metrics"))}


def of_bare(args: argparse.Namespace, gap_s: float) -> dict[str, float]:
    """The bare server under the same load."""
    with started([sys.executable, __file__, "--bare", str(gap_s), "--tokens", str(args.tokens)]) as (process, address):
        found = loaded(process, Client(address, args.streams, args.tokens))
        return found | {"lag_p99_s": float(got(address))}


def of_guidellm(args: argparse.Namespace, gap_s: float) -> dict[str, float]:
    """The mock server that guidellm brings, with fixed gaps between tokens."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    words = [args.guidellm, "mock-server", "--port", str(port), "--ttft-ms", "1", "--itl-ms", str(gap_s * 1e3)]
    more = ["--output-tokens", str(args.tokens), "--output-tokens-std", "0", "--itl-ms-std", "0"]
    with subprocess.Popen([*words, *more], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            await_port(port)
            client = Client(f"http://127.0.0.1:{port}", args.streams, args.tokens)
            return loaded(psutil.Process(process.pid), client)
        finally:
            process.terminate()


def await_port(port: int) -> None:
    """Wait until somebody listens."""
    for _ in range(600):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise TimeoutError(f"nobody listens at port {port}")


def main() -> None:
    """Measure them one after the other; the others are to send as many tokens a second as the emulator did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=200, help="of each stream")
    parser.add_argument("--idle", type=int, default=0, help="further connections to the emulator, open meanwhile")
    parser.add_argument("--speed", type=float, default=1.0, help="of the emulated deployment")
    parser.add_argument("--guidellm", default="", metavar="PATH", help="its program: measure its mock server, too")
    parser.add_argument("--bare", type=float, default=0.0, metavar="GAP_S", help="be the bare server")
    args = parser.parse_args()
    allow_connections()
    if args.bare:
        asyncio.run(bare("127.0.0.1", args.bare, args.tokens))
        return
    emulator = of_emulator(args)
    gap_s = args.streams / emulator["tokens_per_s"]
    found = {"emulator": emulator, "bare": of_bare(args, gap_s)}
    if args.guidellm:
        found["guidellm"] = of_guidellm(args, gap_s)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
