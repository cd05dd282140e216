"""What policies grant to a prompt and how they form batches; room for a cache that is cut."""

from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace

import pytest

from orrery.execution.kept_cache import NOTHING
from orrery.serving.batching import Batching, StaticBatching
from orrery.serving.drafted import room_for_kept
from orrery.serving.simulation.rules import POLICIES, batching_of, knobs_of, policy_of, values_of
from orrery.serving.techniques import (
    alternating,
    chunked_prefill,
    iteration_level,
    layered_prefill,
    packed_batch,
    prefill_first,
    request_level,
)


@pytest.mark.parametrize(
    ("policy", "left", "budget", "taken", "chunk", "granted"),
    [
        (chunked_prefill, 50, 80, 0, 0, 50),
        (chunked_prefill, 90, 80, 0, 0, 80),
        (chunked_prefill, 90, 80, 20, 30, 10),  # of a chunk of 30 tokens 20 are taken
        (chunked_prefill, 90, 5, 20, 30, 5),
        (alternating, 90, 80, 20, 30, 10),
        (alternating, 50, 80, 0, 0, 50),
        (prefill_first, 90, 10, 0, 0, 90),  # whole, whatever is left of the budget
        (prefill_first, 120, 10, 0, 0, 100),  # in pieces of a step where it never fits
        (prefill_first, 60, 60, 40, 0, 60),
        (prefill_first, 61, 60, 40, 0, 0),
        (layered_prefill, 400, 10, 0, 0, 400),
        (layered_prefill, 60, 10, 40, 0, 60),
        (layered_prefill, 61, 10, 40, 0, 0),
        (iteration_level, 400, 10, 40, 0, 400),
        (request_level, 400, 10, 40, 0, 400),
        (packed_batch, 400, 10, 40, 0, 400),
    ],
)
def test_tokens_that_a_prompt_is_granted(policy, left, budget, taken, chunk, granted):
    """In steps of 100 tokens."""
    assert policy.TECHNIQUE.rule(left, budget, taken, 100, [float(chunk)]) == granted


def test_switches_of_policies():
    off = asdict(Batching())
    assert off == {
        "chunk_tokens": 0,
        "mixes": True,
        "alternates": False,
        "waits_for_empty": False,
        "holds_batch": False,
        "returns_together": False,
        "pads_prompts": False,
        "reserves_output": False,
        "layer_group_tokens": 0,
    }

    def changed(name):
        found = asdict(POLICIES.get(name).knobs())
        return {key: value for key, value in found.items() if value != off[key]}

    static = {"mixes": False} | dict.fromkeys(
        ("waits_for_empty", "holds_batch", "returns_together", "reserves_output"), True
    )
    assert changed("chunked-prefill") == {}
    assert changed("prefill-first") == {"mixes": False}
    assert changed("alternating") == {"mixes": False, "alternates": True}
    assert changed("iteration-level") == {"reserves_output": True}
    assert changed("layered-prefill") == {"layer_group_tokens": 512}
    assert changed("packed-batch") == static
    assert changed("request-level") == static | {"pads_prompts": True}
    assert {key: v for key, v in asdict(StaticBatching()).items() if v != off[key]} == static


def test_policies_of_engines():
    mixed, apart = SimpleNamespace(has_mixed_steps=True), SimpleNamespace(has_mixed_steps=False)
    assert (policy_of(mixed), policy_of(apart)) == ("chunked-prefill", "prefill-first")
    keeps, reserves = SimpleNamespace(reserves_output=False), SimpleNamespace(reserves_output=True)
    chunked = POLICIES.get("chunked-prefill")
    assert not batching_of(chunked, {}, keeps).reserves_output
    assert batching_of(chunked, {}, reserves).reserves_output
    assert batching_of(chunked, {"chunk_tokens": 7.0}, reserves).chunk_tokens == 7
    assert values_of(knobs_of(chunked, {}))[:3] == [0.0, 1.0, 0.0]


def test_room_for_compressed_prompts():
    """A prompt of 100 tokens of which half stay, and half of an answer of 20: 60 instead of 110 tokens."""

    @dataclass(frozen=True)
    class Cache:
        bytes_per_token: float = 2.0
        windows: tuple = ()
        bytes_per_sequence: float = 0.0

        def sequence_bytes(self, tokens):
            return 2.0 * tokens

    @dataclass(frozen=True)
    class Memory:
        cache: object = Cache()
        kv_capacity_bytes: float = 600.0

    @dataclass(frozen=True)
    class Deployment:
        compression: object = NOTHING

    half = replace(NOTHING, kept_tokens_frac=0.5)
    deployment, memory = room_for_kept(Deployment(compression=half), Memory(), 100.0, 20.0)
    assert memory.kv_capacity_bytes == pytest.approx(600 * 110 / 60)
    assert deployment.compression.prompt_tokens == 100.0
    same = Deployment()
    assert room_for_kept(same, Memory(), 100.0, 20.0)[0] is same
