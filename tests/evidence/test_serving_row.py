"""How a row of a serving table is read: what it states, and what its blanks take."""

from dataclasses import replace

import pytest

from orrery.base.errors import ScenarioError
from orrery.evidence.row import Row
from orrery.evidence.serving_row import read_row
from orrery.serving.estimate import estimate
from orrery.serving.uncached import without_cache

PLAIN = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "num_devices": "1",
    "engine": "vllm",
    "mode": "static",
    "input_tokens": "128",
    "output_tokens": "128",
    "batch_size": "4",
}


def read(**cells):
    row = Row(PLAIN | cells)
    deployment, workload = read_row(row)
    return deployment, workload, row.assumed


@pytest.mark.parametrize(
    ("cells", "layout"),
    [
        ({"num_devices": "8"}, "tp8"),
        ({"num_devices": "8", "tp": "2", "pp": "4"}, "tp2 pp4"),
        ({"num_devices": "8", "tp": "2"}, "tp2 dp4"),
        ({"num_devices": "", "tp": "4"}, "tp4"),
        ({"num_devices": "4", "engine": "llama.cpp"}, "tp1 pp4"),
        ({"num_devices": "8", "tp": "8", "dp": "8", "ep": "8", "model": "deepseek-v3"}, "tp1 dp8 ep8"),
        ({"num_devices": "8", "tp": "8", "dp": "8", "model": "deepseek-v3"}, "tp1 dp8 etp8"),  # a part of each expert
    ],
)
def test_devices_are_cut_as_stated_or_by_the_default(cells, layout):
    assert str(read(**cells)[0].layout) == layout


@pytest.mark.parametrize(("engine", "each"), [("sglang", 64), ("vllm", 256)])
def test_a_limit_of_sequences_is_as_the_engines_flag_states_it(engine, each):
    """256 of a server of four attention ranks with SGLang, of each rank with vLLM."""
    cells = {"num_devices": "4", "tp": "4", "dp": "4", "ep": "4", "model": "deepseek-v3", "device": "b200"}
    deployment, _, _ = read(engine=engine, max_num_seqs="256", **cells)
    assert (str(deployment.layout), deployment.max_num_seqs) == ("tp1 dp4 ep4", each)


def test_a_note_may_say_that_attention_ran_data_parallel():
    note = "MoE models ran with attention DP switched on"
    experts = read(model="qwen3-30b-a3b", num_devices="4", tp="4", note=note)
    assert str(experts[0].layout) == "tp1 dp4 ep4"
    assert any(a.startswith("dp and ep: 4") for a in experts[2])
    assert str(read(num_devices="4", tp="4", note=note)[0].layout) == "tp4", "a dense model has nothing to spread"


def test_contradicting_degrees_are_refused():
    with pytest.raises(ScenarioError, match="num_devices is not tp x pp x dp"):
        read(num_devices="8", tp="3")


def test_blank_formats_follow_the_checkpoint_and_the_engine():
    deployment, _, assumed = read()
    assert (deployment.formats.weights, deployment.formats.kv) == ("bf16", "bf16")
    assert "weights_format: bf16" in assumed
    quantised, _, _ = read(weights_format="fp8", engine="tensorrt-llm")
    assert (quantised.formats.activations, quantised.formats.kv) == ("fp8", "fp8")
    int4, _, _ = read(weights_format="int4")
    assert (int4.formats.weights, int4.formats.activations) == ("int4_weight_only", "bf16")


def test_a_closed_loop_runs_ten_times_its_concurrency():
    _, workload, assumed = read(mode="closed", concurrency="16")
    assert workload.num_requests == 160
    assert "num_requests: 10 x concurrency" in assumed


def test_a_prompt_chunk_is_the_token_budget():
    assert read(prompt_chunk_tokens="64")[0].max_num_batched_tokens == 64


SIZED, OTHER = "SemiAnalysisAI/InferenceX, a table", "https://blog.example/post"
CLOSED = {"mode": "closed", "concurrency": "16", "batch_size": "", "engine_version": "0.10.0"}


@pytest.mark.parametrize(("source", "budget"), [("", 128 + 16), (SIZED, 128 + 16), (OTHER, 0)])
def test_only_scripts_that_size_the_token_budget_by_the_traffic_are_taken_to(source, budget):
    """The longest prompt and a token of each of 16; others' runs have the engine's default, which 0 stands for."""
    assert read(**CLOSED, source=source)[0].max_num_batched_tokens == budget


