"""Cases run on this machine, as rows of a measured table.

All cases are run once, then all again, and so on: a slow minute of the machine falls on all of them alike. Kernels,
steps and exchanges are timed in quiet moments (``Quiet``), as a calibration times them, and a cell is the median over
the rounds. A server runs for seconds, so no moment is chosen for it; a neighbour only ever slows it, and of its rounds
the one with the shortest steps counts. ``spread_frac`` says how far apart the rounds lay.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.calibrate.measure import numpy_kernels as kernels
from orrery.calibrate.measure.backends.on_numpy import NumpyBackend
from orrery.calibrate.measure.clock import time_call
from orrery.calibrate.measure.exchange.team import Team
from orrery.calibrate.measure.quiet import PATIENCE_S, QuietSampler
from orrery.calibrate.measure.state import num_blas_threads
from orrery.calibrate.measure.watch import Canary
from orrery.calibrate.truth.cases import Case, Decode, Exchange, Load, Network, Prefill, Product
from orrery.calibrate.truth.server import serve
from orrery.calibrate.truth.transformer import Cache, Transformer, transformer
from orrery.engine.streams import stream

ENGINE = "numpy"
"""Name of the engine whose kernels and loop were run; the catalog has an engine file of that name."""

FORMATS = {"weights_format": "fp32", "activations_format": "fp32", "kv_format": "fp32"}

COLLECTIVE, LIBRARY = "all_reduce", "tcp"

PRODUCT_BUDGET_S, STEP_BUDGET_S, EXCHANGE_BUDGET_S, MIN_SAMPLES = 0.05, 0.1, 0.05, 3
"""Time for one round of one case, warm-up included, unless so many samples take longer."""

MAX_SCHEDULES_RATIO = 5.0
"""A server's run ends after so many times the schedule of its arrivals: the machine is busy, or was not predicted."""

Metrics = dict[str, float]
Row = dict[str, Any]
Progress = Callable[[int, int], None]


def measure(
    cases: Sequence[Case],
    *,
    device: str,
    configs: Path,
    rounds: int = 3,
    quiet: QuietSampler | None = None,
    on_progress: Progress | None = None,
) -> list[Row]:
    """Run every case ``rounds`` times; one row a case. ``configs`` is the folder that ``write_configs`` filled.

    ``device`` is what the rows call this machine: the name or the file of its calibration.
    """
    if rounds < 1:
        raise ScenarioError(f"rounds: got {rounds}; write at least 1.")
    found: list[list[Metrics]] = [[] for _ in cases]
    quiet = quiet or listening()
    with ExitStack() as opened:
        bench = _Bench(opened=opened, quiet=quiet)
        for turn in range(rounds):
            for number, case in enumerate(cases):
                found[number].append(bench.run(case))
                if on_progress:
                    on_progress(turn * len(cases) + number + 1, rounds * len(cases))
    threads = num_blas_threads()
    return [
        {**described(case, configs), "device": device, **_over_rounds(case, each), "num_blas_threads": threads}
        for case, each in zip(cases, found, strict=True)
    ]


def listening(patience_s: float = PATIENCE_S) -> QuietSampler:
    """A wait for quiet moments of this machine, after listening to it."""
    return QuietSampler(Canary.of(NumpyBackend()), patience_s)


def write_configs(networks: Iterable[Network], folder: Path) -> None:
    """The config.json of each network, under its name: what the rows call their model."""
    for network in networks:
        write_atomically(config_path(network, folder), json.dumps(network.config(), indent=2) + "\n")


def config_path(network: Network, folder: Path) -> Path:
    """Where a network's config stands."""
    return folder / f"{network.name}.json"


