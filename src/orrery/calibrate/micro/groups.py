"""Groups of microbenchmarks: modules whose ``BENCHMARKS`` run in a process of their own, on one subject."""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from orrery.calibrate.micro.reading import Failed, Reading

Benchmark = Callable[[Any], Iterator[Reading | Failed]]

GROUPS: Mapping[str, Mapping[str, str]] = {
    "cuda": {
        "latency": "cuda.latency",
        "instructions": "cuda.instructions",
        "bandwidth": "cuda.bandwidth",
        "tensor": "cuda.tensor",
        "exchange": "cuda.exchange",
        "atomics": "cuda.atomics",
        "launch": "cuda.launch",
        "copies": "cuda.copies",
        "products": "products",
    },
    "cpu": {
        "latency": "cpu.latency",
        "bandwidth": "cpu.bandwidth",
        "products": "cpu.products",
        "threads": "cpu.threads",
    },
}
"""Modules by platform and group, below this package."""


def benchmarks(platform: str, group: str) -> tuple[Benchmark, ...]:
    """The group's microbenchmarks, imported now."""
    return import_module(f"orrery.calibrate.micro.{GROUPS[platform][group]}").BENCHMARKS


def subject(platform: str, group: str, index: int) -> tuple[Any, str]:
    """The thing that a group measures, and what the machine calls it."""
    if platform == "cpu":
        from orrery.calibrate.measure.facts import cpu_title

        return None, str(cpu_title().value)
    if group == "products":
        from orrery.calibrate.measure.backends.on_pytorch import PytorchBackend

        backend = PytorchBackend(f"cuda:{index}", is_graphed=True)
        return backend, str(backend.facts()["title"].value)
    from orrery.calibrate.micro.cuda.gpu import Gpu

    gpu = Gpu(index)
    return gpu, gpu.name
