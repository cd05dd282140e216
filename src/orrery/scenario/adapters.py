"""LoRA adapters as a scenario states them: which each request chooses, and what a replica holds of them."""

from dataclasses import replace

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.units import text
from orrery.engine.streams import stream
from orrery.execution.adapters import adapter_bytes
from orrery.execution.layout import Adapters, Deployment
from orrery.scenario.schema import Scenario
from orrery.serving.batching import READS_ADAPTERS
from orrery.serving.requests import Requests
from orrery.serving.simulation.rules import ROUTERS

SETTINGS = ("lora_rank", "lora_popularity", "max_loras")
RANK, PLACES = 16, 1
"""Defaults of vLLM: max_lora_rank and max_loras."""


def adapters_of(scenario: Scenario) -> Adapters | None:
    """Memory of adapters on a replica; None where requests choose none."""
    count = scenario.lora_adapters or 0
    if not count:
        if given := [name for name in SETTINGS if getattr(scenario, name) is not None]:
            raise ScenarioError(f"{given[0]}: there are no adapters; write lora_adapters = 10 beside it.")
        if scenario.router is not None and READS_ADAPTERS in ROUTERS.get(scenario.router).traits:
            raise ScenarioError(f"router: {scenario.router} needs adapters; write lora_adapters = 10 beside it.")
        return None
    _exponent(scenario)
    return Adapters(rank=scenario.lora_rank or RANK, slots=min(count, scenario.max_loras or PLACES))


def _exponent(scenario: Scenario) -> float:
    """The S of 1/k^S; 0 where all adapters are chosen alike."""
    text_of = (scenario.lora_popularity or "uniform").strip()
    name, _, value = text_of.partition(":")
    try:
        found = 0.0 if text_of == "uniform" else float(value) if name == "zipf" else -1.0
    except ValueError:
        found = -1.0
    if not 0.0 <= found <= 10.0:
        raise ScenarioError(f"lora_popularity: got {text_of!r}; write uniform, or zipf:1.1 (a number from 0 to 10).")
    return found


def with_adapters(scenario: Scenario, requests: Requests) -> Requests:
    """The same requests, each with the adapter that it chooses; 0 is the most popular."""
    count = scenario.lora_adapters or 0
    if not count:
        return requests
    weights = np.arange(1, count + 1, dtype=np.float64) ** -_exponent(scenario)
    edges = np.cumsum(weights / weights.sum())
    drawn = stream(scenario.seed or 0, "adapters").random(requests.count)
    chosen = np.minimum(np.searchsorted(edges, drawn, side="right"), count - 1).astype(np.int64)
    return replace(requests, adapter=chosen)


def adapter_notes(scenario: Scenario, deployment: Deployment) -> tuple[str, ...]:
    """Assumptions about adapters, and omissions."""
    if (held := deployment.adapters) is None:
        return ()
    size = text(adapter_bytes(deployment), "bytes")
    found = [f"lora: {held.slots} of {scenario.lora_adapters} adapters of rank {held.rank} ({size} each on a device)"]
    if scenario.lora_rank is None:
        found.append(f"lora_rank: {RANK} (nothing said)")
    if scenario.max_loras is None and (scenario.lora_adapters or 0) > PLACES:
        found.append(f"max_loras: {PLACES} (vLLM's default; batches have one adapter at a time)")
    if any(block.experts for block in deployment.model.blocks):
        found.append("lora: routed experts carry no adapters")
    return tuple(found)