def test_the_same_cells_give_the_same_deployment():
    assert read()[0] is read(input_tokens="999")[0]


def test_a_drafting_head_is_read_with_published_acceptances():
    head = read(draft="mtp:2")[0].draft_head
    assert head is not None
    assert (head.method, head.acceptance_fracs) == ("mtp", pytest.approx((0.85, 0.7225)))
    assert read(draft="none")[0].draft_head is read()[0].draft_head is None
    with pytest.raises(ScenarioError, match="is not known; write mtp, eagle, eagle3, or mtp:2"):
        read(draft="medusa")


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (
            {"prefill_workers": "1"},
            "prompts and answers have workers of their own: no single deployment describes them",
        ),
        (
            {"technique": "speculative_decoding"},
            "technique speculative_decoding needs facts that no column of the table holds",
        ),
        ({"mode": "open"}, "request_rate_per_s is blank"),
        ({"mode": "offline", "output_tokens": ""}, "output_tokens is blank"),
        ({"mode": "closed", "concurrency": "0"}, "concurrency is zero"),
        ({"batch_size": "many"}, "batch_size is not a number"),
        ({"input_tokens": "0", "output_tokens": "0"}, "input_tokens and output_tokens are zero"),
    ],
)
def test_what_cannot_be_read_says_why(cells, reason):
    with pytest.raises(ScenarioError, match=f"^{reason}$"):
        read(**cells)


def test_a_column_that_was_meant_is_named():
    with pytest.raises(ScenarioError, match="concurrency is blank; the nearest column is 'concurrent'"):
        read(mode="closed", concurrent="8")


def test_degrees_that_count_cores_are_turned_into_devices():
    """Twelve Inferentia2 chips of two cores each, tensor parallel over 24 cores."""
    deployment, _, assumed = read(
        model="meta-llama/Llama-2-7b-hf", device="inferentia2", engine="neuron", num_devices="12", tp="24", pp="1"
    )
    assert deployment.layout.tp == deployment.layout.num_devices == 12
    assert "tp: counts cores, 2 to a device" in assumed


def test_an_engine_that_loads_quantised_weights_is_taken_to():
    assert read(engine="ollama", weights_format="")[0].formats.weights == "q4_k_m"


def test_a_run_without_a_cache_is_the_sum_of_its_prompts():
    """Output of three tokens after 100: prompts of 100, 101 and 102 tokens, one after the other."""
    deployment, workload, _ = read(technique="no_kv_cache", input_tokens="100", output_tokens="3")
    assert not workload.keeps_cache
    prompts = [
        estimate(deployment, replace(workload, input_tokens=n, output_tokens=1.0, keeps_cache=True)).latency_s
        for n in (100.0, 101.0, 102.0)
    ]
    found = without_cache(deployment, workload)
    assert found.latency_s == pytest.approx(sum(prompts))
    assert found.ttft_s == pytest.approx(prompts[0])
    assert found.tpot_s == pytest.approx((prompts[1] + prompts[2]) / 2)
    assert found.total_tokens_per_s == pytest.approx(103 * workload.batch_size / sum(prompts))


@pytest.mark.parametrize(
    ("cells", "spreads"),
    [
        ({"dataset": "sharegpt"}, (1.69 * 200, 0.72 * 100)),
        ({"dataset": "ShareGPT", "output_tokens_std": "50"}, (0.0, 50.0)),
        ({"dataset": "random"}, (0.0, 0.0)),
        ({}, (0.0, 0.0)),
    ],
)
def test_lengths_spread_as_those_of_the_data_set_unless_the_row_says_how(cells, spreads):
    """Prompts of 200 and answers of 100 in the mean, drawn from conversations: 1.69 and 0.72 times as much around."""
    lengths = {"mode": "offline", "input_tokens": "200", "output_tokens": "100", "num_requests": "50"}
    _, workload, assumed = read(**lengths, **cells)
    assert (workload.input_tokens_std, workload.output_tokens_std) == pytest.approx(spreads)
    assert any("data set" in note for note in assumed) == (cells == {"dataset": "sharegpt"})
