"""Runs with traffic are simulated: which requests stand for a row, and what is read off."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.evidence import serving_simulated
from orrery.evidence.check import check_table
from orrery.evidence.row import Row
from orrery.evidence.serving_pools import read_service
from orrery.evidence.serving_row import read_row
from orrery.evidence.serving_simulated import CLIENT_PAUSE_S, ENDLESS, MOST, run, traffic_of
from orrery.evidence.tables import read_table
from orrery.execution.memory import Infeasible

PLAIN = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "num_devices": "1",
    "engine": "vllm",
    "mode": "closed",
    "input_tokens": "512",
    "output_tokens": "32",
    "concurrency": "8",
}
POOLS = {
    "num_devices": "6",
    "concurrency": "16",
    "prefill_workers": "2",
    "prefill_tp": "1",
    "prefill_devices": "2",
    "prefill_batch_size": "1",
    "decode_workers": "1",
    "decode_tp": "4",
    "decode_devices": "4",
    "decode_batch_size": "16",
}


def ran(**cells):
    found = run(*read_service(Row(PLAIN | cells)))
    assert not isinstance(found, Infeasible)
    return found


def test_a_published_recipe_limits_the_decode_workers():
    """63 clients on three workers are 21 each, as the table's column says; the recipe lets each hold 16."""
    cells = PLAIN | {
        "model": "deepseek-ai/DeepSeek-R1-0528",
        "device": "gb200",
        "weights_format": "fp8",
        "engine": "tensorrt-llm",
        "num_devices": "32",
        "input_tokens": "7372.8",
        "output_tokens": "921.6",
        "nominal_input_tokens": "8192",
        "nominal_output_tokens": "1024",
        "concurrency": "63",
        "prefill_workers": "1",
        "prefill_dp": "8",
        "prefill_ep": "8",
        "prefill_devices": "8",
        "prefill_batch_size": "1",
        "decode_workers": "3",
        "decode_tp": "8",
        "decode_dp": "1",
        "decode_ep": "8",
        "decode_devices": "24",
        "decode_batch_size": "21",
    }
    service, _ = read_service(Row(cells))
    assert service.pools[-1].deployment.max_num_seqs == 16
    other, _ = read_service(Row(cells | {"concurrency": "64"}))
    assert other.pools[-1].deployment.max_num_seqs == 21


def test_a_published_script_says_what_a_step_of_prompts_holds():
    """Recipes of TensorRT-LLM let 8,192 tokens of prompts of 1k into a step, eight prompts of 921.6, and 16,384 of 8k,
    two of 7,372.8; the table writes a batch of one. Elsewhere the stated batch counts, in whole prompts."""
    cells = PLAIN | POOLS
    cells |= {"model": "deepseek-ai/DeepSeek-R1-0528", "device": "gb200", "engine": "tensorrt-llm", "concurrency": "64"}
    cells |= {"prefill_tp": "8", "prefill_devices": "16", "decode_tp": "8", "decode_devices": "8", "num_devices": "24"}
    published = {"source": "ai-dynamo/aiconfigurator (published runs)"}

    def limits(**changes):
        service, _ = read_service(Row(cells | changes))
        prompts = service.pools[0].deployment
        return prompts.max_num_batched_tokens, prompts.max_num_seqs

    assert limits(input_tokens="921.6", **published) == (8192, 8)
    assert limits(input_tokens="7372.8", **published) == (16384, 2)
    assert limits(input_tokens="1000", prefill_batch_size="3") == (3000, 3)
    assert limits(input_tokens="1000", model="Qwen/Qwen3-32B", **published) == (1000, 1)


def test_pools_under_an_unknown_load_are_declined():
    with pytest.raises(ScenarioError, match="concurrency is blank"):
        read_service(Row(PLAIN | POOLS | {"concurrency": ""}))


def test_clients_ask_again_once_they_are_answered():
    traffic = traffic_of(*read_service(Row(PLAIN)))
    assert traffic.requests.count == 80
    assert (traffic.requests.after[:8] == -1).all()
    assert (traffic.requests.after[8:] == np.arange(72)).all()
    assert traffic.requests.arrive_s.mean() == pytest.approx(CLIENT_PAUSE_S, rel=0.4)


