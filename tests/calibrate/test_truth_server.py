"""The reference server is the engine that orrery simulates: on a clock of predicted steps it does the same."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.calibrate.truth.server import Limits, serve
from orrery.calibrate.truth.transformer import Cache, transformer
from orrery.calibrate.truth.wall import WallClock
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.execution.surface import device_cost, stacked, surface_of
from orrery.hardware.cluster import Cluster
from orrery.models.config import parse
from orrery.serving.metrics import About, result_json, summary
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery.serving.synthesis import Length, independent

CONFIG = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "intermediate_size": 704,
    "vocab_size": 2048,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
}


@cache
def deployment():
    device = get_device("intel-n150")
    return Deployment(
        model=parse(CONFIG, name="small"),
        cluster=Cluster(device=device, num_devices=1, devices_per_node=1),
        layout=Layout(),
        formats=Formats(weights="fp32", activations="fp32", kv="fp32"),
        engine=replace(get_engine("numpy", "", device), request_s=0.0, per_prompt_token_s=0.0),
    )


class Pretended:
    """A model that computes nothing and takes as long as orrery's simulator says, on a clock of its own."""

    vocab_size = 2048

    def __init__(self, requests, max_num_seqs=16):
        self.time_s, self.engine = 0.0, deployment().engine
        self.surface = stacked(
            [
                surface_of(
                    deployment(),
                    most_tokens=512,
                    most_sequences=max_num_seqs,
                    most_context_tokens=int((requests.input_tokens + requests.output_tokens).max()),
                    most_prompt_tokens=int(requests.input_tokens.max()),
                )
            ]
        )

    def now_s(self):
        return self.time_s

    def wait_until(self, moment_s):
        self.time_s = max(self.time_s, moment_s)

    def new_cache(self, capacity_tokens):
        return Cache(keys=np.zeros(capacity_tokens), values=np.zeros(0))

    def step(self, work):
        new, size, cost = np.array([len(tokens) for _, tokens in work], float), float(len(work)), np.zeros(4)
        is_prompt = work[0][0].num_tokens == 0
        for held, tokens in work:
            assert (held.num_tokens == 0) == is_prompt
            held.num_tokens += len(tokens)
            assert held.num_tokens <= held.keys.size
        if is_prompt:
            device_cost(self.surface, 0, cost, size, new.sum(), (new**2).sum() / 2, 0.0, 0.0, size, 0.0)
        else:
            context = float(sum(held.num_tokens for held, _ in work))
            device_cost(self.surface, 0, cost, 0.0, 0.0, 0.0, size, context, size, 0.0)
        self.time_s += cost[0] + self.engine.step_s + self.engine.per_sequence_s * size
        return np.zeros(len(work), np.int64)


def drawn(request_rate_per_s, count=120, seed=0):
    lengths = (Length(mean_tokens=m, law="uniform", range_ratio=0.45) for m in (96.0, 24.0))
    return independent(count, request_rate_per_s, seed, input=next(lengths), output=next(lengths))


def pretended(requests, limits=None, **more):
    model = Pretended(requests, (limits or Limits()).max_num_seqs)
    return serve(model, requests, limits, clock=model, **more)


@pytest.mark.parametrize(("request_rate_per_s", "max_num_seqs"), [(8.0, 16), (16.0, 16), (40.0, 4)])
def test_the_loop_is_the_one_that_orrery_simulates(request_rate_per_s, max_num_seqs):
    requests = drawn(request_rate_per_s)
    real = pretended(requests, Limits(max_num_seqs=max_num_seqs))
    service = Service(pools=(Pool(deployment=replace(deployment(), max_num_seqs=max_num_seqs)),))
    message = simulate(service, requests)
    assert len(real.steps) == message.num_steps
    np.testing.assert_allclose(real.admitted_s, message.admitted_s, atol=1e-9)
    np.testing.assert_allclose(real.first_token_s, message.first_token_s, rtol=1e-9)
    np.testing.assert_allclose(real.finish_s, message.finish_s, rtol=1e-9)


def test_every_request_gets_its_tokens_and_no_limit_is_broken():
    requests, limits = drawn(40.0), Limits(max_num_seqs=5, max_num_batched_tokens=150)
    run = pretended(requests, limits)
    assert [t.size for t in run.token_times_s] == requests.output_tokens.tolist()
    assert all((np.diff(t) > 0).all() for t in run.token_times_s)
    assert (run.admitted_s >= requests.arrive_s).all()
    assert (run.first_token_s > run.admitted_s).all()
    assert (np.diff(run.admitted_s) >= 0).all(), "first come, first served"
    for step in run.steps:
        held = (run.admitted_s <= step.began_s) & (run.finish_s > step.began_s)
        assert held.sum() <= 5
        assert step.num_tokens <= 150 if step.num_prompts else step.num_tokens == step.num_sequences == held.sum()
    assert run.outside_s == 0.0
    assert 0.3 < run.busy_frac <= 1.0  # of a machine that others use, too


