"""Chunks of prompts and decodes in turn: the steps of a small run, and what taking turns costs."""

import pytest

from orrery.scenario.simulate import simulate
from orrery.serving.simulation.result import STEP

BASE = {"model": "llama-3.1-8b", "device": "h100-sxm", "engine": "vllm", "max_num_batched_tokens": 256}


def steps(policy, **more):
    """(prompt tokens, decodes) of each step of a run."""
    found = simulate(**BASE, policy=policy, window=(0.0, 1e9), **more).simulated
    new, decodes = (found.step_log[:, STEP.index(name)] for name in ("prompt_tokens", "decodes"))
    return list(zip(new.astype(int).tolist(), decodes.astype(int).tolist(), strict=True))


def test_steps_of_two_requests_by_hand():
    """Both prompts of 600 tokens fill chunks of 256, one answers while the other is read: P P P D P D P D D ..."""
    found = steps("alternating", input_tokens=600, output_tokens=4, concurrency=2, num_requests=2, lengths="constant")
    assert all(new == 0 or decodes == 0 for new, decodes in found)
    assert [new for new, _ in found if new] == [256, 256, 256, 256, 176]
    after_first = [bool(new) for new, _ in found][3:]
    assert after_first[:4] == [False, True, False, True]


def test_a_lone_request_is_served_as_with_chunks():
    one = {"input_tokens": 600, "output_tokens": 8, "batch": None, "rate": 0.01, "num_requests": 3}
    one = {k: v for k, v in one.items() if v is not None}
    a, b = (simulate(**BASE, policy=policy, **one).to_json() for policy in ("alternating", "chunked-prefill"))
    for name in ("mean_ttft_ms", "mean_tpot_ms"):
        assert a[name] == pytest.approx(b[name], rel=1e-9)


def test_turns_are_slower_than_sharing_and_smoother_than_prompts_first():
    busy = {"input_tokens": 3000, "output_tokens": 100, "rate": 5, "num_requests": 200}
    found = {
        p: simulate(**BASE, policy=p, **busy).to_json() for p in ("alternating", "chunked-prefill", "prefill-first")
    }
    assert found["alternating"]["mean_ttft_ms"] > found["chunked-prefill"]["mean_ttft_ms"]
    assert found["alternating"]["p99_itl_ms"] < 0.5 * found["prefill-first"]["p99_itl_ms"]
