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


def test_a_short_prompt_waits_behind_a_long_one_at_the_front_end():
    """One thread reads prompts in: 1,000 tokens that come 10 ms before ten of them hold it for 100 ms, the ten too."""
    plain = deployment()
    engine = replace(plain.engine, per_prompt_token_s=1e-4)
    service = Service(pools=(Pool(deployment=replace(plain, engine=engine)),))
    requests = Requests(
        arrive_s=np.array([0.0, 0.01]), input_tokens=np.array([1000, 10]), output_tokens=np.array([1, 1])
    )
    run = simulate(service, requests)
    assert run.arrive_s == pytest.approx([0.0, 0.01])
    assert run.admitted_s[0] == pytest.approx(engine.entry_s(1000))
    assert run.admitted_s[1] >= run.admitted_s[0] > 0.01 + engine.entry_s(10)


def test_requests_of_one_moment_are_served_in_their_order():
    """Four at once, the longest first, and a step that holds one of them: each is answered before the next."""
    service = Service(pools=(Pool(deployment=replace(deployment(), max_num_batched_tokens=400)),))
    requests = Requests(arrive_s=np.zeros(4), input_tokens=np.array([400, 300, 350, 310]), output_tokens=np.full(4, 1))
    run = simulate(service, requests)
    assert (np.diff(run.first_token_s) > 0.0).all()


def test_a_first_token_waits_for_a_place_where_answers_are_made():
    """One place there: the second of two requests hears nothing until the first one has ended, and then decodes as
    fast as alone. Its cache goes over in no time that counts beside a hundred steps."""
    plain = deployment()
    narrow = replace(plain, max_num_seqs=1)
    service = Service(pools=(Pool(deployment=plain, role="prompts"), Pool(deployment=narrow, role="answers")))
    requests = Requests(
        arrive_s=np.array([0.0, 0.001]), input_tokens=np.array([128, 128]), output_tokens=np.array([101, 101])
    )
    run = simulate(service, requests)
    lone = simulate(
        service, Requests(arrive_s=np.zeros(1), input_tokens=np.array([128]), output_tokens=np.array([101]))
    )
    assert run.first_token_s[1] == pytest.approx(run.finish_s[0], rel=0.03)
    decode_s = lone.finish_s[0] - lone.first_token_s[0]
    assert run.finish_s[1] - run.first_token_s[1] == pytest.approx(decode_s, rel=0.03)


def test_machines_of_prompts_may_send_first_tokens_themselves():
    """As DistServe and Splitwise do: then a first token is out when one pool's is, but for the second front end."""
    plain = deployment()
    pools = (Pool(deployment=plain, role="prompts"), Pool(deployment=plain, role="answers"))
    one = Requests(arrive_s=np.zeros(1), input_tokens=np.array([4096]), output_tokens=np.array([8]))
    together = simulate(Service(pools=(Pool(deployment=plain),)), one)
    early, late = (simulate(Service(pools=pools, prompts_stream_first=x), one) for x in (True, False))
    assert early.first_token_s[0] == pytest.approx(together.first_token_s[0] + plain.engine.handover_s, rel=1e-9)
    assert early.finish_s[0] == late.finish_s[0]


def test_a_first_token_comes_with_the_cache():
    """A lone request: the prompt is computed as by one pool, and the first token comes later by the transfer alone."""
    plain = deployment()
    one = Requests(arrive_s=np.zeros(1), input_tokens=np.array([4096]), output_tokens=np.array([8]))
    together = simulate(Service(pools=(Pool(deployment=plain),)), one)
    apart = simulate(
        Service(pools=(Pool(deployment=plain, role="prompts"), Pool(deployment=plain, role="answers"))), one
    )
    handover_s = plain.engine.handover_s
    moved_s = apart.counters["moved_s"]
    assert moved_s > 0
    assert apart.first_token_s[0] - together.first_token_s[0] == pytest.approx(moved_s + handover_s, rel=1e-6)


def pooled(**given):
    """Two replicas for prompts and one for answers."""
    plain = deployment()
    pools = (Pool(deployment=plain, replicas=2, role="prompts"), Pool(deployment=plain, role="answers"))
    return Service(pools=pools, prefix_caching=False, **given)


def test_of_a_cache_that_goes_over_by_layers_the_last_one_is_left():
    """A lone prompt computes for longer than its cache takes, so the time left is that of one layer in 32."""
    one = Requests(arrive_s=np.zeros(1), input_tokens=np.array([4096]), output_tokens=np.array([8]))
    whole, layered = (simulate(pooled(is_layerwise=x), one) for x in (False, True))
    saved_s = whole.counters["moved_s"] - layered.counters["moved_s"]
    assert 0.02 * whole.counters["moved_s"] < layered.counters["moved_s"] < 0.2 * whole.counters["moved_s"]
    assert whole.first_token_s[0] - layered.first_token_s[0] == pytest.approx(saved_s)
    assert whole.counters["moved_bytes"] == layered.counters["moved_bytes"]


@pytest.mark.parametrize(("limit", "moved"), [(0, 12), (1, 8), (100, 12)])
def test_prompts_that_find_a_queue_are_computed_where_answers_are(limit, moved):
    """Twelve prompts at once: where one may wait, each third one finds a queue at both machines for prompts and none as
    long at the one for answers, which keeps it: eight caches move."""
    burst = Requests(arrive_s=np.full(12, 0.0), input_tokens=np.full(12, 4096), output_tokens=np.full(12, 4))
    run = simulate(pooled(max_prefill_queue=limit), burst)
    each = simulate(
        pooled(), Requests(arrive_s=np.zeros(1), input_tokens=np.array([4096]), output_tokens=np.array([4]))
    )
    assert run.counters["moved_bytes"] / each.counters["moved_bytes"] == pytest.approx(moved)
    assert not np.isnan(run.finish_s).any()


def test_a_full_machine_for_answers_leaves_them_where_their_prompts_were():
    """It has one seat: of three prompts that end one after the other the second and third stay where they are, and all
    answers are made at the same time instead of in turn."""
    plain = deployment()
    pools = (
        Pool(deployment=plain, replicas=3, role="prompts"),
        Pool(deployment=replace(plain, max_num_seqs=1), role="answers"),
    )
    three = Requests(arrive_s=np.array([0.0, 0.1, 0.2]), input_tokens=np.full(3, 512), output_tokens=np.full(3, 400))
    apart, helped = (simulate(Service(pools=pools, max_prefill_queue=x), three) for x in (0, 9))
    assert helped.counters["moved_bytes"] == pytest.approx(apart.counters["moved_bytes"] / 3)
    assert helped.finish_s.max() < 0.5 * apart.finish_s.max()
