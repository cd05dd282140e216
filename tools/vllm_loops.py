"""Closed loops of vLLM's engine with random weights on the GPU that is here, and the kernels of a few of its steps.

    python tools/vllm_loops.py --model my-model/ --device h100-sxm --out measured/

``--model`` is a folder with a ``config.json``; no weights, tokenizer or network are needed. ``serving.csv`` gets a row
a loop in the columns of measured runs, ``kernels.csv`` what each kernel of a window of decode steps, or of one prompt,
took. Needs vLLM. Prompts are random tokens: experts are chosen more evenly than by real text, as the rows say.
"""

import argparse
import asyncio
import csv
import glob
import gzip
import importlib
import importlib.metadata
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

Prompt = Sequence[int]
Generate = Callable[[Prompt, int], AsyncIterator[int]]
"""Tokens wanted after a prompt; yields how many arrived together."""

KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of a PyTorch trace that keep the device busy."""


@dataclass(frozen=True)
class Loop:
    """So many requests, so many of them at a time."""

    concurrency: int
    input_tokens: int
    output_tokens: int
    num_requests: int


@dataclass(frozen=True)
class Window:
    """Steps whose kernels are written down: decode steps of a batch, or whole prompts where ``output_tokens`` is 1."""

    batch_size: int
    input_tokens: int
    output_tokens: int = 200


LOOPS = [
    Loop(1, 1024, 64, 3),
    Loop(1, 8192, 24, 3),
    Loop(8, 1024, 96, 16),
    Loop(32, 1024, 96, 64),
    Loop(128, 1024, 96, 256),
    Loop(32, 8192, 32, 32),
]
WINDOWS = [Window(1, 2048, 1), Window(1, 8000, 1), Window(1, 1024), Window(32, 1024), Window(128, 1024)]
WINDOW_STEPS = 10


async def arrivals(generate: Generate, prompt: Prompt, output_tokens: int) -> list[float]:
    """The start of a request and when each of its tokens came, in seconds of one clock."""
    stamps = [time.perf_counter()]
    async for count in generate(prompt, output_tokens):
        stamps += [time.perf_counter()] * count
    return stamps


async def run_loop(generate: Generate, loop: Loop, prompts: Sequence[Prompt]) -> dict[str, float]:
    """Times to the first token, times a token and the rate of a loop, as load generators report them."""
    todo, done = list(prompts), list[list[float]]()

    async def client() -> None:
        while todo:
            done.append(await arrivals(generate, todo.pop(), loop.output_tokens))

    start = time.perf_counter()
    await asyncio.gather(*[client() for _ in range(loop.concurrency)])
    return summary(done, time.perf_counter() - start)


def summary(stamps: Sequence[Sequence[float]], seconds: float) -> dict[str, float]:
    """Means over requests of the time to the first token and of the time a token after it, and tokens a second."""
    first = [s[1] - s[0] for s in stamps]
    later = [(s[-1] - s[1]) / (len(s) - 2) for s in stamps if len(s) > 2]
    found = {"ttft_s": sum(first) / len(first), "output_tokens_per_s": sum(len(s) - 1 for s in stamps) / seconds}
    return found | ({"tpot_s": sum(later) / len(later)} if later else {})


def kernels_of(trace: Mapping[str, Any]) -> dict[str, tuple[int, float]]:
    """How often each kernel of a PyTorch trace ran and its seconds in all, longest first."""
    count, total = defaultdict[str, int](int), defaultdict[str, float](float)
    for event in trace["traceEvents"]:
        if event.get("cat") in KERNELS:
            count[event["name"]] += 1
            total[event["name"]] += event["dur"] * 1e-6
    return {name: (count[name], total[name]) for name in sorted(total, key=lambda n: -total[n])}


def prompts_of(rng: Random, vocab_size: int, tokens: int, count: int) -> list[Prompt]:
    """Random prompts; the vocabulary's ends, where special tokens lie, are left out."""
    return [[rng.randrange(vocab_size // 100, vocab_size * 99 // 100) for _ in range(tokens)] for _ in range(count)]


class Server:
    """vLLM's asynchronous engine with random weights, started as its server would be."""

    def __init__(self, model: Path, options: Mapping[str, Any]):
        arguments = importlib.import_module("vllm.engine.arg_utils")
        engine = importlib.import_module("vllm.v1.engine.async_llm")
        self._sampling = importlib.import_module("vllm.sampling_params")
        self._traces = Path(tempfile.mkdtemp(prefix="kernels-"))
        profiler = {
            "profiler": "torch",
            "torch_profiler_dir": str(self._traces),
            "torch_profiler_with_stack": False,
            "ignore_frontend": True,
        }
        settings = {"load_format": "dummy", "skip_tokenizer_init": True, "profiler_config": profiler, **options}
        self._engine = engine.AsyncLLM.from_engine_args(arguments.AsyncEngineArgs(model=str(model), **settings))
        self._count = 0

    async def generate(self, prompt: Prompt, output_tokens: int) -> AsyncIterator[int]:
        """Greedy tokens to the stated length, whatever is drawn."""
        self._count += 1
        wanted = self._sampling.SamplingParams(
            temperature=0.0,
            max_tokens=output_tokens,
            ignore_eos=True,
            detokenize=False,
            output_kind=self._sampling.RequestOutputKind.DELTA,
        )
        async for answer in self._engine.generate({"prompt_token_ids": list(prompt)}, wanted, f"request-{self._count}"):
            yield len(answer.outputs[0].token_ids)

    async def window(self, window: Window, prompts: Sequence[Prompt]) -> dict[str, tuple[int, float]]:
        """Kernels of whole prompts, or of ``WINDOW_STEPS`` steps once every sequence of the batch is decoding."""
        arrived, target = [0] * len(prompts), [6]
        reached = asyncio.Event()

        async def client(i: int) -> None:
            async for count in self.generate(prompts[i], window.output_tokens):
                arrived[i] += count
                if min(arrived) >= target[0]:
                    reached.set()

        if window.output_tokens == 1:
            await self._engine.start_profile()
            await asyncio.gather(*[client(i) for i in range(len(prompts))])
            await self._engine.stop_profile()
        else:
            clients = asyncio.gather(*[client(i) for i in range(len(prompts))])
            await asyncio.wait_for(reached.wait(), 60)
            await self._engine.start_profile()
            target[0] = min(arrived) + WINDOW_STEPS
            reached.clear()
            await asyncio.wait_for(reached.wait(), 60)
            await self._engine.stop_profile()
            await clients
        found: dict[str, tuple[int, float]] = {}
        for path in glob.glob(f"{self._traces}/*.json*"):
            with gzip.open(path, "rt") if path.endswith("gz") else open(path) as file:
                found |= kernels_of(json.load(file))
            Path(path).unlink()
        return found

    def close(self) -> None:
        """Stop the engine's processes."""
        self._engine.shutdown()


def append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to a table, which gets its header with the first."""
    rows = list(rows)
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


async def measure(arguments: argparse.Namespace) -> None:
    """Every loop and window of one model, written down as soon as each is measured."""
    config = json.loads((arguments.model / "config.json").read_text())
    config = config.get("text_config", config)
    options = json.loads(arguments.engine_options)
    server = Server(arguments.model, options)
    rng = Random(arguments.seed)
    facts = {
        "kind": "serving",
        "source": arguments.source,
        "measured_date": time.strftime("%Y-%m-%d"),
        "note": "random weights and prompts; no server in front of the engine",
        "model": arguments.name or arguments.model.name,
        "device": arguments.device,
        "num_devices": options.get("tensor_parallel_size", 1),
        "tp": options.get("tensor_parallel_size", 1),
        "weights_format": arguments.weights,
        "engine": "vllm",
        "engine_version": importlib.metadata.version("vllm"),
        "mode": "closed",
    }
    await run_loop(server.generate, Loop(8, 1024, 16, 16), prompts_of(rng, config["vocab_size"], 1024, 16))
    for loop in LOOPS:
        prompts = prompts_of(rng, config["vocab_size"], loop.input_tokens, loop.num_requests)
        found = await run_loop(server.generate, loop, prompts)
        print(loop, {name: round(value, 5) for name, value in found.items()}, flush=True)
        append(arguments.out / "serving.csv", [facts | vars(loop) | {"tpot_s": "", **found}])
    for window in WINDOWS:
        prompts = prompts_of(rng, config["vocab_size"], window.input_tokens, window.batch_size)
        kernels = await server.window(window, prompts)
        print(window, len(kernels), "kernels", flush=True)
        rows = [
            {"model": facts["model"], **vars(window), "kernel": name, "count": count, "total_s": total}
            for name, (count, total) in kernels.items()
        ]
        if rows:
            append(arguments.out / "kernels.csv", rows)
    server.close()


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder with a config.json")
    parser.add_argument("--name", default="", help="name of the model in the tables (default: the folder's)")
    parser.add_argument(
        "--device", required=True, help="name of the device in the tables, as `orrery show devices` has it"
    )
    parser.add_argument("--weights", default="bf16", help="format of the weights in the tables")
    parser.add_argument("--source", default="own measurement", help="who measured, for the tables")
    parser.add_argument("--engine-options", default="{}", help="vLLM's engine arguments, as JSON")
    parser.add_argument("--out", type=Path, required=True, help="folder that the two tables go to")
    parser.add_argument("--seed", type=int, default=1, help="of the prompts")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(measure(arguments))


if __name__ == "__main__":
    main()
