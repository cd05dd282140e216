"""Room for experts that come to every rank: by hand, and none where none comes."""

import pytest

import orrery
from orrery.scenario.train import TrainAnswer

JOB = {
    "model": "qwen3-30b-a3b",
    "device": "h100-sxm",
    "devices": 64,
    "ep": 16,
    "sharding": "zero1",
    "recompute": "full",
    "global_batch": 512,
    "seq_len": 4096,
}


def peak_bytes(**more) -> float:
    found = orrery.train(**JOB | more)
    assert isinstance(found, TrainAnswer)
    return found.to_json()["peak_memory_bytes"]


@pytest.mark.parametrize("overlap", ["sparse-materialisation", "shadowing"])
def test_experts_that_come_take_room_by_hand(overlap):
    """Eight experts of 3 x 2048 x 768 parameters with weights of 2 bytes, and gradients of 4 on the way back."""
    uneven = {"expert_loads": "zipf:1.2"}
    more = peak_bytes(**uneven, expert_overlap=overlap) - peak_bytes(**uneven)
    fragmented = 1.0  # of Megatron-LM
    assert more == pytest.approx(8 * 3 * 2048 * 768 * (2 + 4) * fragmented, rel=0.01)
    knob = {"sparse-materialisation": "most_gathered", "shadowing": "most_shadowed"}[overlap]
    two = {"knob": [f"expert_overlap.{knob}=2"]}
    assert peak_bytes(**uneven, expert_overlap=overlap, **two) - peak_bytes(**uneven) == pytest.approx(more / 4)


@pytest.mark.parametrize("more", [{"expert_loads": "balanced"}, {"expert_overlap": "expert-pipeline"}])
def test_none_comes_where_loads_are_even_or_nothing_gathers(more):
    asked = {"expert_overlap": "sparse-materialisation", "expert_loads": "zipf:1.2", **more}
    plain = {"expert_loads": asked["expert_loads"]}
    assert peak_bytes(**asked) == peak_bytes(**plain)
