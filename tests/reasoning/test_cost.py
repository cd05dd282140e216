"""The price of a graph on a deployment, in time, energy and cache; and in equivalent flops."""

from dataclasses import replace

import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.execution.memory import Infeasible
from orrery.reasoning.cost import GraphCost, cost
from orrery.reasoning.equivalent import Sparsity, equivalent, intensity_flops_per_byte
from orrery.reasoning.graph import Call, Graph, Problem
from orrery.reasoning.matched import answer_flops
from orrery.reasoning.shape import graph_of
from orrery.serving.estimate import estimate
from orrery.serving.workload import Workload

MODEL = "meta-llama/Llama-3.1-8B"
PROBLEM = Problem(prompt_tokens=512, answer_tokens=256)


def price(graph, *deployments, **options):
    found = cost(graph, dict(zip(("solver", "verifier"), deployments, strict=False)), **options)
    assert isinstance(found, GraphCost)
    return found


def test_one_plain_call_takes_what_a_static_batch_takes(deploy):
    deployment = deploy(MODEL)
    graph = graph_of("majority-vote", PROBLEM, num_samples=8)
    found = price(graph, deployment, shares_prefix=False)
    batch = estimate(deployment, Workload(mode="static", input_tokens=512, output_tokens=256, batch_size=8))
    assert not isinstance(batch, Infeasible)
    assert found.time_s == pytest.approx(batch.latency_s, rel=0.03)
    assert found.energy_j == pytest.approx(batch.power_w * batch.latency_s, rel=0.1)


def test_sharing_a_prefix_saves_prefill_and_cache(deploy):
    graph, deployment = graph_of("best-of-n", Problem(prompt_tokens=8000, answer_tokens=100)), deploy(MODEL)
    together, apart = (price(graph, deployment, shares_prefix=shares) for shares in (True, False))
    assert together.time_s < 0.5 * apart.time_s
    each = 2 * 2 * 32 * 8 * 128
    assert together.calls[0].kept_bytes == pytest.approx(each * (8000 + 16 * 100))
    assert apart.calls[0].kept_bytes == pytest.approx(each * 16 * 8100)


def test_cache_reads_are_those_of_every_token_of_every_sequence(deploy):
    found = price(graph_of("majority-vote", PROBLEM, num_samples=4), deploy(MODEL))
    each = 2 * 2 * 32 * 8 * 128
    assert found.cache_read_bytes == pytest.approx(each * 4 * 256 * (512 + 128.5), rel=1e-3)


def test_what_does_not_fit_runs_in_waves_and_is_computed_again(deploy):
    deployment = deploy("codellama-34b", "h100-nvl", "sglang")
    call = Call(name="step", count=1000, context_tokens=600, distinct_tokens=200_000, fresh_tokens=0, output_tokens=70)
    found, half = (
        price(Graph(calls=(replace(call, count=n, distinct_tokens=200 * n),)), deployment) for n in (1000, 20)
    )
    assert found.calls[0].num_waves > 1 == half.calls[0].num_waves
    assert found.calls[0].prefilled_tokens > 50_000
    assert half.calls[0].prefilled_tokens == 0


def test_rounds_wait_for_each_other_and_samples_do_not(deploy):
    deployment = deploy(MODEL)
    rounds = price(graph_of("sequential-revision", PROBLEM, num_rounds=4), deployment)
    samples = price(graph_of("majority-vote", PROBLEM, num_samples=4), deployment)
    assert rounds.time_s > 3.5 * samples.time_s
    assert rounds.time_s == pytest.approx(sum(call.time_s for call in rounds.calls))


def test_nobody_waits_for_what_was_thought_before(deploy):
    graph = graph_of("sleep-time-compute", PROBLEM, thought_ratio=4.0)
    found = price(graph, deploy(MODEL))
    think, answer = found.calls
    assert (found.offline_s, found.time_s) == (think.time_s, answer.time_s)
    assert found.offline_s > 10 * found.time_s
    assert found.energy_j == think.energy_j + answer.energy_j


def test_a_verifier_of_its_own_is_priced_by_itself(deploy):
    graph = graph_of("generative-verification", PROBLEM)
    small, large = deploy(MODEL), deploy("meta-llama/Llama-3.1-70B", tp=4)
    alone, checked = price(graph, small), price(graph, small, large)
    assert alone.calls[0] == checked.calls[0]
    assert checked.calls[1].flops > 5 * alone.calls[1].flops


def test_a_model_that_does_not_fit_is_no_price_but_a_reason(deploy):
    found = cost(graph_of("best-of-n", PROBLEM), {"solver": deploy("meta-llama/Llama-3.1-405B")})
    assert isinstance(found, Infeasible)


def test_the_equivalent_of_a_byte_is_what_the_device_computes_meanwhile():
    assert intensity_flops_per_byte(get_device("b200"), "fp8") == 562.5


def test_equivalent_flops_by_hand():
    model, graph = get_model("qwen3-0.6b"), graph_of("majority-vote", PROBLEM, num_samples=4)
    found = equivalent(model, graph, 100.0)
    pairs = 4 * 256 * (512 + 128)
    assert found.linear_flops == 2 * model.num_parameters * 1024
    assert found.attention_flops == 28 * 4 * 16 * 128 * pairs
    assert found.cache_flops == 100.0 * 28 * 2 * 2 * 8 * 128 * 256 * (512 + 512)
    assert found.total_flops == found.computed_flops + found.cache_flops


def test_long_answers_of_small_models_are_mostly_attention():
    ratios = {
        name: [
            equivalent(get_model(name), graph_of("majority-vote", Problem(prompt_tokens=200, answer_tokens=n)), 562.5)
            for n in (1_000, 16_000)
        ]
        for name in ("qwen3-0.6b", "qwen3-32b")
    }
    small, large = ([(e.attention_flops + e.cache_flops) / e.linear_flops for e in ratios[n]] for n in ratios)
    assert small[1] > 10 * small[0]
    assert small[1] > 10 * large[1] > 10


@pytest.mark.parametrize(
    ("retained", "pairs"), [(100, 256 * 100), (600, 88 * (512 + 44) + 168 * 600), (4000, 256 * 640)]
)
def test_sparse_attention_reads_no_more_than_it_keeps(retained, pairs):
    model, graph = get_model("qwen3-0.6b"), graph_of("majority-vote", PROBLEM, num_samples=1)
    found = equivalent(model, graph, 1.0, sparsity=Sparsity(kept_tokens=retained))
    assert found.cache_flops == pytest.approx(28 * 2 * 2 * 8 * 128 * pairs)
    searched = equivalent(model, graph, 1.0, sparsity=Sparsity(kept_tokens=retained, block_tokens=16))
    assert searched.cache_flops - found.cache_flops == pytest.approx(28 * 2 * 2 * 8 * 128 * 256 * 640 / 32)


def test_operations_count_what_is_read_and_written_by_each_model():
    graph, models = graph_of("best-of-n", PROBLEM, num_samples=4), {"solver": get_model("llama-3.2-1b")}
    one = 2 * models["solver"].num_active_parameters
    assert answer_flops(graph, models) == one * (512 + 4 * 256)
    assert answer_flops(graph, {"verifier": models["solver"]}) == one * (512 + 4 * 256)
