"""Serving without CUDA graphs: the host launches every step kernel by kernel (``execution.host``)."""

from dataclasses import replace
from functools import lru_cache

from orrery.execution.engine import Engine


@lru_cache(maxsize=256)
def without_graphs(engine: Engine) -> Engine:
    """The engine started with the flag that turns its graphs off."""
    return replace(engine, has_cuda_graphs=False)


def eager_note(engine: Engine) -> str:
    """Note on the steps of an engine without its graphs, or that it has none."""
    if not engine.has_cuda_graphs:
        version = f" {engine.version}" if engine.version else ""
        return f"enforce_eager: not used; {engine.name}{version} has no CUDA graphs, its host launches every step"
    return f"enforce_eager: no CUDA graphs, {1e6 * engine.launch_s:.3g} µs of the host for every kernel of a step"