@pytest.mark.parametrize(
    ("cells", "simulated", "stated"),
    [
        ({"max_num_seqs": "16"}, 160, 160),  # ten for each place in the batch
        ({"max_num_seqs": "16", "num_devices": "2", "dp": "2"}, 200, 320),  # enough to average over
        ({"max_num_seqs": "64"}, 320, 640),  # five rounds of the batch
        ({"max_num_seqs": "16", "num_requests": "1000"}, 200, 1000),
        ({"max_num_seqs": "64", "num_requests": "1000"}, 320, 1000),
        ({"max_num_seqs": "64", "num_requests": "30"}, 30, 30),
        ({"mode": "closed"}, 80, 80),
        ({"mode": "closed", "num_requests": "5"}, 5, 5),
        ({"mode": "open", "request_rate_per_s": "4", "num_requests": "70"}, 70, 70),
        ({"mode": "open", "request_rate_per_s": "4"}, ENDLESS, ENDLESS),
        ({"mode": "open", "request_rate_per_s": "4", "num_requests": "9000"}, MOST, 9000),
    ],
)
def test_as_many_requests_are_simulated_as_tell_how_all_of_them_fare(cells, simulated, stated):
    traffic = traffic_of(*read_service(Row(PLAIN | {"mode": "offline"} | cells)))
    assert not isinstance(traffic, Infeasible)
    assert (traffic.requests.arrive_s.size, traffic.num_requests) == (simulated, stated)


def test_no_more_than_its_clients_are_in_flight():
    run = ran().simulated
    events = np.concatenate([run.arrive_s, run.finish_s])
    change = np.concatenate([np.ones(80), -np.ones(80)])
    order = np.lexsort((change, events))
    assert change[order].cumsum().max() <= 8


def test_lengths_lie_between_bounds_or_have_a_tail():
    even = traffic_of(*read_service(Row(PLAIN | {"input_tokens": "900", "input_tokens_std": "57.7"}))).requests
    assert 798 <= even.input_tokens.min() < 850 < 950 < even.input_tokens.max() <= 1002
    tail = traffic_of(*read_service(Row(PLAIN | {"input_tokens_std": "600"}))).requests
    assert tail.input_tokens.max() > 3 * 512


@pytest.mark.parametrize(
    ("mode", "cells"),
    [
        ("offline", {"num_requests": "3000"}),
        ("closed", {}),
        ("open", {"request_rate_per_s": "4", "num_requests": "200"}),
    ],
)
def test_rates_and_times_agree(mode, cells):
    found = ran(mode=mode, **cells)
    tokens = found.value("output_tokens_per_s")
    assert tokens == pytest.approx(32 * found.value("requests_per_s"))
    assert found.value("total_tokens_per_s") == pytest.approx(17 * tokens)
    if mode != "offline":
        assert found.value("latency_s") == pytest.approx(found.value("ttft_s") + 31 * found.value("tpot_s"))
        assert found.value("itl_s") == pytest.approx(found.value("tpot_s"))


def test_percentiles_are_in_order_and_have_the_means_interval():
    found = ran(mode="open", request_rate_per_s="30", num_requests="400")
    assert found.value("ttft_s_p50") < found.value("ttft_s_p90") < found.value("ttft_s_p99")
    mean, tail = found.value("ttft_s"), found.value("ttft_s_p99")
    assert found.interval("ttft_s_p99", tail).high_80 / tail == pytest.approx(
        found.interval("ttft_s", mean).high_80 / mean
    )


def test_a_long_run_is_cut_short_and_goes_on_at_its_pace(monkeypatch):
    cells = {"mode": "offline", "max_num_seqs": "64", "num_requests": "1500"}
    cut = ran(**cells)
    assert cut.traffic.requests.count == 5 * 64
    monkeypatch.setattr(serving_simulated, "STEADY_ROUNDS", 24)
    whole = ran(**cells)
    assert whole.traffic.requests.count == 1500
    assert cut.value("latency_s") == pytest.approx(whole.value("latency_s"), rel=0.06)
    endless = Row(PLAIN | {"mode": "open", "request_rate_per_s": "1", "num_requests": "100000"})
    assert traffic_of(*read_service(endless)).requests.count == MOST


def test_the_budget_of_a_closed_loop_is_a_prompt_and_its_answers():
    row = Row(PLAIN)
    assert read_row(row)[0].max_num_batched_tokens == 520
    assert "max_num_batched_tokens: the longest prompt + concurrency" in row.assumed
    assert read_row(Row(PLAIN | {"max_num_batched_tokens": "4096"}))[0].max_num_batched_tokens == 4096
    assert read_row(Row(PLAIN | {"input_tokens": "9000"}))[0].max_num_batched_tokens == 0, "never above the default"
    assert read_row(Row(PLAIN | {"engine": "sglang"}))[0].max_num_batched_tokens == 0, "its prompts run alone"
    assert read_row(Row(PLAIN | {"mode": "offline"}))[0].max_num_batched_tokens == 0


