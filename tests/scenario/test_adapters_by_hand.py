"""LoRA adapters: places, popularity and what is assumed, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.models import get_model
from orrery.execution.layout import Adapters
from orrery.scenario import adapters

LLAMA = get_model("llama-3.1-8b")


def asked(**settings):
    usual = dict.fromkeys(("lora_adapters", "lora_rank", "max_loras", "lora_popularity", "router", "seed"))
    return SimpleNamespace(**usual | settings)


def test_places_and_ranks_of_adapters():
    assert adapters.adapters_of(asked()) is None
    assert adapters.adapters_of(asked(lora_adapters=5)) == Adapters(rank=16, slots=1)
    assert adapters.adapters_of(asked(lora_adapters=5, max_loras=4, lora_rank=8)) == Adapters(rank=8, slots=4)
    assert adapters.adapters_of(asked(lora_adapters=3, max_loras=4)).slots == 3
    with pytest.raises(ScenarioError, match="max_loras: there are no adapters"):
        adapters.adapters_of(asked(max_loras=2))


@pytest.mark.parametrize(("law", "s"), [(None, 0.0), ("uniform", 0.0), ("zipf:0", 0.0), ("zipf:10", 10.0)])
def test_laws_of_adapters(law, s):
    assert adapters._exponent(asked(lora_popularity=law)) == s


@pytest.mark.parametrize("law", ["zipf:-0.1", "zipf:10.1", "zipf", "zipf:x", "power:1"])
def test_laws_of_adapters_that_are_none(law):
    with pytest.raises(ScenarioError, match="write uniform, or zipf"):
        adapters._exponent(asked(lora_popularity=law))


def test_popular_adapters_are_chosen_as_their_law_says(monkeypatch):
    """Shares of 1, 1/2 and 1/3 over 11/6: edges at 6/11 and 9/11; alike ones have theirs at 1/3 and 2/3."""
    draws = np.array([0.0, 0.5, 0.55, 0.8, 0.82, 0.99])
    monkeypatch.setattr(adapters, "stream", lambda seed, name: SimpleNamespace(random=lambda count: draws))
    monkeypatch.setattr(adapters, "replace", lambda requests, adapter: adapter)
    requests = SimpleNamespace(count=6)
    zipf = adapters.with_adapters(asked(lora_adapters=3, lora_popularity="zipf:1"), requests)
    assert zipf.tolist() == [0, 0, 1, 1, 2, 2]
    assert adapters.with_adapters(asked(lora_adapters=3), requests).tolist() == [0, 1, 1, 2, 2, 2]
    assert adapters.with_adapters(asked(), requests) is requests


@pytest.mark.parametrize(
    ("settings", "starts"),
    [
        ({"lora_adapters": 2}, ["lora: 1 of 2", "lora_rank: 16", "max_loras: 1"]),
        ({"lora_adapters": 1}, ["lora: 1 of 1", "lora_rank: 16"]),
        ({"lora_adapters": 2, "max_loras": 1, "lora_rank": 16}, ["lora: 1 of 2"]),
    ],
)
def test_assumptions_about_adapters(monkeypatch, settings, starts):
    monkeypatch.setattr(adapters, "adapter_bytes", lambda deployment: 1e6)
    deployment = SimpleNamespace(adapters=Adapters(rank=16, slots=1), model=LLAMA)
    notes = adapters.adapter_notes(asked(**settings), deployment)
    assert [note[: len(start)] for note, start in zip(notes, starts, strict=True)] == starts
    deployment.model = get_model("qwen3-30b-a3b")
    assert adapters.adapter_notes(asked(**settings), deployment)[-1] == "lora: routed experts carry no adapters"
