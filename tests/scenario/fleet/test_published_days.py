"""Published traces as days (needs ORRERY_DATA): repeated along a curve, conserved, and dearer with more replicas."""

import os
from pathlib import Path

import pytest

from orrery.scenario.fleet.ask import simulate_fleet

FOLDER = Path(os.environ.get("ORRERY_DATA", "/nowhere")) / "traces"
TRACES = ("azure_llm_2023_code.csv", "mooncake_conversation.jsonl.gz")


@pytest.mark.parametrize("name", TRACES)
def test_a_published_trace_is_a_day(name):
    path = FOLDER / name
    if not path.exists():
        pytest.skip("ORRERY_DATA has no such trace")
    load = {"model": "llama-3.1-8b", "device": "h100-sxm", "trace": str(path), "cold_start_s": 60, "days": 0.04}
    scaled = simulate_fleet(**load, replicas_min=1, replicas_max=12, autoscaler="hpa", autoscaler_knob="target=8")
    assert sum(scaled.run.fates.values()) == scaled.num_sent
    assert scaled.run.fates["served"] + scaled.run.fates["refused"] == scaled.num_sent
    fixed = simulate_fleet(**load, replicas=12)
    assert fixed.cost_usd > scaled.cost_usd
    assert fixed.num_sent == scaled.num_sent
