"""Where queueing theory or a closed form knows the answer, the simulator finds it."""

from dataclasses import replace
from functools import cache
from math import factorial

import numpy as np
import pytest
from small_runs import play, service_of

from orrery.execution.surface._kernel import TIME
from orrery.serving.clock import steps_of, tick
from orrery.serving.estimate import estimate
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery.serving.simulation.tables import _kernel as k
from orrery.serving.workload import Workload

STEP_S = 0.01


def steps_that_take(seconds):
    """Tables in which a step of T tokens takes ``seconds(T)``, and the host nothing."""

    def change(a):
        empty = [np.zeros_like(x) for x in (a.surfaces.rows, a.surfaces.decode, a.surfaces.prompt)]
        tokens = np.zeros_like(a.surfaces.tokens)
        tokens[..., TIME] = seconds(np.arange(tokens.shape[1]))
        surfaces = a.surfaces._replace(
            tokens=tokens, graph_tokens=tokens, rows=empty[0], decode=empty[1], prompt=empty[2]
        )
        rates = a.rates.copy()
        rates[:, [k.HOST_STEP_S, k.HOST_PER_SEQUENCE_S, k.HOST_LAUNCH_S, k.HOST_PIECES_S, k.SAMPLING_S]] = 0.0
        return replace(a, surfaces=surfaces, rates=rates)

    return change


def poisson(count, rate, answers, seed):
    """Prompts of a token, at random moments."""
    rng = np.random.default_rng(seed)
    return Requests(
        arrive_s=np.cumsum(rng.exponential(1.0 / rate, count)),
        input_tokens=np.ones(count, dtype=np.int64),
        output_tokens=answers(rng, count),
        client=np.zeros(count, dtype=np.int64),
        priority=np.zeros(count),
    )


