"""LoRA adapters by hand: their bytes and products, what is on the devices, and who waits for whom."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.execution.adapters import adapter_bytes, adapter_parts, reading_s, slots_bytes
from orrery.execution.batch import Batch
from orrery.execution.memory import memory_of
from orrery.execution.step import step
from orrery.execution.transfer import host_link
from orrery.fleet.service.rows import RequestRows
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.requests import requests_for
from orrery.scenario.schema import read_scenario
from orrery.scenario.service import service_for
from orrery.scenario.simulate import simulate
from orrery.serving.requests import Requests
from orrery.serving.simulation import _kernel
from orrery.serving.simulation.assemble import Sizes
from orrery.serving.simulation.prepare import prepare
from orrery.serving.simulation.simulate import simulate as serve
from orrery.serving.simulation.tables import _kernel as tables

LOAD = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 500, "output_tokens": 60, "rate": 20.0}


def service_of(**given):
    return service_for(read_scenario({**LOAD, **given}))[0]


def in_turn(adapters, apart_s=30.0, output_tokens=5):
    """Requests so far apart that each is alone, with these adapters."""
    n = len(adapters)
    return Requests(
        arrive_s=np.arange(n) * apart_s,
        input_tokens=np.full(n, 100),
        output_tokens=np.full(n, output_tokens),
        adapter=np.array(adapters),
    )


def decodes(sequences):
    none = np.zeros(1, np.int64)
    return Batch(
        prompt_sequences=none,
        prompt_tokens=none,
        prompt_context_tokens=none,
        decode_sequences=np.array([sequences]),
        decode_context_tokens=np.array([sequences * 500]),
    )


def test_bytes_of_an_adapter_by_hand():
    """Rank 16 on Llama 3.1 8B, 32 layers: qkv 16 (3 x 4096 + 6144), out 16 (4096 + 4096), gate and up 16 (2 x 4096 +
    28672), down 16 (14336 + 4096): 1,310,720 elements a layer, 41,943,040 in all, of two bytes."""
    deployment = service_of(lora_adapters=5, lora_rank=16, max_loras=3).pools[0].deployment
    assert adapter_bytes(deployment) == 2 * 41_943_040
    assert slots_bytes(deployment) == 3 * 2 * 41_943_040
    plain = service_of().pools[0].deployment
    assert memory_of(plain).kv_capacity_bytes - memory_of(deployment).kv_capacity_bytes == 3 * 2 * 41_943_040
    halves = service_of(lora_adapters=1, tp=2).pools[0].deployment
    # A of column-cut layers and B of row-cut ones are whole on both: 16 times (3 x 4096 + 3072 + 2048 + 4096
    # + 2 x 4096 + 14336 + 7168 + 4096) elements a layer
    assert adapter_bytes(halves) == 32 * 2 * 16 * 55_296


def test_products_are_two_of_every_layer_and_nothing_else_changes():
    with_one, without = (service_of(lora_adapters=n).pools[0].deployment for n in (1, 0))
    batch = decodes(8)
    parts = list(adapter_parts(with_one, with_one.adapters, batch))
    assert [(p.name, p.sizes["n"], p.sizes["k"]) for p in parts[:4]] == [
        ("qkv adapter in", 48.0, 4096.0),
        ("qkv adapter out", 6144.0, 16.0),
        ("out adapter in", 16.0, 4096.0),
        ("out adapter out", 4096.0, 16.0),
    ]
    assert len(parts) == 8
    assert sum(float(p.once.flops[0]) * p.count for p in parts) == 2 * 8 * 41_943_040
    added_s = step(with_one, batch).time_s - step(without, batch).time_s
    assert added_s == pytest.approx(sum(p.time_s for p in parts), rel=1e-9)
    assert not [p for p in step(without, batch).parts if p.group == "adapters"]


def test_a_further_adapter_costs_the_reading_of_its_bytes():
    """At most the datasheet's 3.36 TB/s: 84 MB take 25 us or more, and no more than half as long again."""
    deployment = service_of(lora_adapters=2).pools[0].deployment
    roof_s = 2 * 41_943_040 / 3.36e12
    assert roof_s * 1.001 <= reading_s(deployment) <= 1.5 * roof_s
    assert reading_s(service_of().pools[0].deployment) == 0.0


def test_the_longest_unused_adapter_makes_room():
    """Two places, 0 and 1 there at first: 2 takes that of 0, 0 that of 1, then 2 is there and 1 takes that of 0."""
    found = serve(service_of(lora_adapters=3, max_loras=2), in_turn([0, 1, 2, 0, 2, 1]))
    assert found.counters["adapter_loads"] == 3
    deployment = service_of(lora_adapters=3, max_loras=2).pools[0].deployment
    way = host_link(deployment)
    each_s = way.latency_s + 2 * 41_943_040 / way.bandwidth_bytes_per_s
    assert found.counters["adapter_load_s"] == pytest.approx(3 * each_s)
    ttft_s = found.first_token_s - found.arrive_s
    assert ttft_s[2] - ttft_s[0] == pytest.approx(each_s, rel=1e-6)
    assert ttft_s[4] == pytest.approx(ttft_s[0], rel=1e-6)


def test_requests_of_other_adapters_wait_for_a_place_and_later_ones_pass_them():
    """One place: of adapters 0, 1, 0 at the same moment both of 0 run, and 1 after them."""
    found = serve(service_of(lora_adapters=2, max_loras=1), in_turn([0, 1, 0], apart_s=1e-6, output_tokens=50))
    assert found.admitted_s[2] < found.admitted_s[1]
    assert found.admitted_s[1] >= max(found.finish_s[0], found.finish_s[2])


