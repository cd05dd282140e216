"""A model's kernels through a host's launch queue: when the device takes over from the host."""

from collections.abc import Iterator
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.eager_layers import kernels_s, layer_of
from orrery.hardware.device import Device
from orrery.kernels.launches import HOSTS, Host, is_queuing, run
from orrery.models.model import Model
from orrery.scenario.kernel.operator import Found, Operator, Way, Work, one_of

MAX_BATCH = 1024
EAGER = "transformers"
"""Engine whose measured time of a launch a host needs for an operator."""

ENGINE = "vllm"
"""Engine whose kernels an eager framework calls, unless one is given: PyTorch's products and FlashAttention."""


def queues(work: Work) -> Iterator[Way]:
    """One way a host."""
    if not work.has("model"):
        raise ScenarioError("model: not set; write a name such as llama-3.2-1b (orrery show models lists them).")
    for name in work.list_of("hosts", HOSTS):
        host = HOSTS[one_of("hosts", name, HOSTS)]
        yield Way(variant=name, format="bf16", find=partial(_queue, work, host))


def _queue(work: Work, host: Host) -> Found:
    model, device = get_model(str(work.words["model"])), work.device
    batch, tokens = work.size("batch"), work.size("query_tokens")
    launch_s = work.number("launch_s", host.launch_s)
    engine = work.word("engine", ENGINE)
    kernels, dispatch_s = _kernels(model, device, batch, tokens, engine), _dispatch_s(host)
    found = run(kernels, dispatch_s, launch_s)
    busy_s, launched_s = float(kernels.sum()), kernels.size * dispatch_s
    return Found(
        time_s=found.latency_s,
        flops=0.0,
        bytes=0.0,
        roofs_s={"device": busy_s},
        others_s={"host": launched_s},
        details={
            "launch_and_queuing_s": found.launch_and_queuing_s,
            "idle_frac": found.idle_frac,
            "kernels": int(kernels.size),
            "turn_batch": _turn(model, device, tokens, host, launch_s, engine),
        },
        because=(
            host.source,
            f"an eager operator takes {dispatch_s * 1e6:.2g} µs ({EAGER}, measured on one H100)",
            f"{layer_of(model).num_launches} kernels a layer, counted in the common library's model",
        ),
    )


def _dispatch_s(host: Host) -> float:
    """Time between two launches of a host."""
    return host.dispatch_ratio * get_engine(EAGER).launch_s


@cache
def _kernels(model: Model, device: Device, batch: int, tokens: int, engine: str) -> NDArray[np.float64]:
    return kernels_s(model, device, batch, tokens, engine)


@cache
def _turn(model: Model, device: Device, tokens: int, host: Host, launch_s: float, engine: str) -> int:
    """The first power of two of prompts at which kernels queue; 0 where none does."""
    batch = 1
    while batch <= MAX_BATCH:
        kernels = _kernels(model, device, batch, tokens, engine)
        if is_queuing(run(kernels, _dispatch_s(host), launch_s), kernels.size, launch_s):
            return batch
        batch *= 2
    return 0


LAUNCHES = Operator(
    name="launch-queue",
    sizes={"batch": 1, "query_tokens": 512},
    ways=queues,
    variants={name: host.source for name, host in HOSTS.items()},
    settings=frozenset({"model", "hosts", "launch_s", "engine"}),
)