def agrees(samples, expected, bias_frac):
    """Whether a mean is the expected one, by means of 40 batches (the first tenth is left out as warm-up)."""
    retained = samples[samples.size // 10 :]
    means = np.array([x.mean() for x in np.array_split(retained, 40)])
    error = means.std(ddof=1) / np.sqrt(means.size)
    assert error < 0.05 * expected, "too few samples to say anything"
    assert abs(means.mean() - expected) < 3.5 * error + bias_frac * expected, (means.mean(), expected, error)


def geometric(mean):
    return lambda rng, count: rng.geometric(1.0 / mean, count)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_one_seat_and_equal_answers_wait_as_in_m_d_1(load):
    steps = 4
    requests = poisson(60_000, load / (steps * STEP_S), lambda _, n: np.full(n, steps), 1)
    world, _ = play(service_of(), requests, seats=1, change=steps_that_take(lambda t: np.full(t.size, STEP_S)))
    waited = world.when[:, k.ADMITTED_S] - world.when[:, k.ARRIVED_S]
    agrees(waited, load * steps * STEP_S / (2.0 * (1.0 - load)), 0.002)


def test_one_seat_and_random_answers_wait_as_in_m_m_1():
    mean, load = 30, 0.6
    requests = poisson(60_000, load / (mean * STEP_S), geometric(mean), 2)
    world, _ = play(service_of(), requests, seats=1, change=steps_that_take(lambda t: np.full(t.size, STEP_S)))
    waited = world.when[:, k.ADMITTED_S] - world.when[:, k.ARRIVED_S]
    squares = STEP_S**2 * (2.0 - 1.0 / mean) * mean**2  # of a geometric number of steps
    agrees(waited, load / (mean * STEP_S) * squares / (2.0 * (1.0 - load)), 0.002)
    agrees(waited, load * mean * STEP_S / (1.0 - load), 0.03)


def test_several_seats_wait_as_in_m_m_c():
    seats, mean, load = 4, 40, 0.6
    requests = poisson(150_000, load * seats / (mean * STEP_S), geometric(mean), 3)
    world, _ = play(service_of(), requests, seats=seats, change=steps_that_take(lambda t: np.full(t.size, STEP_S)))
    waited = world.when[:, k.ADMITTED_S] - world.when[:, k.ARRIVED_S]
    busy = seats * load
    tail = busy**seats / factorial(seats) / (1.0 - load)
    all_busy = tail / (sum(busy**n / factorial(n) for n in range(seats)) + tail)
    idle = (1.0 - load) ** seats  # roughly: nobody's step is under way
    wait_s = all_busy * mean * STEP_S / (seats * (1.0 - load)) + (1.0 - idle) * 0.5 * STEP_S
    agrees(waited, wait_s, 0.05)


@pytest.mark.parametrize("answers", ["geometric", "constant"])
def test_many_seats_and_steps_in_proportion_share_the_processor(answers):
    mean, load = 60, 0.7
    draw = geometric(mean) if answers == "geometric" else lambda _, n: np.full(n, mean)
    requests = poisson(40_000, load / (mean * 1e-4), draw, 4)
    world, _ = play(service_of(), requests, change=steps_that_take(lambda t: 1e-4 * t))
    stayed = world.when[:, k.FINISH] - world.when[:, k.ARRIVED_S]
    agrees(stayed, mean * 1e-4 / (1.0 - load), 0.03)  # whatever the lengths


def test_turns_at_equal_answers_are_one_shared_queue():
    steps, load, replicas = 4, 0.7, 3
    requests = poisson(20_000, replicas * load / (steps * STEP_S), lambda _, n: np.full(n, steps), 5)
    change = steps_that_take(lambda t: np.full(t.size, STEP_S))
    world, _ = play(service_of(fleet="three", router="round-robin"), requests, seats=1, change=change)
    ends = [0.0] * replicas  # Lindley's recursion, with the server that is free first
    for arrived_s, finish_s in zip(world.when[:, k.ARRIVED_S], world.when[:, k.FINISH], strict=True):
        ends = [*ends[1:], max(arrived_s, ends[0]) + steps * STEP_S]
        assert abs(ends[-1] - finish_s) < 1e-6


def test_joining_the_shortest_queue_beats_turns_at_random_answers():
    mean, load, replicas = 30, 0.8, 3
    requests = poisson(30_000, replicas * load / (mean * STEP_S), geometric(mean), 6)
    change = steps_that_take(lambda t: np.full(t.size, STEP_S))
    waits_s = []
    for router in ("least-loaded", "round-robin"):
        world, _ = play(service_of(fleet="three", router=router), requests, seats=1, change=change)
        waits_s.append((world.when[:, k.ADMITTED_S] - world.when[:, k.ARRIVED_S]).mean())
    alone_s = load * mean * STEP_S / (1.0 - load)
    assert waits_s[0] < 0.75 * waits_s[1] < 0.75 * alone_s


@cache
def _no_arrivals_between(count, inputs, outputs):
    return Requests(
        arrive_s=np.arange(count) * 1e3, input_tokens=np.full(count, inputs), output_tokens=np.full(count, outputs)
    )


@pytest.mark.parametrize(
    ("model", "degrees"),
    [
        ("meta-llama/Llama-3.1-8B", {}),
        ("meta-llama/Llama-3.1-70B", {"tp": 4}),
        ("mistralai/Mixtral-8x7B-v0.1", {"tp": 2}),
        ("deepseek-ai/DeepSeek-V2-Lite", {}),
        ("meta-llama/Llama-3.1-8B", {"pp": 2}),
    ],
)
@pytest.mark.parametrize(("inputs", "outputs"), [(1000, 200), (300, 50)])
def test_a_lone_request_is_the_closed_form(deploy, model, degrees, inputs, outputs):
    deployment = deploy(model=model, **degrees)
    totals = estimate(deployment, Workload(mode="closed", input_tokens=inputs, output_tokens=outputs, concurrency=1))
    run = simulate(Service(pools=(Pool(deployment=deployment),)), _no_arrivals_between(3, inputs, outputs))
    ttft_s = run.first_token_s - run.arrive_s
    tpot_s = (run.finish_s - run.first_token_s) / (outputs - 1)
    batch = steps_of(*(np.array([x]) for x in (1, inputs, inputs, 0, 0)))
    alone_s = float(tick(deployment, batch).time_s[0])
    np.testing.assert_allclose(ttft_s, deployment.engine.entry_s(inputs) + alone_s, rtol=0.01)
    np.testing.assert_allclose(tpot_s, totals.tpot_s, rtol=0.01)
    np.testing.assert_allclose(ttft_s, totals.ttft_s, rtol=0.04)  # its step of a prompt always carries an answer, too
