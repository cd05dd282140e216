"""Servers of their own for prompts and outputs: the second front end stands before the first token, once."""

from dataclasses import replace

import numpy as np
import pytest
from small_runs import deployment

from orrery.catalog.engines import get_engine
from orrery.execution.layout import Deployment
from orrery.serving.metrics.latencies import latencies
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate


def _service(handover_s: float) -> Service:
    plain = deployment()
    engine = replace(plain.engine, handover_s=handover_s)
    both: Deployment = replace(plain, engine=engine)
    return Service(pools=(Pool(deployment=both, role="prompts"), Pool(deployment=both, role="answers")))


def _times(service: Service):
    requests = Requests(
        arrive_s=np.array([0.0, 100.0]), input_tokens=np.array([128, 256]), output_tokens=np.array([4, 8])
    )
    return latencies(simulate(service, requests, seed=0))


def test_the_second_front_end_delays_the_first_token_and_nothing_else():
    without, late = _times(_service(0.0)), _times(_service(0.125))
    assert late.ttft_s - without.ttft_s == pytest.approx([0.125, 0.125])  # apart by 100 s: no queue hides it
    assert late.long_tpot_s == pytest.approx(without.long_tpot_s)
    assert late.e2el_s - without.e2el_s == pytest.approx([0.125, 0.125])


def test_one_pool_has_one_front_end():
    plain = deployment()
    engine = replace(plain.engine, handover_s=0.125)
    service = Service(pools=(Pool(deployment=replace(plain, engine=engine)),))
    entry_s = engine.request_s + 100 * engine.per_prompt_token_s
    assert service.entry_s(100) == entry_s == engine.entry_s(100)
    assert _service(0.125).entry_s(100) == entry_s + 0.125


def test_engines_without_measured_pools_state_no_handover():
    assert get_engine("deepspeed").handover_s == 0.0


def test_a_short_prompt_passes_a_long_one_at_the_front_end():
    """A prompt of 1,000 tokens comes 10 ms before one of 10, and 1e-4 s a token hold it up for 99 ms longer."""
    plain = deployment()
    engine = replace(plain.engine, per_prompt_token_s=1e-4)
    service = Service(pools=(Pool(deployment=replace(plain, engine=engine)),))
    requests = Requests(
        arrive_s=np.array([0.0, 0.01]), input_tokens=np.array([1000, 10]), output_tokens=np.array([1, 1])
    )  # fmt: skip
    run = simulate(service, requests)
    assert run.admitted_s - run.arrive_s == pytest.approx([engine.entry_s(1000), engine.entry_s(10)])
    assert run.first_token_s[1] < run.first_token_s[0]
