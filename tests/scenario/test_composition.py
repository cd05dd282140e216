"""Many expert models behind a router: by hand, in the limits where nothing is switched, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import OutOfRange, ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.composition import Node, missed_frac, serve
from orrery.execution.dataflow.decoder import pass_s
from orrery.scenario.composition import CompositionAnswer, Expert, shares_of
from orrery.scenario.simulations import simulate

NODE = {
    "model": "llama-2-7b",
    "device": "h100-sxm",
    "tp": 8,
    "input_tokens": 512,
    "output_tokens": 20,
    "composition": "150",
    "switch_bytes_per_s": 64e9,
}


def test_requests_in_turn_by_hand():
    """Two places: 0 and 1 are brought, 0 is there, 2 drives out 1, and 1 must come again. A switch is 3 s, a run 2."""
    found = serve([0, 1, 0, 2, 1], 2, run_s=2.0, switch_s=3.0)
    assert found.is_missed.tolist() == [True, True, False, True, True]
    assert found.finish_s.tolist() == [5.0, 10.0, 12.0, 17.0, 22.0]
    assert found.start_s.tolist() == found.arrival_s.tolist() == [0.0, 5.0, 10.0, 12.0, 17.0]


def test_arrivals_and_clients_wait_by_hand():
    late = serve([0, 0, 0], 1, run_s=2.0, switch_s=1.0, arrival_s=np.array([0.0, 1.0, 9.0]))
    assert late.finish_s.tolist() == [3.0, 5.0, 11.0]
    two = serve([0, 0, 0], 1, run_s=2.0, switch_s=0.0, clients=2)
    assert (two.finish_s - two.arrival_s).tolist() == [2.0, 4.0, 4.0]


@given(
    experts=st.lists(st.integers(0, 5), min_size=1, max_size=40),
    held=st.integers(1, 6),
    run_s=st.floats(0.1, 5),
    switch_s=st.floats(0, 5),
)
@settings(max_examples=50, deadline=None)
def test_time_is_runs_and_switches_and_more_room_never_misses_more(experts, held, run_s, switch_s):
    found = serve(experts, held, run_s=run_s, switch_s=switch_s)
    assert found.finish_s[-1] == pytest.approx(len(experts) * run_s + found.is_missed.sum() * switch_s)
    more = serve(experts, held + 1, run_s=run_s, switch_s=switch_s)
    assert more.is_missed.sum() <= found.is_missed.sum()
    assert found.is_missed.sum() >= len(set(experts))


def answer_of(held, num_experts=4):
    """One second to route, two to a first token, half for each later one; an expert of 40 bytes comes up in 1 + 4 s."""
    expert = Expert(
        router_s=1.0,
        first_token_s=2.0,
        per_token_s=0.5,
        node=Node(fast_bytes=1000.0, switch_bytes_per_s=10.0, switch_latency_s=1.0),
        expert_bytes=40.0,
        held=held,
    )
    served = serve([0, 1, 0, 2, 1], 2, run_s=2.0, switch_s=3.0)
    return CompositionAnswer(
        deployment=None,
        expert=expert,
        shares=(1.0 / num_experts,) * num_experts,
        output_tokens=9,
        served=served,
        seed=0,
        tariff=None,
        notes=(),
    )


def test_a_lone_request_by_its_parts():
    """A quarter of four experts is held: three of four requests wait for 5 s. Nine tokens run for 1 + 2 + 4 s."""
    found = answer_of(held=1)
    missed = found.settled_missed_frac
    assert missed == pytest.approx(0.75, abs=0.02)
    assert [point.output_tokens for point in found.curve] == [1, 9, 20, 100, 500, 2000]
    point = found.curve[1]
    assert point.request_s == pytest.approx(7.0 + missed * 5.0)
    assert point.switch_frac == pytest.approx(missed * 5.0 / (7.0 + missed * 5.0))
    assert found.curve[0].request_s == pytest.approx(3.0 + missed * 5.0)
    assert [rate for rate, _ in found.links] == [1.25, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0]
    assert found.links[3][1] == pytest.approx(point.request_s)
    assert found.links[0][1] == pytest.approx(7.0 + missed * (1.0 + 40 / 1.25))
    assert found.output_tokens_per_s == pytest.approx(9 * 5 / 22)
    assert found.duration_s == 22.0
    assert found.latency_s.tolist() == [5.0, 5.0, 2.0, 5.0, 5.0]


def test_replicas_that_hold_every_expert_hold_a_router_each():
    """25 places are 24 experts and the router: 48 take two replicas, and 49 three."""
    assert [answer_of(24, n).replicas_to_hold_all for n in (1, 24, 25, 48, 49)] == [1, 1, 2, 2, 3]


def test_a_share_of_experts_held_is_the_share_of_hits_where_all_are_alike():
    assert missed_frac(100, 25) == pytest.approx(0.75, abs=0.02)
    assert missed_frac(100, 25, shares=[0.01] * 100) == missed_frac(100, 25)
    assert missed_frac(4, 4) == 0.0


def test_the_parts_of_a_run_add_up():
    answer = simulate(**NODE, num_requests=300)
    found = json.loads(json.dumps(answer.to_json()))
    run_s = found["router_s"] + found["first_token_s"] + 19 * found["per_token_s"]
    expected = 300 * run_s + round(found["missed_frac"] * 300) * found["switch_s"]
    assert found["duration_s"] == pytest.approx(expected)
    alone = orrery.estimate(model="llama-2-7b", device="h100-sxm", tp=8, input_tokens=512, output_tokens=20, batch=1)
    assert (found["first_token_s"], found["per_token_s"]) == (alone.estimate.ttft_s, alone.estimate.tpot_s)
    weights = 8 * alone.estimate.memory.weights_bytes
    assert found["switch_s"] == pytest.approx(weights / 64e9, rel=1e-3)
    assert found["replicas_to_hold_all"] == 4  # 150 experts, 43 places beside each other
    assert {point["output_tokens"] for point in found["curve"]} >= {1, 20, 100}


def test_nothing_is_switched_where_all_fit_or_links_are_endless():
    few = simulate(**NODE | {"composition": "20"}, num_requests=300)
    assert few.settled_missed_frac == 0.0
    assert few.served.is_missed.sum() == 20  # each once, at first
    fast, slow = (simulate(**NODE | {"switch_bytes_per_s": rate}, num_requests=200) for rate in (1e15, 1e10))
    assert fast.duration_s < slow.duration_s / 5
    assert fast.duration_s == pytest.approx(200 * fast.expert.run_s(20), rel=0.01)


def test_a_faster_tier_behind_the_devices_gains_more_with_short_answers():
    gains = []
    for tokens in (20, 500):
        times = []
        for device, rate in (("h100-sxm", 64e9), ("sn40l", 1e12)):
            answer = simulate(**NODE | {"device": device, "switch_bytes_per_s": rate, "output_tokens": tokens})
            times.append(answer.duration_s)
        gains.append(times[0] / times[1])
    assert gains[0] > gains[1] > 1.0


def test_layers_stream_faster_than_kernels_in_turn():
    model, device = get_model("llama-2-7b"), get_device("sn40l")
    fused, apart = (pass_s(model, device, 1, 1024, ranks=8, is_fused=x) for x in (True, False))
    assert fused < apart
    assert pass_s(model, device, 1, 1024, ranks=8, reached_frac=1.0) < fused
    weights_s = 2 * model.num_parameters / 8 / device.memory_bandwidth_bytes_per_s
    assert fused > 0.9 * weights_s
    with pytest.raises(OutOfRange, match="dataflow"):
        pass_s(model, get_device("h100-sxm"), 1, 1024)


def test_laws_and_files_of_shares(tmp_path):
    assert shares_of("2") == (0.5, 0.5)
    first, second = shares_of("2:zipf:1")
    assert first == pytest.approx(2 * second)
    (tmp_path / "shares.txt").write_text("3\n1\n")
    assert shares_of(str(tmp_path / "shares.txt")) == (0.75, 0.25)
    (tmp_path / "bad.txt").write_text("3\nmany\n")
    with pytest.raises(ScenarioError, match=r"composition: .*bad.txt"):
        shares_of(str(tmp_path / "bad.txt"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"composition": "0"}, "1 to 100,000"),
        ({"composition": "5:zip:2"}, "composition: got '5:zip:2'; write 150"),
        ({"composition": "balanced"}, "composition: got 'balanced'; write 150"),
        ({"composition": "nothing.txt"}, "150:zipf:0.8"),
        ({"composition": None}, "nothing is switched"),
        ({"policy": "layered-prefill"}, "one after the other"),
        ({"rate": 1.0, "concurrency": 2}, "keep one"),
    ],
)
def test_mistakes_are_said(settings, words):
    with pytest.raises(ScenarioError, match=words):
        simulate(**{k: v for k, v in (NODE | settings).items() if v is not None})


def test_searches_and_sweeps_refuse_it():
    with pytest.raises(ScenarioError, match="take turns"):
        orrery.find_capacity(**NODE, slo="ttft:200")


def test_a_router_and_an_expert_must_fit_together():
    answer = simulate(**NODE | {"model": "llama-2-70b", "tp": 2})
    assert answer.infeasible.need > answer.infeasible.have
