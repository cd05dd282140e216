"""What clients measured, beside what ``simulate`` says of requests that come when theirs came."""

import asyncio
import json
import random
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import numpy as np

from orrery.emulator.words import VOCABULARY
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.requests import Requests
from orrery.serving.simulation.simulate import simulate

WORDS = VOCABULARY.split()
NOT_MORE = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One request as its client saw it, on the wall."""

    sent_s: float
    prompt_tokens: int
    answer_tokens: int
    ttft_s: float
    tpot_s: float
    latency_s: float


def prompt(seed, num_tokens):
    """A text of so many tokens, with a beginning that no other seed has."""
    return " ".join(random.Random(seed).choices(WORDS, k=num_tokens))


def compare(scenario, speed, timed, late_s):
    """(name, measured, simulated, allowed difference): means in the service's time, and its throughput."""
    timed = sorted(timed, key=lambda x: x.sent_s)
    sent_s, ttft_s, tpot_s, latency_s = (
        np.array([getattr(x, name) for x in timed]) * speed for name in ("sent_s", "ttft_s", "tpot_s", "latency_s")
    )
    requests = Requests(
        arrive_s=sent_s - sent_s[0],
        input_tokens=np.array([x.prompt_tokens for x in timed]),
        output_tokens=np.array([x.answer_tokens for x in timed]),
    )
    message = simulate(service_for(read_scenario(scenario))[0], requests)
    gaps = requests.output_tokens - 1
    late_s, total = late_s * speed, requests.output_tokens.sum()
    rows = [
        ("ttft_s", ttft_s.mean(), (message.first_token_s - message.arrive_s).mean(), late_s),
        ("tpot_s", tpot_s.mean(), ((message.finish_s - message.first_token_s) / gaps).mean(), late_s / gaps.mean()),
        ("latency_s", latency_s.mean(), (message.finish_s - message.arrive_s).mean(), late_s),
        ("tokens_per_s", total / (sent_s + latency_s - sent_s[0]).max(), total / message.finish_s.max(), 0.0),
    ]
    return [(name, got, expected, NOT_MORE * expected + late) for name, got, expected, late in rows]


def assert_agrees(scenario, speed, timed, late_s):
    """All of them, and a line that says how well."""
    rows = compare(scenario, speed, timed, late_s)
    message = ", ".join(f"{name} {got:.5g} (simulate {expected:.5g})" for name, got, expected, _ in rows)
    print(f"\n{len(timed)} requests: {message}; late on average {late_s * 1e3:.2f} ms")
    for name, got, expected, allowed in rows:
        assert abs(got - expected) <= allowed, f"{name}: {message}"


def lags_of(url):
    """How late the server says it is: of tokens, then of its event loop, their number and the sum in seconds."""
    message = dict(x.rsplit(" ", 1) for x in httpx.get(f"{url}/metrics").text.splitlines() if x[0] != "#")
    names = ("orrery:predicted_vs_emulated_lag_seconds", "orrery:emulator_event_loop_lag_seconds")
    return np.array([[float(message[f"{name}_{x}"]) for x in ("count", "sum")] for name in names])


def late_s(url, before):
    """Mean lag since a reading, of what comes in and what goes out: a request waits for the loop, a token is late."""
    count, total = (lags_of(url) - before).T
    return float((total / count).sum())


@contextmanager
def served(scenario, *words):
    """`orrery emulate` in a process of its own; where it listens."""
    flags = [x for name, value in scenario.items() for x in (f"--{name.replace('_', '-')}", str(value))]
    command = [sys.executable, "-m", "orrery", "emulate", *flags, "--port", "0", "--json", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        text = ""
        while not text.rstrip().endswith("}"):
            line = process.stdout.readline()
            assert line, process.stderr and process.stderr.read()
            text += line
        try:
            yield json.loads(text)["address"]
        finally:
            process.terminate()


class Probe:
    """How late this client's own timers are served: as late it goes on with what it sends, and as late it reads."""

    def __init__(self):
        self.lags_s = []

    async def run(self):
        while True:
            due_s = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            self.lags_s.append(time.monotonic() - due_s)

    async def __aenter__(self):
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, *_):
        self._task.cancel()

    @property
    def both_s(self):
        """Mean of a request, on its way out and back."""
        return 2.0 * float(np.mean(self.lags_s)) if self.lags_s else 0.0


async def like_vllm_bench(url, text, num_tokens):
    """A request as `vllm bench serve --backend openai --ignore-eos` sends it, timed as it times it."""
    body = json.dumps(
        {
            "model": "llama",
            "prompt": text,
            "repetition_penalty": 1.0,
            "max_tokens": num_tokens,
            "logprobs": None,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0.0,
            "ignore_eos": True,
        }
    ).encode()
    host, port = url.removeprefix("http://").split(":")
    sent_s = time.monotonic()
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAuthorization: Bearer x"
    writer.write(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    assert (await reader.readline()).split()[1] == b"200"
    first_s = last_s = 0.0
    usage = {}
    while (line := await reader.readline()) != b"data: [DONE]\n":
        if line.startswith(b"data: "):
            event = json.loads(line.removeprefix(b"data: "))
            if event["choices"]:
                last_s = time.monotonic()
                first_s = first_s or last_s
            usage = event.get("usage") or usage
    writer.close()
    count = usage["completion_tokens"]
    return Timed(
        sent_s=sent_s,
        prompt_tokens=usage["prompt_tokens"],
        answer_tokens=count,
        ttft_s=first_s - sent_s,
        tpot_s=(last_s - first_s) / (count - 1),
        latency_s=last_s - sent_s,
    )


async def like_openai(client, text, num_tokens):
    """The same through the `openai` package."""
    sent_s = time.monotonic()
    stream = await client.completions.create(
        model="llama",
        prompt=text,
        max_tokens=num_tokens,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"ignore_eos": True},
    )
    first_s, last_s, usage = 0.0, 0.0, None
    async for chunk in stream:
        if chunk.choices:
            last_s = time.monotonic()
            first_s = first_s or last_s
        usage = chunk.usage or usage
    return Timed(
        sent_s=sent_s,
        prompt_tokens=usage.prompt_tokens,
        answer_tokens=usage.completion_tokens,
        ttft_s=first_s - sent_s,
        tpot_s=(last_s - first_s) / (usage.completion_tokens - 1),
        latency_s=last_s - sent_s,
    )


async def open_loop(send, arrive_s, sizes):
    """Every request at its moment, whatever has become of the others; and how late this client is."""
    async with Probe() as probe:
        start_s = time.monotonic()

        async def one(k):
            await asyncio.sleep(max(0.0, start_s + arrive_s[k] - time.monotonic()))
            return await send(prompt(k, int(sizes[k][0])), int(sizes[k][1]))

        timed = await asyncio.gather(*(one(k) for k in range(len(arrive_s))))
    return timed, probe.both_s


async def closed_loop(send, concurrency, sizes):
    """So many requests at a time."""
    left, timed = iter(enumerate(sizes)), []

    async def worker():
        for k, (num_prompt, num_answer) in left:
            timed.append(await send(prompt(k, int(num_prompt)), int(num_answer)))

    async with Probe() as probe:
        await asyncio.gather(*(worker() for _ in range(concurrency)))
    return timed, probe.both_s