def test_zero_adapters_are_none_and_one_is_never_loaded():
    plain, none = (simulate(**LOAD, num_requests=300, **more).simulated for more in ({}, {"lora_adapters": 0}))
    assert np.array_equal(plain.finish_s, none.finish_s)
    one = simulate(**LOAD, num_requests=300, lora_adapters=1)
    assert one.simulated.counters["adapter_loads"] == 0
    bare = service_of(num_requests=300, lora_adapters=1)
    chosen = requests_for(read_scenario({**LOAD, "num_requests": 300}))
    assert np.array_equal(serve(bare, chosen).finish_s, one.simulated.finish_s)  # its products are in every step


def test_affinity_loads_less_and_popularity_follows_its_law():
    many = {**LOAD, "num_requests": 1500, "lora_adapters": 40, "max_loras": 8, "replicas": 4}
    loads = {
        router: simulate(**many, router=router).simulated.counters["adapter_loads"]
        for router in ("least-loaded", "lora-affinity")
    }
    assert loads["lora-affinity"] < 0.9 * loads["least-loaded"]
    drawn = requests_for(read_scenario({**many, "num_requests": 60_000, "lora_popularity": "zipf:1"})).adapter
    counts = np.bincount(drawn, minlength=40)
    assert counts[0] / counts[9] == pytest.approx(10.0, rel=0.1)
    even = requests_for(read_scenario({**many, "num_requests": 60_000})).adapter
    assert np.bincount(even).std() < 0.1 * 1500


DRAWN = st.fixed_dictionaries(
    {
        "lora_adapters": st.integers(1, 9),
        "max_loras": st.integers(1, 4),
        "replicas": st.integers(1, 2),
        "policy": st.sampled_from(["chunked-prefill", "prefill-first", "request-level", "layered-prefill"]),
        "prefill_replicas": st.sampled_from([None, 1]),
        "max_num_seqs": st.sampled_from([2, 64]),
        "preemption": st.sampled_from(["recompute", "swap"]),
        "router": st.sampled_from(["least-loaded", "lora-affinity"]),
    }
)


@settings(max_examples=40, deadline=None)
@given(chosen=DRAWN)
def test_nobody_is_forgotten_and_every_place_is_free_at_the_end(chosen):
    if chosen["prefill_replicas"] and chosen["policy"] == "request-level":
        chosen = {**chosen, "prefill_replicas": None}
    scenario = read_scenario({**LOAD, "rate": 80.0, "num_requests": 120, "device": "l4", **chosen})
    service, requests = service_for(scenario)[0], requests_for(scenario)
    prepared = prepare(service, Sizes.of(requests, service.pools[0].deployment.engine.block_tokens), blocks_each=0)
    rows = RequestRows(service, requests, prepared, 0)
    _kernel.run(rows.typed, np.inf, 0, *rows.calls)
    assert (rows.world.req[:, tables.STATUS] == tables.DONE).all()
    assert (rows.world.slots[:, tables.SLOT_REQUESTS] == 0).all()
    assert all(len(set(p.tolist())) == p.size for p in rows.world.slots[:, tables.SLOT_ADAPTER])


def test_a_fleet_of_adapters_survives_failures_and_is_simulate_without():
    given = {**LOAD, "lora_adapters": 6, "max_loras": 2, "lora_popularity": "zipf:1"}
    one = simulate_fleet(**given, num_requests=400)
    assert np.array_equal(one.run.outcome.finish_s, simulate(**given, num_requests=400).simulated.finish_s)
    assert one.run.adapter_loads == simulate(**given, num_requests=400).simulated.counters["adapter_loads"]
    broken = simulate_fleet(
        **given,
        days=0.01,
        replicas_min=2,
        replicas_max=3,
        autoscaler="hpa",
        cold_start_s=5,
        router="lora-affinity",
        faults={"device_mtbf_s": 100.0, "repair_s": 20.0},
    )
    assert broken.run.fates["served"] == broken.num_sent
    assert broken.to_json()["adapter_loads"] == broken.run.adapter_loads > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"lora_rank": 8}, "lora_rank: there are no adapters"),
        ({"lora_adapters": 0, "max_loras": 2}, "max_loras: there are no adapters"),
        ({"router": "lora-affinity"}, "lora-affinity needs adapters"),
        ({"lora_adapters": 4, "lora_popularity": "zipf"}, "write uniform, or zipf:1.1"),
        ({"lora_adapters": 4, "lora_popularity": "zipf:-1"}, "write uniform, or zipf:1.1"),
        ({"lora_adapters": 4, "lora_popularity": "pareto:2"}, "write uniform, or zipf:1.1"),
    ],
)
def test_adapters_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(ScenarioError, match=message):
        simulate(**LOAD, num_requests=10, **wrong)


def test_more_adapters_than_memory_holds_are_infeasible():
    deployment = service_of(device="l4", lora_adapters=400, lora_rank=256, max_loras=400).pools[0].deployment
    assert "L4" in str(memory_of(deployment)) or "l4" in str(memory_of(deployment))
    assert memory_of(replace(deployment, adapters=None)).kv_capacity_bytes > 0


def test_a_second_adapter_draws_what_its_bytes_draw():
    """Decoding two requests of two adapters beside two of one: more by the bytes of an adapter, 84 MB beside 16 GB of
    weights, so by less than one part in fifty."""
    spent_j = []
    for adapters in (np.zeros(2), np.arange(2)):
        requests = replace(in_turn(adapters.astype(np.int64), apart_s=0.0, output_tokens=200))
        served = serve(service_of(lora_adapters=2, max_loras=2), requests)
        spent_j.append(served.energy_j)
    assert 1.0 < spent_j[1] / spent_j[0] < 1.02
