"""What clients measure is what ``simulate`` says of the same arrivals: within 3 %, or as late as the server says."""

import asyncio
import sys
from pathlib import Path

import numpy as np
import openai
import pytest

from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.requests import Requests
from orrery.serving.simulation.simulate import simulate

sys.path.insert(0, str(Path(__file__).parent))
from agreement import assert_agrees, closed_loop, lags_of, late_s, like_openai, like_vllm_bench, open_loop, served

SCENARIO = {"model": "llama-3.1-8b", "device": "h100-sxm"}


def sizes(count, seed=1):
    """(prompt, answer) tokens."""
    draws = np.random.default_rng(seed)
    return np.column_stack([draws.integers(200, 3000, count), draws.integers(15, 40, count)])


def arrivals(rate_per_s, count):
    """Moments of a Poisson process, on the wall."""
    return np.cumsum(np.random.default_rng(2).exponential(1 / rate_per_s, count))


def test_moments_are_those_of_the_simulation(start):
    """By the service's clock, which knows nothing of how busy this machine is: the same arrivals, the same moments."""
    more = {"replicas": 2, "max_num_seqs": 4}
    with start(SCENARIO | more, speed_ratio=4.0) as found:
        seen, submit = [], found.pace.submit
        found.pace.submit = lambda *request: seen.append(submit(*request)) or seen[-1]

        async def send(text, num_tokens):
            return await like_vllm_bench(found.url, text, num_tokens)

        timed, _ = asyncio.run(open_loop(send, arrivals(60, 24), sizes(24)))
    choices = [stream.choices[0] for stream in seen]
    arrive_s = np.array([stream.arrived_s for stream in seen])
    requests = Requests(
        arrive_s=arrive_s,
        input_tokens=np.array([c.job.num_prompt_tokens for c in choices]),
        output_tokens=np.array([c.num_tokens for c in choices]),
    )
    message = simulate(service_for(read_scenario(SCENARIO | more))[0], requests)
    np.testing.assert_allclose([c.first_s for c in choices] - arrive_s, message.first_token_s - arrive_s, rtol=1e-3)
    np.testing.assert_allclose([c.last_s for c in choices] - arrive_s, message.finish_s - arrive_s, rtol=1e-3)
    assert sorted(x.answer_tokens for x in timed) == sorted(requests.output_tokens)
    assert (message.first_token_s - arrive_s).max() > 2 * (message.first_token_s - arrive_s).min(), "some waited"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "speed", "rate_per_s", "count"),
    [({}, 0.25, 3.0, 60), ({}, 1.0, 8.0, 200), ({"replicas": 4}, 1.0, 30.0, 400), ({"max_num_seqs": 4}, 0.5, 5.0, 60)],
)
def test_an_open_load_in_a_process_of_its_own(more, speed, rate_per_s, count):
    with served(SCENARIO | more, "--speed", str(speed), "--served-model-name", "llama") as url:

        async def send(text, num_tokens):
            return await like_vllm_bench(url, text, num_tokens)

        asyncio.run(send("the first costs more", 2))
        before = lags_of(url)
        timed, client_s = asyncio.run(open_loop(send, arrivals(rate_per_s, count), sizes(count)))
        assert_agrees(SCENARIO | more, speed, timed, late_s(url, before) + client_s)


@pytest.mark.slow
def test_a_closed_loop_through_the_openai_client():
    async def load(url):
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as client:
            await asyncio.gather(*(like_openai(client, "the first costs more", 2) for _ in range(8)))
            return await closed_loop(lambda text, n: like_openai(client, text, n), 8, sizes(120))

    speed = 0.5
    with served(SCENARIO, "--speed", str(speed), "--served-model-name", "llama") as url:
        before = lags_of(url)
        timed, client_s = asyncio.run(load(url))
        assert_agrees(SCENARIO, speed, timed, late_s(url, before) + client_s)
