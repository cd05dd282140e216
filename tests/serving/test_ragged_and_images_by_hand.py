"""Ragged services and images, put together from round pieces."""

from types import SimpleNamespace

import numpy as np
import pytest
from round_pieces import Layout, deployed, one

from orrery.base.errors import ScenarioError
from orrery.execution.host_rates import HOST_RATE_FRAC
from orrery.serving import ragged_run
from orrery.serving.ragged import Ragged, Round
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import GAP_BINS_PER_DECADE, TIMELINE
from orrery.serving.studies import image_server

# --- ragged services


def test_costs_of_a_round(monkeypatch):
    """Lengths in steps of 64; layers x sequences x 6 calls of 10 us to shift, 2 calls a layer to stack."""
    told = []

    def tick(deployment, batch):
        told.append(batch)
        return SimpleNamespace(time_s=np.arange(1.0, batch["size"] + 1))

    def steps_of(prompts, tokens, context, decodes, decode_context):
        return {
            "size": max(np.size(tokens), np.size(decodes)),
            "all": (prompts, tokens, context, decodes, decode_context),
        }

    monkeypatch.setattr(ragged_run, "tick", tick)
    monkeypatch.setattr(ragged_run, "steps_of", steps_of)
    monkeypatch.setattr(ragged_run, "replace", lambda batch, guesses: batch | {"guesses": guesses})
    monkeypatch.setattr(ragged_run, "growing_s", lambda target, count, length: 0.5)
    monkeypatch.setattr(ragged_run, "verified_tokens", lambda guessing: 4)
    monkeypatch.setattr(ragged_run, "drafting_s", lambda guessing, count: 0.25 * count)
    monkeypatch.setattr(ragged_run, "level_chances", lambda guessing: (0.8, 0.6, 0.4))
    target = SimpleNamespace(model=SimpleNamespace(num_layers=10))
    rounds = ragged_run.rounds_of(target, None, 8, 100)
    assert (rounds.draft_tokens, rounds.acceptance_frac, rounds.acceptance_fracs) == (3, 0.8, (0.8, 0.6, 0.4))
    assert (rounds.draft_s(2, 0), rounds.shift_s(3, 0), rounds.stack_s(3, 0)) == (
        0.5,
        pytest.approx(0.5 + 10 * 3 * 6e-5),
        pytest.approx(0.5 + 10 * 2e-5),
    )
    assert [rounds.check_s(2, length) for length in (0, 63, 64, 200, 10_000)] == [1.0, 1.0, 2.0, 4.0, 8.0]
    assert [rounds.prompt_s(2, length) for length in (0, 64, 10_000)] == [1.0, 2.0, 8.0]
    checked, read = told
    assert checked["guesses"] == 3
    assert (checked["all"][3][0], checked["all"][4].tolist()) == (2.0, [64.0 * i for i in range(1, 9)])
    assert (read["all"][0], read["all"][1].tolist()) == (2.0, [64.0 * i for i in range(1, 9)])


REQUESTS = Requests(arrive_s=np.zeros(2), input_tokens=np.array([10, 20]), output_tokens=np.array([6, 3]))


@pytest.mark.parametrize(("way", "tokens"), [("realign", 26), ("pool", 26), ("padded", 20 + 6 * 4)])
def test_the_cache_of_a_padded_batch(monkeypatch, way, tokens):
    """The longest of 16 and 23 tokens; where rejected guesses stay, 4 tokens for each of 6."""
    monkeypatch.setattr(ragged_run, "verified_tokens", lambda guessing: 4)
    longest = 23 if way != "padded" else tokens
    memory = SimpleNamespace(cache=SimpleNamespace(sequence_bytes=lambda n: 10.0 * n), kv_capacity_bytes=30.0 * longest)
    assert ragged_run._lacking(REQUESTS, None, memory, 3, way) is None
    short = SimpleNamespace(cache=memory.cache, kv_capacity_bytes=30.0 * longest - 1)
    assert ragged_run._lacking(REQUESTS, None, short, 3, way).need == 30.0 * longest


def test_gaps_of_a_round():
    """Three tokens at once after 1 ms: one gap of that, two of none."""
    gaps, sums = np.zeros(4 * GAP_BINS_PER_DECADE), np.zeros(2)
    ragged_run._count_gaps(gaps, sums, 1.001e-3, 3)
    assert np.flatnonzero(gaps).tolist() == [0, 3 * GAP_BINS_PER_DECADE]
    assert gaps[[0, 3 * GAP_BINS_PER_DECADE]].tolist() == [2.0, 1.0]
    assert sums.tolist() == pytest.approx([1.001e-3, 1.001e-3**2])
    ragged_run._count_gaps(gaps, sums, 1e9, 1)
    assert gaps[-1] == 1.0


