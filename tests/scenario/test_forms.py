"""Overlaps, policies and lending in estimate and plan: by hand, off is absent, near the simulation, three doors."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.execution.batch import decodes_of
from orrery.execution.overlap import OVERLAPS
from orrery.execution.overlapped import halved, overlapped, overlapped_s, pass_of
from orrery.execution.step import step
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.file import load_scenario
from orrery.scenario.resolve import resolve
from orrery.scenario.schema import read_scenario

LLAMA = {
    "model": "llama-3.1-70b",
    "device": "h100-sxm",
    "tp": 4,
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 32,
    "engine_version": "0.11.0",
}
TRIED = ("ladder-residual", "token-split", "nano-batches")


def tpot_s(**settings) -> float:
    answer = orrery.estimate(**LLAMA | settings)
    assert not isinstance(answer, InfeasibleAnswer)
    return answer.estimate.tpot_s


def test_sequential_and_the_engines_own_policy_are_absent_to_the_bit():
    absent = tpot_s()
    assert tpot_s(overlap="sequential") == absent
    assert tpot_s(policy="chunked-prefill") == absent


@pytest.mark.parametrize("name", TRIED)
def test_an_overlap_saves_time_and_never_more_than_its_collectives_and_memory(name: str):
    assert tpot_s(overlap=name) < tpot_s()
    d = resolve(read_scenario(LLAMA)).deployment
    batch = decodes_of(np.array([1, 8, 64, 256]), 1024)
    done = pass_of(d, *(step(d, x).parts for x in (batch, halved(batch))), batch.num_tokens.size)
    least_s = np.maximum(np.maximum(done.network_s, done.memory_s), done.total_s - done.network_s - done.memory_s)
    shown_s = overlapped_s(done, name)
    assert (shown_s <= done.total_s).all()
    assert (shown_s >= least_s * (1 - 1e-9) / (1.0 if name != "token-split" else 1.3)).all()


def test_a_ladder_by_hand():
    """Two blocks of 3 s, each with an all-reduce of 1 s: 3 + max(1, 3) + 1 = 7 s, where one after the other takes 8."""
    rule = OVERLAPS.get("ladder-residual").rule
    assert rule(8.0, 2.0, 6.0, 0.0, 0.0, 1.0, np.array([16.0, 132.0])) == pytest.approx(7.0)


def test_parts_add_up_to_what_shows():
    d = resolve(read_scenario(LLAMA | {"overlap": "ladder-residual"})).deployment
    batch = decodes_of(np.array([8, 64]), 512)
    done = overlapped(d, step(d, batch), batch, step)
    assert np.sum([p.time_s for p in done.parts], axis=0) == pytest.approx(done.time_s)
    assert (done.time_s < step(d, batch).time_s).all()


@pytest.mark.parametrize("name", ["ladder-residual", "token-split"])
def test_one_device_has_nothing_to_hide(name: str):
    one = {"model": "llama-3.1-8b", "tp": 1}
    assert tpot_s(**one, overlap=name) == tpot_s(**one)
    answer = orrery.estimate(**LLAMA | one, overlap=name)
    assert any("no effect on this deployment: tp is 1" in note for note in answer.notes)


@pytest.mark.parametrize(
    "change", [{"overlap": "ladder-residual"}, {"policy": "prefill-first"}, {"overlap": "nano-batches"}]
)
def test_the_closed_form_is_near_the_simulation(change: dict[str, str]):
    """As near as without: within 8 % of the gain or loss that is simulated."""
    runs = [orrery.simulate(**LLAMA | each, num_requests=256) for each in ({}, change)]
    simulated = runs[1].summary.output_tokens_per_s / runs[0].summary.output_tokens_per_s
    answers = [orrery.estimate(**LLAMA | each).estimate.output_tokens_per_s for each in ({}, change)]
    assert answers[1] / answers[0] == pytest.approx(simulated, rel=0.08)


def test_nano_batches_take_the_best_number_and_a_knob_sets_it():
    best = tpot_s(overlap="nano-batches")
    assert best <= min(tpot_s(overlap="nano-batches", knob=[f"overlap.num_batches={n}"]) for n in (2, 3, 8)) + 1e-12


def test_what_the_closed_form_does_not_know_is_refused():
    with pytest.raises(ScenarioError, match="orrery simulate takes packed-batch too"):
        orrery.estimate(**LLAMA, policy="packed-batch")
    with pytest.raises(ScenarioError, match=r"queue\.base_s is of orrery simulate"):
        orrery.estimate(**LLAMA, knob=["queue.base_s=1"])
    with pytest.raises(ScenarioError, match="has no chunks"):
        orrery.estimate(**LLAMA, policy="prefill-first", knob=["policy.chunk_tokens=256"])
    with pytest.raises(ScenarioError, match="keep one"):
        orrery.estimate(**LLAMA, policy="chunked-prefill", max_num_batched_tokens=512, knob=["policy.chunk_tokens=256"])


def test_three_doors_give_one_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    asked = LLAMA | {"overlap": "token-split", "policy": "prefill-first"}
    answer = orrery.estimate(**asked)
    path = tmp_path / "deployment.toml"
    path.write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in asked.items()))
    assert orrery.estimate(load_scenario(path)).estimate.tpot_s == answer.estimate.tpot_s
    flags = [word for k, v in asked.items() for word in (f"--{k.replace('_', '-')}", str(v))]
    assert run(["estimate", *flags, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tpot_s"] == answer.estimate.tpot_s


def test_plans_run_under_an_overlap():
    asked = {k: v for k, v in LLAMA.items() if k not in ("concurrency", "tp")}
    limits = {"rate": 2, "max_devices": 4, "weights": "bf16", "kv": "bf16", "slo": ["tpot:50"]}
    plain, ladder = (orrery.plan(**asked, **limits, overlap=o).plans for o in ("sequential", "ladder-residual"))
    pairs = {str(p.operation.deployment.layout): p.operation.highest_requests_per_s for p in plain}
    shown = {str(p.operation.deployment.layout): p.operation.highest_requests_per_s for p in ladder}
    assert shown["tp4"] > pairs["tp4"]


def test_lending_makes_the_context_as_long_as_the_pool():
    asked = {
        "model": "llama-2-7b",
        "device": "a100-sxm-80gb",
        "dp": 4,
        "input_tokens": 512,
        "output_tokens": 64,
        "concurrency": 8,
        "max_model_len": 100_000_000,
    }
    alone, lent = orrery.estimate(**asked), orrery.estimate(**asked, lend_cache=True)
    assert lent.room.longest_context_tokens == 4 * alone.room.longest_context_tokens
    assert orrery.estimate(**asked, lend_cache=False).room == alone.room
    assert lent.estimate.tpot_s == alone.estimate.tpot_s
    one = orrery.estimate(**asked | {"dp": 1}, lend_cache=True)
    assert any("dp is 1" in note for note in one.notes)


@given(
    tp=st.sampled_from([1, 2, 8]),
    concurrency=st.sampled_from([1, 16, 200]),
    overlap=st.sampled_from(["sequential", *TRIED]),
    policy=st.sampled_from([None, "chunked-prefill", "prefill-first"]),
)
@settings(max_examples=15, deadline=None)
def test_drawn_deployments_keep_to_physics(tp: int, concurrency: int, overlap: str, policy: str | None):
    """An overlap never costs time, Little's law holds, tokens are not read faster than the weights."""
    asked = LLAMA | {"model": "llama-3.1-8b", "tp": tp, "concurrency": concurrency}
    plain, shown = (orrery.estimate(**asked, policy=policy, overlap=o).estimate for o in (None, overlap))
    assert shown.output_tokens_per_s >= plain.output_tokens_per_s * (1 - 1e-3)
    assert shown.requests_per_s * shown.latency_s == pytest.approx(shown.concurrency, rel=1e-6)
    assert shown.tpot_s > 16e9 / tp / 3.36e12
