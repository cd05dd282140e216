"""Closed loops and kernels of a measured engine: counted on an engine of known pace."""

import asyncio
from random import Random

import pytest

from vllm_loops import Loop, arrivals, kernels_of, prompts_of, run_loop, summary


def test_means_over_requests_by_hand():
    """First tokens after 1 and 3 s; two tokens in 4 s after the first, and one in 6 s: 2 and 6 s a token. Five tokens
    in all over 10 s. A request of one token has no time between tokens."""
    found = summary([[0.0, 1.0, 2.0, 5.0], [1.0, 4.0, 10.0]], 10.0)
    assert found == {"ttft_s": 2.0, "tpot_s": 4.0, "output_tokens_per_s": 0.5}
    assert summary([[0.0, 1.0]], 2.0) == {"ttft_s": 1.0, "output_tokens_per_s": 0.5}


def test_tokens_that_come_together_share_a_time():
    async def two_then_one(prompt, output_tokens):
        yield 2
        yield 1

    stamps = asyncio.run(arrivals(two_then_one, [1, 2], 3))
    assert len(stamps) == 4
    assert stamps[1] == stamps[2] <= stamps[3]


def test_no_more_requests_run_than_the_loop_allows():
    running, most, seen = 0, 0, []

    async def generate(prompt, output_tokens):
        nonlocal running, most
        running += 1
        most = max(most, running)
        seen.append(tuple(prompt))
        for _ in range(output_tokens):
            await asyncio.sleep(0)
            yield 1
        running -= 1

    prompts = prompts_of(Random(1), 1000, 5, 7)
    found = asyncio.run(run_loop(generate, Loop(3, 5, 4, 7), prompts))
    assert (most, sorted(seen)) == (3, sorted(map(tuple, prompts)))
    assert found["output_tokens_per_s"] > 0.0


def test_prompts_keep_off_the_ends_of_the_vocabulary():
    prompts = prompts_of(Random(3), 1000, 200, 20)
    tokens = [token for prompt in prompts for token in prompt]
    assert len(tokens) == 4000
    assert 10 <= min(tokens) < max(tokens) < 990


def test_kernels_are_summed_by_name_and_the_host_is_left_out():
    events = [
        {"cat": "kernel", "name": "gemm", "dur": 10.0},
        {"cat": "kernel", "name": "norm", "dur": 30.0},
        {"cat": "gpu_memcpy", "name": "copy", "dur": 5.0},
        {"cat": "cpu_op", "name": "gemm", "dur": 999.0},
        {"cat": "kernel", "name": "gemm", "dur": 12.0},
        {"name": "no category"},
    ]
    found = kernels_of({"traceEvents": events})
    assert list(found) == ["norm", "gemm", "copy"]
    assert found["gemm"] == (2, pytest.approx(22e-6))
