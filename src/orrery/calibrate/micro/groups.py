"""Groups of microbenchmarks: a module of a platform's folder, whose ``BENCHMARKS`` run in a process of their own.

A group of GPUs measures a ``Gpu`` unless its ``SUBJECT`` opens another thing; a group of the processor measures nothing
but the process it runs in.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from orrery.calibrate.micro.cpu import benchmarks as of_cpu
from orrery.calibrate.micro.cuda import benchmarks as of_cuda
from orrery.calibrate.micro.reading import Failed, Reading

Benchmark = Callable[[Any], Iterator[Reading | Failed]]

PLATFORMS: Mapping[str, ModuleType] = {"cuda": of_cuda, "cpu": of_cpu}


def group_names(platform: str) -> tuple[str, ...]:
    """Names of a platform's groups."""
    return tuple(sorted(found.name for found in iter_modules(PLATFORMS[platform].__path__)))


def benchmarks(platform: str, group: str) -> tuple[Benchmark, ...]:
    """The group's microbenchmarks, imported now."""
    return _module(platform, group).BENCHMARKS


def subject(platform: str, group: str, index: int) -> tuple[Any, str]:
    """The thing that a group measures, and what the machine calls it."""
    if platform == "cpu":
        from orrery.calibrate.measure.facts import cpu_title

        return None, str(cpu_title().value)
    from orrery.calibrate.micro.cuda.gpu import opened

    return getattr(_module(platform, group), "SUBJECT", opened)(index)


def _module(platform: str, group: str) -> Any:
    return import_module(f"{PLATFORMS[platform].__name__}.{group}")