def test_public_scripts_look_for_requests_now_and_then():
    def interval(**cells):
        row = Row(PLAIN | {"engine": "sglang", "device": "b200", "concurrency": "16"} | cells)
        found = read_row(row)[0].scheduler_recv_interval
        assert any(x.startswith("scheduler_recv_interval: ") for x in row.assumed) == (found in (10, 30))
        return found

    assert interval() == 30
    assert interval(concurrency="15") == 10
    assert interval(engine_version="0.4.9") == 0, "the option came later"
    assert interval(device="h100-sxm") == 0
    assert interval(mode="offline") == 0
    assert interval(engine="vllm") == 0
    assert interval(scheduler_recv_interval="7") == 7
    with pytest.raises(ScenarioError, match="scheduler_recv_interval is 7, and vllm has no such setting"):
        interval(engine="vllm", scheduler_recv_interval="7")


def test_a_publishers_scripts_send_few_prompts_over_and_over():
    def prompts(**cells):
        row = Row(PLAIN | {"mode": "open", "request_rate_per_s": "4", "num_requests": "200"} | cells)
        found = read_row(row)[1].num_distinct_prompts
        assert ("num_distinct_prompts: 44" in row.assumed) == (found == 44)
        return found

    assert prompts() == 0
    assert prompts(source="inference-sim/blis-training@main:run") == 44
    assert prompts(source="inference-sim/blis-training@main:run", num_distinct_prompts="7") == 7
    assert prompts(source="inference-sim/blis-training@main:run", engine="sglang") == 0


def test_a_prompt_that_was_asked_before_is_in_the_cache():
    cells = {"mode": "open", "request_rate_per_s": "4", "num_requests": "200"}
    new, again = ran(**cells), ran(**cells, num_distinct_prompts="5")
    cached = again.simulated.cached_tokens
    assert (new.simulated.cached_tokens == 0).all()
    assert (cached[20:] == 511 // 16 * 16).all()
    assert again.value("ttft_s") < 0.8 * new.value("ttft_s")


def test_scripts_of_one_model_give_it_more_memory():
    def share(**cells):
        cells = {"model": "MiniMaxAI/MiniMax-M2.5", "device": "b200", "num_devices": "4"} | cells
        return read_row(Row(PLAIN | cells))[0].memory_utilization_frac

    assert share() == 0.95
    assert share(gpu_memory_utilization_frac="0.8") == 0.8
    assert share(device="h200-sxm") == 0.0
    assert share(model="openai/gpt-oss-120b") == 0.0


def test_the_front_end_reads_every_token_of_a_prompt():
    """A lone client: its first token is later by 1e-4 s for each of 512 tokens, its others are not."""
    service, workload = read_service(Row(PLAIN | {"concurrency": "1", "num_requests": "5"}))
    pool = service.pools[0]
    engine = replace(pool.deployment.engine, per_prompt_token_s=pool.deployment.engine.per_prompt_token_s + 1e-4)
    slow = replace(service, pools=(replace(pool, deployment=replace(pool.deployment, engine=engine)),))
    before, after = run(service, workload), run(slow, workload)
    assert not isinstance(before, Infeasible)
    assert not isinstance(after, Infeasible)
    assert after.value("ttft_s") - before.value("ttft_s") == pytest.approx(0.0512, rel=1e-6)
    assert after.value("tpot_s") == pytest.approx(before.value("tpot_s"))


def test_prompts_and_answers_have_pools_of_their_own():
    service, workload = read_service(Row(PLAIN | POOLS))
    prompts, answers = service.pools
    assert (prompts.role, prompts.replicas, str(prompts.deployment.layout)) == ("prompts", 2, "tp1")
    assert (answers.role, answers.replicas, str(answers.deployment.layout)) == ("answers", 1, "tp4")
    assert prompts.deployment.max_num_batched_tokens == 512
    assert answers.deployment.max_num_seqs == 16
    assert service.is_same_node, "six devices stand in one machine"
    assert workload.concurrency == 16


def test_workers_of_their_own_keep_prompts_out_of_answers():
    apart = run(*read_service(Row(PLAIN | POOLS)))
    mixed = ran(num_devices="4", concurrency="16")
    assert apart.value("tpot_s") < mixed.value("tpot_s")


def test_workers_must_share_their_devices_evenly():
    with pytest.raises(ScenarioError, match="decode_devices is not a multiple of decode_workers"):
        read_service(Row(PLAIN | POOLS | {"decode_workers": "3"}))


def test_a_table_states_percentiles_and_they_are_predicted(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(
        "kind,model,device,num_devices,engine,mode,input_tokens,output_tokens,concurrency,ttft_s,ttft_s_p99,batch_size\n"
        "serving,llama-3.1-8b,h100-sxm,1,vllm,closed,512,32,8,0.1,0.3,\n"
        "serving,llama-3.1-8b,h100-sxm,1,vllm,static,512,32,,0.1,0.3,8\n"
    )
    answers = check_table(read_table(path)).answers
    assert np.isfinite(answers.predicted["ttft_s"]).all()
    assert np.isfinite(answers.predicted["ttft_s_p99"]).tolist() == [True, False]
    assert answers.declined == {}