@dataclass(slots=True, kw_only=True)
class _Bench:
    """Resources that cases share, made on first use: the weights of each network, and two processes."""

    opened: ExitStack
    quiet: QuietSampler
    models: dict[str, Transformer] = field(default_factory=dict[str, Transformer])
    pair: Team | None = None

    def run(self, case: Case) -> Metrics:
        """One round of one case."""
        match case:
            case Product():
                return self._product(case)
            case Prefill():
                return self._prefill(case)
            case Decode():
                return self._decode(case)
            case Load():
                return self._load(case)
            case Exchange():
                return self._exchange(case)

    def _load(self, case: Load) -> Metrics:
        """Metrics of a served load; none where the machine did not keep up: what happened to finish says little about
        what did not."""
        requests = case.requests()
        most_s = MAX_SCHEDULES_RATIO * float(requests.arrive_s[-1])
        served = serve(self._model(case.server.network), requests, case.server.limits, most_s=most_s)
        return served.metrics() if np.isfinite(served.finish_s).all() else {}

    def _exchange(self, case: Exchange) -> Metrics:
        if self.pair is None:
            self.pair = self.opened.enter_context(Team(LIBRARY))
        take = partial(
            self.pair.time, COLLECTIVE, case.message_bytes, budget_s=EXCHANGE_BUDGET_S, least_samples=MIN_SAMPLES
        )
        return {"time_s": self.quiet.take(take)[0].time_s}

    def _model(self, network: Network) -> Transformer:
        if network.name not in self.models:
            self.models[network.name] = transformer(network.config())
        return self.models[network.name]

    def _prefill(self, case: Prefill) -> Metrics:
        model = self._model(case.network)
        cache = model.new_cache(case.prompt_tokens)
        prompt = stream(0, "tokens").integers(model.vocab_size, size=case.prompt_tokens)
        time_s = self._step_s(model, [cache], [prompt], past_tokens=0)
        return {"ttft_s": time_s, "latency_s": time_s}

    def _decode(self, case: Decode) -> Metrics:
        model = self._model(case.network)
        caches = [model.new_cache(case.context_tokens + 1) for _ in range(case.batch_size)]
        tokens = stream(0, "tokens").integers(model.vocab_size, size=(case.batch_size, 1))
        return {"tpot_s": self._step_s(model, caches, list(tokens), past_tokens=case.context_tokens)}

    def _product(self, case: Product) -> Metrics:
        x, weight = np.full((case.m, case.k), 0.5, np.float32), np.full((case.k, case.n), 0.5, np.float32)
        return {"time_s": self._time_s(lambda: kernels.product(x, weight), PRODUCT_BUDGET_S)}

    def _step_s(self, model: Transformer, caches: list[Cache], tokens: list[Any], past_tokens: int) -> float:
        """The time of one and the same step, again and again."""

        def step() -> None:
            for cache in caches:
                cache.num_tokens = past_tokens
            model.step(list(zip(caches, tokens, strict=True)))

        return self._time_s(step, STEP_BUDGET_S)

    def _time_s(self, call: Callable[[], object], budget_s: float) -> float:
        take = partial(time_call, call, budget_s=budget_s, least_samples=MIN_SAMPLES)
        return self.quiet.take(take)[0].time_s


def _over_rounds(case: Case, rounds: Sequence[Metrics]) -> Metrics:
    """The rounds that came to an end as one, and how far apart they lay: half the range of the first metric over it."""
    ended = [each for each in rounds if each]
    if not ended:
        return {"num_rounds": 0}
    if isinstance(case, Load):
        found = min(ended, key=lambda each: each["tpot_s"])
    else:
        found = {name: median(each[name] for each in ended) for name in ended[0]}
    first = next(iter(found))
    values = [each[first] for each in ended]
    return {**found, "spread_frac": (max(values) - min(values)) / 2 / found[first], "num_rounds": len(ended)}


def described(case: Case, configs: Path) -> Row:
    """The columns that say what was run."""
    about: Row = {"kind": "serving", "engine": ENGINE, "engine_version": np.__version__}
    match case:
        case Product():
            return {**about, "kind": "kernel", "op": "gemm", "format": "fp32", "m": case.m, "n": case.n, "k": case.k}
        case Exchange():
            return {
                "kind": "collective",
                "collective": COLLECTIVE,
                "library": LIBRARY,
                "num_devices": 2,
                "format": "fp32",
                "message_bytes": case.message_bytes,
            }
        case Prefill():
            return about | _static(case.network, configs, batch=1, inputs=case.prompt_tokens, outputs=1)
        case Decode():
            return about | _static(case.network, configs, batch=case.batch_size, inputs=case.context_tokens, outputs=2)
        case Load():
            return about | _open(case, configs)


def _static(network: Network, configs: Path, *, batch: int, inputs: int, outputs: int) -> Row:
    return {
        "model": str(config_path(network, configs)),
        **FORMATS,
        "mode": "static",
        "batch_size": batch,
        "input_tokens": inputs,
        "output_tokens": outputs,
    }


def _open(load: Load, configs: Path) -> Row:
    server = load.server
    means = {"input_tokens": server.input_tokens, "output_tokens": server.output_tokens}
    deviation_frac = server.range_ratio / sqrt(3.0)  # of a uniform law, over its mean
    return {
        "model": str(config_path(server.network, configs)),
        **FORMATS,
        "mode": "open",
        "max_num_seqs": server.limits.max_num_seqs,
        "max_num_batched_tokens": server.limits.max_num_batched_tokens,
        "request_rate_per_s": load.request_rate_per_s,
        "num_requests": server.num_requests,
        **means,
        **{f"{name}_std": mean * deviation_frac for name, mean in means.items()},
    }
