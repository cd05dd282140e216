"""Routed experts that lie in the host's memory: how many a device keeps, by which rule, and who computes the others."""

from dataclasses import dataclass
from typing import Literal

from orrery.base.errors import ScenarioError

CACHES = ("lru", "score", "static", "layers")
SCHEDULES = ("greedy", "fixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostExperts:
    """Every layer's experts on the host, ``cached_frac`` of them on the device too.

    Without ``computes`` a missing expert crosses the link before the device computes it. With it the host computes
    missing ones: all of them (fixed), or those that it is sooner done with than link and device (greedy). What crossed
    the link takes the place of the expert used least recently (lru), or of the lowest faded score; a static cache
    stays. With layers the device keeps all experts of as many whole layers instead, and none of the others, as
    llama.cpp (--n-cpu-moe) and the rules of kTransformers have it. A predictor names an expert of the next layer
    whenever the link has been idle for long enough, and is right with ``prefetch_frac``; otherwise it brings another
    one in vain. 0: nothing is fetched ahead.
    """

    computes: bool = False
    cached_frac: float = 0.5
    cache: Literal["lru", "score", "static", "layers"] = "lru"
    schedule: Literal["greedy", "fixed"] = "greedy"
    prefetch_frac: float = 0.0
    repeat_frac: float = 0.0  # correlation of a router's scores from one token of a sequence to its next
    host_flops_per_s: float = 0.0
    host_memory_bytes_per_s: float = 0.0

    def __post_init__(self) -> None:
        if self.computes and not (self.host_flops_per_s > 0.0 and self.host_memory_bytes_per_s > 0.0):
            raise ScenarioError(
                "expert_offload: host-compute needs the host's own rates; write host_flops_per_s and "
                "host_memory_bytes_per_s (`orrery calibrate device` measures a machine)."
            )
        if not 0.0 <= self.repeat_frac < 1.0:
            raise ScenarioError(f"expert_repeat: got {self.repeat_frac:g}; write 0, up to below 1.")


def room_of(rule: HostExperts, num_experts: int) -> int:
    """Experts of a layer that the device keeps."""
    return round(rule.cached_frac * num_experts)


def kept_frac(rule: HostExperts, num_experts: int, num_layers: float) -> float:
    """Share of all experts that the device keeps: whole ones of each layer, or whole layers."""
    if rule.cache == "layers":
        return round(rule.cached_frac * num_layers) / num_layers
    return room_of(rule, num_experts) / num_experts
