"""``orrery cache-size`` on turns of round numbers: what counts, what each tier holds, and what a task takes."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.fleet.agents.stack import Reuse
from orrery.fleet.agents.turns import Turns
from orrery.scenario import cache_size as page
from orrery.scenario.cache_size import hits, settled, task_of, tiers_of
from orrery.scenario.resolve import deploy, find, formats_of, layout_of
from orrery.scenario.schema import read_scenario


def turns_of(at_s, session):
    count = len(at_s)
    return Turns(
        at_s=np.array(at_s, dtype=np.float64),
        session=np.array(session),
        chain=np.array(session),
        input_tokens=np.full(count, 1000),
        output_tokens=np.full(count, 100),
        shared_tokens=np.full(count, 600),
        think_s=np.full(count, 5.0),
    )


def reuse_of(distances, shared):
    count = len(distances)
    return Reuse(
        turn=np.arange(count),
        distance_tokens=np.array(distances),
        shared_tokens=np.array(shared),
        since_s=np.full(count, 1.0),
    )


def test_turns_that_find_all_and_tokens_that_are_found():
    """A cache of 500 holds 300 of 300 behind 200, and 100 of 300 behind 400."""
    reuse = reuse_of([200, 400], [300, 300])
    assert hits(reuse, 500) == (0.5, 400 / 600)
    assert hits(reuse, 499) == (0.0, (299 + 99) / 600)
    assert hits(reuse, 700) == (1.0, 1.0)
    assert hits(reuse, 0) == (0.0, 0.0)


def test_the_filling_of_the_cache_is_left_out():
    """Sessions begin at 0 and at 100 s: what comes before 25 s or after 100 s does not count, 25 and 100 do."""
    at_s = [0.0, 24.0, 25.0, *np.linspace(30.0, 99.0, 18), 100.0, 100.0, 101.0]
    session = [0] * (len(at_s) - 3) + [0, 1, 0]
    turns, reuse = turns_of(at_s, session), reuse_of([1] * len(at_s), [1] * len(at_s))
    found, is_whole = settled(turns, reuse)
    assert is_whole
    assert found.turn.tolist() == list(range(2, len(at_s) - 1))


def test_too_few_turns_count_all():
    at_s = np.linspace(0.0, 100.0, 26)  # 25 to 100 s: 19 of them
    turns = turns_of(at_s, [0] * 25 + [1])
    reuse = reuse_of([1] * 26, [1] * 26)
    assert (at_s >= 25.0).sum() == 19
    assert settled(turns, reuse) == (reuse, False)
    more = np.append(at_s, 50.0)  # twenty are enough
    assert settled(turns_of(np.sort(more), [0] * 26 + [1]), reuse_of([1] * 27, [1] * 27))[1]


@pytest.fixture(scope="module")
def deployment():
    scenario = read_scenario({"model": "llama-3.2-1b", "device": "h100-sxm", "tp": 2, "dp": 2})
    parts = find(scenario, "h100-sxm")
    return deploy(scenario, parts, layout_of(scenario, parts)[0], formats_of(scenario, parts)[0])


MEMORY = SimpleNamespace(kv_capacity_tokens=250.0)


def test_tiers_from_the_devices_outwards(deployment):
    """Two replicas' devices hold 500 tokens of 10 bytes; the host 300 more, and a store 1,000. Three turns share 300
    behind 200, 400 and 600: 300 + 100, then 300 + 300 + 200, then all 900."""
    settings = {"host_cache_bytes": 3000, "remote_cache_bytes": 1e4, "remote_bytes_per_s": 100.0}
    reuse = reuse_of([200, 400, 600], [300, 300, 300])
    found = tiers_of(read_scenario(settings), deployment, MEMORY, reuse, 10.0)
    device, host, remote = found
    assert [tier.name for tier in found] == ["device", "host", "remote"]
    assert [tier.size_bytes for tier in found] == [5000.0, 3000.0, 1e4]
    assert [tier.size_tokens for tier in found] == [500.0, 300.0, 1000.0]
    assert [tier.turns_frac for tier in found] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert [tier.tokens_frac for tier in found] == pytest.approx([400 / 900, 800 / 900, 1.0])
    each_way = deployment.cluster.device.host.each_way_bytes_per_s
    assert [tier.bytes_per_s for tier in found] == [0.0, 4 * each_way, 100.0]
    assert device.load_s == 0.0
    assert host.load_s == pytest.approx(400 / 3 * 10 / (4 * each_way))
    assert remote.load_s == pytest.approx(100 / 3 * 10 / 100)


def test_a_drive_is_no_faster_than_its_fact_and_a_store_than_a_link(deployment):
    found = tiers_of(
        read_scenario({"nvme_cache_bytes": 1e4, "remote_cache_bytes": 1e4}),
        deployment,
        MEMORY,
        reuse_of([1], [1]),
        10.0,
    )
    device = deployment.cluster.device
    nvme = float(page.cold_start_facts()["nvme_bytes_per_s"].value)
    assert nvme < 4 * device.host.each_way_bytes_per_s
    assert [tier.bytes_per_s for tier in found] == [0.0, nvme, device.scaleout.each_way_bytes_per_s]


def test_a_mean_task_by_hand(deployment, monkeypatch):
    """Two sessions of two turns: 2,000 tokens in, 200 out, 1,200 shared. Half of those are held, so 1,400 are computed
    at 225 tokens (nine tenths of what there is room for) in 0.1 s; four devices at 3.6 $ an hour are 0.004 $/s."""
    asked = []

    def timed(_, workload):
        asked.append(workload)
        return SimpleNamespace(ttft_s=0.1)

    monkeypatch.setattr(page, "estimate", timed)
    turns = turns_of([0.0, 1.0, 2.0, 3.0], [0, 0, 1, 1])
    found = task_of(read_scenario({"usd_per_hour": 3.6}), deployment, MEMORY, turns, 0.5)
    assert (asked[0].input_tokens, asked[0].output_tokens, asked[0].batch_size) == (225.0, 2.0, 1)
    assert (found.turns_ratio, found.input_tokens, found.output_tokens) == (2.0, 2000.0, 200.0)
    assert (found.computed_tokens, found.think_s) == (1400.0, 10.0)
    assert found.prefill_s == pytest.approx(1400 / 2250)
    assert found.saved_s == pytest.approx(600 / 2250)
    assert found.prefill_usd == pytest.approx(1400 / 2250 * 0.004)
    roomy = SimpleNamespace(kv_capacity_tokens=1e6)
    task_of(read_scenario({}), deployment, roomy, turns, 0.5)
    assert asked[1].input_tokens == 1000.0
