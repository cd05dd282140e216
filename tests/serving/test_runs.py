"""Runs with an end: their parts add up, and limits of memory cost time."""

from dataclasses import replace

import pytest

from orrery.base.cost import Cost
from orrery.execution.memory import Infeasible
from orrery.serving.estimate import Estimate, estimate
from orrery.serving.workload import Workload


def static(deployment, batch, inputs=512, outputs=128):
    found = estimate(deployment, Workload(mode="static", input_tokens=inputs, output_tokens=outputs, batch_size=batch))
    assert isinstance(found, Estimate)
    return found


def offline(deployment, num_requests, inputs=512, outputs=128):
    found = estimate(
        deployment, Workload(mode="offline", input_tokens=inputs, output_tokens=outputs, num_requests=num_requests)
    )
    assert isinstance(found, Estimate)
    return found


def test_a_static_batch_is_a_prefill_and_its_decode_steps(deploy):
    found = static(deploy(tp=4), 1)
    assert found.latency_s == pytest.approx(found.ttft_s + 127 * found.tpot_s, rel=1e-9)
    assert found.output_tokens_per_s == pytest.approx(128 / found.latency_s)
    assert found.total_tokens_per_s == pytest.approx(640 / found.latency_s)


@pytest.mark.parametrize(("batch", "inputs", "outputs"), [(1, 512, 128), (64, 4096, 16), (300, 100, 1), (40, 0, 9)])
def test_every_request_of_a_batch_lasts_as_long_as_the_batch(deploy, batch, inputs, outputs):
    """Also where prompts take several steps, or the batch several waves: docs/metrics.md defines the tpot."""
    found = static(replace(deploy(tp=4), max_num_seqs=32), batch, inputs, outputs)
    assert found.ttft_s + (outputs - 1) * found.tpot_s == pytest.approx(found.latency_s, rel=1e-9)


def test_bigger_batches_take_longer_but_not_as_much_longer(deploy):
    times = [static(deploy(tp=4), b).latency_s for b in (1, 8, 64)]
    assert times[0] < times[1] < times[2] < 64 * times[0]


def test_a_batch_that_overflows_the_cache_runs_in_waves(deploy):
    roomy = deploy(tp=4)
    tight = replace(roomy, max_num_seqs=16)
    assert static(tight, 16).latency_s == pytest.approx(static(roomy, 16).latency_s, rel=1e-3)
    assert static(tight, 32).latency_s == pytest.approx(2 * static(tight, 16).latency_s, rel=1e-6)


def test_offline_throughput_approaches_its_steady_state(deploy):
    few, many, more = (offline(deploy(tp=4), n).output_tokens_per_s for n in (500, 50_000, 500_000))
    assert few < many < more < 1.02 * many


def test_nothing_beats_the_datasheet(deploy):
    deployment = deploy(tp=4)
    device = deployment.cluster.device
    found = static(deployment, 1, inputs=1, outputs=64)
    weights = 2 * (deployment.model.num_parameters - deployment.model.embedding_parameters)
    assert found.tpot_s > weights / 4 / device.memory_bandwidth_bytes_per_s


def test_costs_add_up_at_every_node(deploy):
    def check(cost: Cost) -> None:
        if cost.parts:
            assert sum(p.time_s for p in cost.parts) == pytest.approx(cost.time_s)
            assert sum(p.flops for p in cost.parts) == pytest.approx(cost.flops)
        for part in cost.parts:
            check(part)

    found = static(deploy(tp=4), 8)
    check(found.cost)
    check(found.prefill_cost)
    assert {p.name for p in found.cost.parts} >= {"dense", "head", "network"}
    assert any(fact for block in found.cost.parts for leaf in block.parts for fact in leaf.because)


def test_power_stays_between_idle_and_the_limit(deploy):
    deployment = deploy(tp=4)
    device = deployment.cluster.device
    for batch in (1, 256):
        found = static(deployment, batch)
        assert 4 * device.idle_power_w <= found.power_w <= 4 * device.power_limit_w
        assert found.energy_j_per_token == pytest.approx(found.power_w / found.output_tokens_per_s)


def test_intervals_hold_their_value(deploy):
    found = static(deploy(tp=4), 8)
    for metric, interval in found.intervals.items():
        assert interval.low_95 <= interval.low_80 <= interval.high_80 <= interval.high_95, metric
        assert interval.low_95 < getattr(found, metric) < interval.high_95, metric


def test_what_does_not_fit_is_an_answer(deploy):
    found = estimate(deploy(tp=1), Workload(mode="static", input_tokens=8, output_tokens=8, batch_size=1))
    assert isinstance(found, Infeasible)
    assert "needs" in str(found)


def test_what_was_measured_is_said(deploy):
    at_home, abroad = static(deploy(tp=4), 8), static(deploy(device="h20", tp=4), 8)
    assert not any("other devices" in n for n in at_home.notes), "every kernel was measured on an H100"
    assert any("other devices" in n for n in abroad.notes)
    narrow, wide = (e.intervals["tpot_s"] for e in (at_home, abroad))
    assert wide.high_80 / abroad.tpot_s > narrow.high_80 / at_home.tpot_s


def test_outside_the_measured_sizes_the_answer_says_so(deploy):
    inside, outside = static(deploy(tp=4), 8), static(deploy(tp=4), 8, inputs=120_000)
    assert not any("outside the sizes" in n for n in inside.notes)
    assert any("context_tokens" in n for n in outside.notes)
