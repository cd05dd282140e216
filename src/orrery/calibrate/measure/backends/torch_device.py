"""One device as PyTorch sees it: its memory, its caches, how to wait for it, how to capture a graph on it."""

from collections.abc import Callable, Mapping
from typing import Any

import psutil

from orrery.base.errors import OrreryError
from orrery.base.sources import Fact, Source
from orrery.calibrate.measure import torch_kernels
from orrery.calibrate.measure.facts import FALLBACK_CACHE_BYTES, host_facts, make_fact

WARM_CALLS = 3
"""Calls before a capture, so that libraries have chosen their kernels and taken their workspaces."""

KHZ = 1e3
PYTORCH = Source(title="What PyTorch says of the device")


def torch_devices() -> tuple[str, ...]:
    """Devices that PyTorch can compute on here, GPUs first; empty where it is not installed."""
    torch = torch_kernels.load()
    if torch is None:
        return ()
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return (*gpus, *(["mps"] if torch.backends.mps.is_available() else []), "cpu")


class TorchDevice:
    """A device by its name in PyTorch: "cpu", "cuda:0" (also AMD's, under ROCm) or "mps"."""

    def __init__(self, name: str) -> None:
        seen = torch_devices()
        if not seen:
            raise OrreryError("PyTorch is not installed: pip install torch, or measure with NumPy.")
        if name not in seen:
            raise OrreryError(f"PyTorch sees no device {name!r} here; it sees {', '.join(seen)}.")
        self.torch: Any = torch_kernels.load()
        self.name, self.type = name, name.split(":")[0]
        self.facts: Mapping[str, Fact] = _facts(self.torch, name)
        cache = self.facts.get("last_level_cache_bytes")
        self.cache_bytes = float(cache.value) if cache else FALLBACK_CACHE_BYTES

    @property
    def board(self) -> str:
        """The board's identity as NVIDIA's tools write it; blank where PyTorch does not tell."""
        properties = self.torch.cuda.get_device_properties(self.name) if self.type == "cuda" else None
        identity = str(getattr(properties, "uuid", ""))
        return f"GPU-{identity}" if identity else ""

    @property
    def has_tf32(self) -> bool:
        """Matrix units for TF32: NVIDIA's since Ampere. Elsewhere PyTorch takes FP32 for it without a word."""
        is_nvidia = self.type == "cuda" and not self.torch.version.hip
        return bool(is_nvidia and self.torch.cuda.get_device_capability(self.name) >= (8, 0))

    def synchronise(self) -> None:
        """Waits until it is idle."""
        if self.type == "cuda":
            self.torch.cuda.synchronize(self.name)
        elif self.type == "mps":
            self.torch.mps.synchronize()

    def free_bytes(self) -> float:
        """Memory that operands may still take: free, or PyTorch's own from operands that are gone."""
        if self.type == "cuda":
            cuda = self.torch.cuda
            own = cuda.memory_reserved(self.name) - cuda.memory_allocated(self.name)
            return float(cuda.mem_get_info(self.name)[0] + own)
        if self.type == "mps":
            return float(self.torch.mps.recommended_max_memory() - self.torch.mps.driver_allocated_memory())
        return float(psutil.virtual_memory().available)

    def captured(self, call: Callable[[], object], count: int) -> Callable[[], object]:
        """``count`` calls as one CUDA (or HIP) graph that is replayed."""
        torch = self.torch
        side = torch.cuda.Stream(self.name)
        side.wait_stream(torch.cuda.current_stream(self.name))
        with torch.cuda.stream(side):
            for _ in range(WARM_CALLS):
                call()
        torch.cuda.current_stream(self.name).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                call()
        return graph.replay


def _facts(torch: Any, name: str) -> Mapping[str, Fact]:
    if name == "cpu":
        return host_facts()
    if name == "mps":
        host = host_facts()
        memory_bytes, at = float(torch.mps.recommended_max_memory()), "torch.mps.recommended_max_memory"
        memory = make_fact("memory_capacity_bytes", memory_bytes, at, PYTORCH)
        found = (host.get("title"), host.get("vendor"), make_fact("kind", "gpu", "by nature"), memory)
        return {fact.name: fact for fact in found if fact}
    properties = torch.cuda.get_device_properties(name)
    stated = {
        "title": properties.name,
        "vendor": "AMD" if torch.version.hip else "NVIDIA",
        "kind": "gpu",
        "memory_capacity_bytes": float(properties.total_memory),
        "num_compute_units": float(properties.multi_processor_count),
        "compute_clock_hz": KHZ * getattr(properties, "clock_rate", 0),
        "last_level_cache_bytes": float(getattr(properties, "L2_cache_size", 0)),
    }
    at = "torch.cuda.get_device_properties"
    return {key: make_fact(key, value, at, PYTORCH) for key, value in stated.items() if value}