def test_prompts_go_first_and_alone():
    requests = Requests(
        arrive_s=np.array([0.0, 0.0, 0.001]), input_tokens=np.array([300, 300, 8]), output_tokens=np.array([4, 4, 4])
    )
    run = pretended(requests)
    assert [s.num_prompts for s in run.steps] == [1, 2, 0, 0, 0]
    assert [s.num_tokens for s in run.steps] == [300, 308, 3, 3, 3]


def test_a_run_ends_in_time_and_what_is_left_has_failed():
    run = pretended(drawn(40.0), most_s=1.0)
    done = np.isfinite(run.finish_s)
    assert 0 < done.sum() < 120
    assert run.steps[-1].began_s < 1.0
    found = run.to_json(model_id="small", request_rate_per_s=40.0, detailed=True)
    assert (found["completed"], found["failed"]) == (done.sum(), 120 - done.sum())
    assert sum(map(bool, found["errors"])) == found["failed"]
    assert run.metrics()["requests_per_s"] == pytest.approx(found["request_throughput"])


def test_a_run_in_which_nothing_ends_has_no_figures():
    run = pretended(drawn(40.0), most_s=0.0)
    assert run.steps == ()
    assert run.to_json(model_id="small", request_rate_per_s=40.0)["mean_ttft_ms"] is None
    assert run.metrics()["output_tokens_per_s"] == 0.0


def test_the_figures_have_the_names_and_the_meaning_of_simulated_ones():
    requests = drawn(16.0)
    run, message = pretended(requests), simulate(Service(pools=(Pool(deployment=deployment()),)), requests)
    ours = run.to_json(model_id="small", request_rate_per_s=16.0, detailed=True)
    played = replace(
        message,
        admitted_s=run.admitted_s,
        first_token_s=run.first_token_s,
        finish_s=run.finish_s,
        duration_s=run.duration_s,
    )
    theirs = result_json(played, summary(played, {}), About(model_id="small", request_rate_per_s=16.0), detailed=True)
    assert ours.keys() <= theirs.keys()
    gaps = {k for k in ours if k.startswith("itl") or "_itl_" in k}  # a simulated run keeps a histogram of them
    result = {"date", "endpoint_type", "backend", "errors", "start_times"}
    for key in ours.keys() - gaps - result:
        assert ours[key] == (pytest.approx(theirs[key]) if theirs[key] is not None else None), key
    assert ours["mean_itl_ms"] == pytest.approx(theirs["mean_itl_ms"], rel=0.03)
    assert ours["itls"][0] == pytest.approx(np.diff(run.token_times_s[0]))


def test_a_prompt_beyond_the_budget_is_refused_in_words():
    with pytest.raises(ScenarioError, match="max_num_batched_tokens = 9"):
        pretended(
            Requests(arrive_s=np.zeros(1), input_tokens=np.array([9]), output_tokens=np.array([1])),
            Limits(max_num_batched_tokens=8),
        )


def test_a_real_model_answers_in_real_time():
    model = transformer({**CONFIG, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2})
    requests = Requests(
        arrive_s=np.array([0.0, 0.0, 0.02]), input_tokens=np.array([5, 9, 3]), output_tokens=np.array([4, 1, 6])
    )
    run = serve(model, requests, Limits(max_num_seqs=2))
    assert [t.size for t in run.token_times_s] == [4, 1, 6]
    assert (run.first_token_s > requests.arrive_s).all()
    assert run.outside_s > 0.0


def test_the_wall_clock_never_returns_early():
    clock = WallClock()
    moment_s = clock.now_s() + 3e-3
    clock.wait_until(moment_s)
    assert clock.now_s() >= moment_s
    clock.wait_until(moment_s - 1.0)


def test_the_engine_file_says_what_the_loop_does():
    engine, limits = get_engine("numpy"), Limits()
    assert (engine.max_num_seqs, engine.max_num_batched_tokens) == (limits.max_num_seqs, limits.max_num_batched_tokens)
    assert (engine.kernels, engine.has_mixed_steps, engine.has_cuda_graphs, engine.overlap_frac) == (
        "numpy",
        False,
        False,
        0.0,
    )