def test_a_ragged_run_as_a_result(monkeypatch):
    """Both prompts by 2 s; rounds until 6 and 10 s with 3 and 2, then 2 and none; 300 W while computing, 50 W idle."""
    run = Ragged(
        draft_s=2.0, check_s=4.0, align_s=2.0, prompt_s=2.0, num_tokens=7, num_rounds=2,
        rounds=[
            Round(start_s=2.0, end_s=6.0, members=(0, 1), taken=(3, 2), length=20),
            Round(start_s=6.0, end_s=10.0, members=(0, 1), taken=(2, 0), length=23),
        ],
        starts_s={0: 0.0, 1: 1.0}, firsts_s={0: 1.0, 1: 2.0},
    )  # fmt: skip
    told = []

    def tick(target, batch):
        told.append((batch.decode_sequences.tolist(), batch.decode_context_tokens.tolist()))
        return SimpleNamespace(done=None, time_s=one(1.0))

    monkeypatch.setattr(ragged_run, "tick", tick)
    monkeypatch.setattr(ragged_run, "steps_power_w", lambda *_: 150.0)
    target = deployed(Layout(num_devices=2), cluster=SimpleNamespace(device=SimpleNamespace(idle_power_w=25.0)))
    memory = SimpleNamespace(cache=SimpleNamespace(sequence_bytes=lambda n: 10.0 * n), kv_capacity_bytes=900.0)
    service = SimpleNamespace(pools=(SimpleNamespace(deployment=target),), num_devices=2)
    found = ragged_run._result(service, REQUESTS, run, memory, 2)
    assert told == [([2], [22])]
    assert (found.finish_s.tolist(), found.first_token_s.tolist()) == ([10.0, 6.0], [1.0, 2.0])
    assert found.arrive_s.tolist() == [0.0, 0.0]
    assert (found.gap_sum_s, found.gap_squares_s2) == (5.0 + 4.0 + 4.0, 25.0 + 16.0 + 16.0)
    assert (found.duration_s, found.energy_j, found.idle_frac) == (10.0, 300.0 * 8.0 + 50.0 * 2.0, 0.2)
    assert found.counters["align_overhead_frac"] == 0.5
    assert (found.num_steps, found.num_machines, found.max_running) == (2, 1, 2)
    line = {name: found.timeline[:, i] for i, name in enumerate(TIMELINE)}
    assert found.timeline_s[[0, 1, -1]].tolist() == [0.0, 0.05, 10.0]
    assert (line["steps"].sum(), line["decode_tokens"].sum(), line["busy_s"].sum()) == (2.0, 7.0, 8.0)
    assert (line["prompt_tokens"].sum(), line["arrivals"].sum(), line["finishes"].sum()) == (30.0, 2.0, 2.0)
    assert line["running"].sum() == pytest.approx(10.0 + 5.0)
    assert line["kv_bytes"].sum() == pytest.approx(10 * 13 * 10.0 + 10 * 21.5 * 5.0)
    busy_bins = np.flatnonzero(line["busy_s"])
    assert line["energy_j"][busy_bins].tolist() == pytest.approx([0.05 * 300.0] * 2)
    assert line["energy_j"][0] == pytest.approx(0.05 * 50.0)
    closed = ragged_run._result(service, REQUESTS, run, memory, 1)
    assert closed.arrive_s.tolist() == [0.0, 1.0]


def test_pools_hold_six_batches_where_nobody_says(monkeypatch):
    told = []

    def pooled(rounds, inputs, size, pool, seed, outputs):
        told.append((size, pool, outputs.tolist()))

    monkeypatch.setattr(ragged_run, "memory_of", lambda d: SimpleNamespace(max_num_seqs=5))
    monkeypatch.setattr(ragged_run, "_lacking", lambda *_: None)
    monkeypatch.setattr(ragged_run, "rounds_of", lambda target, guessing, size, longest: told.append(longest))
    monkeypatch.setattr(ragged_run, "pooled", pooled)
    monkeypatch.setattr(ragged_run, "_result", lambda *_: "run")
    asked_of = SimpleNamespace(pools=(SimpleNamespace(deployment=None),), speculation=1)
    assert ragged_run.serve_ragged(asked_of, REQUESTS, way="pool", batch=8) == "run"
    assert told == [23, (2, 12, [5, 2])]
    ragged_run.serve_ragged(asked_of, REQUESTS, way="pool", batch=1, pool=9)
    assert told[3] == (1, 9, [5, 2])


# --- images


def test_a_vision_transformer_is_its_products_and_attention(monkeypatch):
    """224 pixels in patches of 16: 196 tokens and one; products of 3 x 768, 768, 3072 and 768; twelve layers."""
    told = []

    def predict(op, device):
        told.append(op)
        return SimpleNamespace(time_s=one(0.25, 0.25) if len(told) % 2 else one(2.0))

    monkeypatch.setattr(image_server.kernels, "predict", predict)
    assert image_server.network_s(image_server.Sizes(), None, 4) == pytest.approx(12 * 2.5)
    products, attention = told
    assert (products.m, products.n.tolist(), products.k.tolist()) == (
        4 * 197,
        [2304, 768, 3072, 768],
        [768, 768, 768, 3072],
    )
    assert (attention.batch, attention.query_tokens, attention.num_heads, attention.head_size) == (4, 197, 12, 64)
    assert attention.is_causal is False
    assert products.quantises_input is False
    with pytest.raises(ScenarioError, match="num_heads"):
        image_server.network_s(image_server.Sizes(num_heads=769), None, 1)
    with pytest.raises(ScenarioError, match="num_patch"):
        image_server.network_s(image_server.Sizes(num_patch=225), None, 1)


def test_an_image_in_bytes():
    """100 pixels are 300 bytes, packed 0.6 a pixel; the network takes 224 x 224 x 3 in 4 bytes each."""
    device = SimpleNamespace(host=SimpleNamespace(each_way_bytes_per_s=1e9, latency_s=2e-6))
    found = image_server._server(image_server.Sizes(), device, 100.0, 0.5, 0.125)
    assert (found.packed_bytes, found.unpacked_bytes, found.input_bytes) == (60.0, 300.0, 224 * 224 * 12)
    assert (found.core_bytes_per_s, found.device_bytes_per_s, found.num_cores) == (3e8, 3e9, 16)
    assert found.link_bytes_per_s == pytest.approx(1e9 * HOST_RATE_FRAC)
    assert (image_server.Sizes().num_batch, image_server.Sizes().image_px) == (64, "187500,8294400")
