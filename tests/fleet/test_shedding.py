"""Requests that find a full queue: by hand, and what holds for every length of the queue."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.fleet.service.run import run_fleet
from orrery.fleet.service.setup import FleetService, PoolTerms
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.serving.requests import Requests
from orrery.serving.simulation.tables import _kernel as tables


def run_of(arrive_s, max_queue, max_num_seqs=1):
    """Run of one replica on prompts of 16 and answers of 400 tokens."""
    scenario = read_scenario({"model": "llama-3.1-8b", "device": "h100-sxm", "max_num_seqs": max_num_seqs})
    service, _ = service_for(scenario)
    each = np.ones(len(arrive_s), dtype=np.int64)
    requests = Requests(arrive_s=np.array(arrive_s), input_tokens=16 * each, output_tokens=400 * each)
    terms = PoolTerms(name="p", replicas_min=1, replicas_max=1)
    return run_fleet(
        FleetService(service=replace(service, max_queue=max_queue), terms=(terms,), limits_s={"ttft": 60.0}),
        requests,
    )


def test_one_waits_and_the_next_is_refused():
    run = run_of([0.0, 0.01, 0.02, 100.0], max_queue=1)  # one decodes for seconds, one waits, the third finds it full
    assert run.outcome.status.tolist() == [tables.DONE, tables.DONE, tables.REFUSED, tables.DONE]
    assert run.hurt["shed"].tolist() == [False, False, True, False]


def test_every_request_ends_once_and_a_queue_that_never_fills_changes_nothing():
    arrive_s = np.cumsum(np.random.default_rng(5).exponential(0.25, 300))
    runs = {most: run_of(arrive_s, most, max_num_seqs=4) for most in (0, 1, 4, 300)}
    for most, run in runs.items():
        assert sum(run.fates.values()) == 300
        assert run.fates["unfinished"] == 0
        if most:
            assert run.frames[:, 6].max() <= most
    assert runs[0].outcome.finish_s.tobytes() == runs[300].outcome.finish_s.tobytes()
    assert runs[0].fates["refused"] == 0 < runs[4].fates["refused"] < runs[1].fates["refused"]
    waits_s = [np.nanmax(runs[most].waited_s) for most in (1, 4, 300)]
    assert waits_s == sorted(waits_s)


def test_every_order_of_the_queue_sheds_as_many_of_equal_requests():
    """Who is served first is the order's; how many find the queue full is not, where all requests are alike."""
    found = {}
    for queue in ("fcfs", "priority", "fair", "shortest-first"):
        answer = simulate_fleet(
            model="llama-3.1-8b",
            device="h100-sxm",
            max_num_seqs=1,
            max_queue=2,
            rate=4,
            num_requests=40,
            input_tokens=16,
            output_tokens=400,
            queue=queue,
        )
        found[queue] = int(answer.run.hurt["shed"].sum())
        assert found[queue] + answer.run.fates["served"] == 40
    assert len(set(found.values())) == 1, found


def test_the_command_counts_what_it_sheds():
    answer = simulate_fleet(
        model="llama-3.1-8b",
        device="h100-sxm",
        max_num_seqs=1,
        max_queue=2,
        rate=4,
        num_requests=40,
        input_tokens=16,
        output_tokens=400,
        slo=["ttft:1000"],
    )
    shed = int(answer.run.hurt["shed"].sum())
    assert shed > 0
    assert shed + answer.run.fates["served"] == 40
    with pytest.raises(ValueError, match="max_queue"):
        simulate_fleet(model="llama-3.1-8b", device="h100-sxm", max_queue=0, rate=4, num_requests=4)
