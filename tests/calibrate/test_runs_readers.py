"""Each tool's results, small and made by hand in its layout, become rows of a measured table in SI units."""

import gzip
import json

import pytest
from run_rows import near, row

from orrery.base.errors import ScenarioError
from orrery.calibrate.runs.read import read_runs

SERVE = {
    "date": "20260305-101500",
    "backend": "vllm",
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "num_prompts": 400,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 32,
    "duration": 50.0,
    "completed": 400,
    "failed": 0,
    "total_input_tokens": 409600,
    "total_output_tokens": 51200,
    "request_throughput": 8.0,
    "output_throughput": 1024.0,
    "total_token_throughput": 9216.0,
    "mean_ttft_ms": 120.0,
    "median_ttft_ms": 110.0,
    "std_ttft_ms": 30.0,
    "p99_ttft_ms": 260.0,
    "mean_tpot_ms": 30.0,
    "median_tpot_ms": 29.0,
    "p99_tpot_ms": 41.0,
    "p99.9_tpot_ms": 44.0,
    "mean_itl_ms": 30.0,
    "mean_e2el_ms": 3930.0,
}


def test_vllm_bench_serve_in_seconds_with_its_percentiles(save):
    found = row(read_runs([save(SERVE)], {"device": "h100-sxm", "tp": "1"}))
    assert (found["kind"], found["mode"], found["concurrency"], found["num_requests"]) == (
        "serving",
        "closed",
        "32",
        "400",
    )
    assert near(found["ttft_s"], 0.12)
    assert near(found["ttft_s_p50"], 0.11)
    assert near(found["ttft_s_p99"], 0.26)
    assert near(found["tpot_s_p99.9"], 0.044)
    assert near(found["latency_s"], 3.93)
    assert near(found["input_tokens"], 1024)
    assert near(found["output_tokens"], 128)
    assert near(found["total_tokens_per_s"], 9216)
    assert found["measured_date"] == "2026-03-05"
    assert found["device"] == "h100-sxm"
    assert "engine" not in found  # the backend is a protocol that many engines speak


def test_all_at_once_is_offline_and_keeps_no_request_latency(save):
    found = row(read_runs([save(SERVE | {"max_concurrency": None})], {"device": "h100-sxm"}))
    assert found["mode"] == "offline"
    assert not [c for c in found if c.startswith("latency_s")]


def test_a_rate_below_its_limit_is_open_and_one_that_fills_it_is_closed(save):
    open_run = SERVE | {"request_rate": 2.0, "request_throughput": 2.0, "duration": 200.0, "burstiness": 0.5}
    found = row(read_runs([save(open_run)], {"device": "h100-sxm"}))
    assert (found["mode"], found["request_rate_per_s"]) == ("open", "2")
    assert "burstiness 0.5" in found["run_note"]
    assert row(read_runs([save(SERVE | {"request_rate": 9.0})], {"device": "h100-sxm"}))["mode"] == "closed"


def test_lines_of_sglang_are_a_run_each(save):
    one = {
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": 4.0,
        "max_concurrency": None,
        "duration": 25.0,
        "completed": 100,
        "total_input_tokens": 102400,
        "total_output_tokens": 25600,
        "request_throughput": 4.0,
        "output_throughput": 1024.0,
        "mean_e2e_latency_ms": 2100.0,
        "mean_ttft_ms": 60.0,
        "mean_tpot_ms": 8.0,
        "median_itl_ms": 7.9,
    }
    lines = "\n".join(json.dumps(one | {"request_rate": r}) for r in (4.0, 8.0))
    table = read_runs([save(lines, "out.jsonl")], {"device": "h100-sxm", "model": "llama-3.1-8b"})
    assert table.columns["request_rate_per_s"] == ["4", "8"]
    assert row(table)["engine"] == "sglang"
    assert near(row(table)["latency_s"], 2.1)


def test_spread_of_lengths_comes_from_a_detailed_file(save):
    found = row(read_runs([save(SERVE | {"input_lens": [1000, 1048], "output_lens": [128, 128]})], {}))
    assert near(found["input_tokens_std"], 24)
    assert float(found["output_tokens_std"]) == 0


def test_vllm_bench_throughput_needs_its_lengths(save):
    path = save(
        {
            "elapsed_time": 40.0,
            "num_requests": 1000,
            "total_num_tokens": 1152000,
            "requests_per_second": 25.0,
            "tokens_per_second": 28800.0,
        }
    )
    with pytest.raises(ScenarioError, match="--input-tokens 1024"):
        read_runs([path], {})
    with pytest.raises(ScenarioError, match=r"1152\.0 each"):
        read_runs([path], {"input_tokens": "512", "output_tokens": "128"})
    found = row(read_runs([path], {"input_tokens": "1024", "output_tokens": "128"}))
    assert (found["mode"], found["engine"]) == ("offline", "vllm")
    assert near(found["total_tokens_per_s"], 28800)
    assert near(found["requests_per_s"], 25)


def test_vllm_bench_latency_is_a_static_batch(save):
    path = save({"avg_latency": 1.5, "latencies": [1.4, 1.5, 1.6], "percentiles": {"50": 1.5}})
    message = {"batch": "8", "input_tokens": "32", "output_tokens": "128", "model": "llama-3.1-8b"}
    found = row(read_runs([path], message))
    assert (found["mode"], found["batch_size"], found["latency_s"], found["latency_s_p50"]) == (
        "static",
        "8",
        "1.5",
        "1.5",
    )
    with pytest.raises(ScenarioError, match="--batch 8"):
        read_runs([path], {})


def test_passes_of_answers_become_steps_and_passes_of_prompts_are_left_out(save):
    one = {"query_len": 1, "kv_len": 8192, "num_draft_tokens": 0}
    cases = [
        {"case": "decode=32*1@8192", "requests": [one] * 32, "median_us": 9500.0, "ranks": []},
        {"case": "prefill=1*512", "requests": [{"query_len": 512, "kv_len": 512}], "median_us": 5000.0, "ranks": []},
    ]
    table = read_runs([save(cases)], {})
    assert len(table) == 1
    assert near(row(table)["tpot_s"], 0.0095)
    assert (row(table)["batch_size"], row(table)["input_tokens"]) == ("32", "8191")
    assert "1 passes" in row(table)["run_note"]


def distribution(mean, **more):
    points = {"p50": mean, "p90": mean * 1.2, "p95": mean * 1.3, "p99": mean * 1.5}
    return {"successful": {"mean": mean, "median": mean, "std_dev": 0.0, "percentiles": points, **more}}


def guidellm_metrics(**more):
    return {
        "requests_per_second": distribution(3.0),
        "request_latency": distribution(2.5),
        "prompt_token_count": distribution(512.0),
        "output_token_count": distribution(128.0),
        "time_to_first_token_ms": distribution(80.0),
        "inter_token_latency_ms": distribution(19.0),
        "time_per_output_token_ms": distribution(20.0),
        "output_tokens_per_second": distribution(384.0),
        "tokens_per_second": distribution(1920.0),
        **more,
    }


def test_guidellm_of_today(save):
    totals = {"successful": 90, "errored": 0, "incomplete": 3, "total": 93}
    report = {
        "metadata": {"version": 2, "guidellm_version": "0.8.1"},
        "config": {},
        "benchmarks": [
            {
                "type_": "generative_benchmark",
                "config": {"strategy": {"type_": "concurrent", "streams": 8}, "backend": {"model": "Qwen/Qwen3-8B"}},
                "metrics": guidellm_metrics(request_totals=totals),
            }
        ],
    }
    found = row(read_runs([save(report)], {"device": "l40s"}))
    assert (found["mode"], found["concurrency"], found["model"], found["num_requests"]) == (
        "closed",
        "8",
        "Qwen/Qwen3-8B",
        "90",
    )
    assert near(found["tpot_s"], 0.019)  # its inter-token latency; its own TPOT counts the first token
    assert near(found["ttft_s_p99"], 0.12)
    assert near(found["latency_s"], 2.5)
    assert near(found["output_tokens_per_s"], 384)


def test_guidellm_of_its_first_layout(save):
    def benchmark(strategy):
        return {
            "args": {"strategy": strategy},
            "run_stats": {},
            "worker": {"backend_model": "Qwen/Qwen3-8B"},
            "request_totals": {"successful": 50, "errored": 1, "incomplete": 0},
            "metrics": guidellm_metrics(output_tokens_per_second=distribution(50.0)),
        }

    loads = [{"type_": "synchronous"}, {"type_": "constant", "rate": 3.0}, {"type_": "throughput"}]
    table = read_runs([save({"benchmarks": [benchmark(x) for x in loads]})], {})
    assert table.columns["mode"] == ["closed", "open", "offline"]
    assert "1 of 51 requests failed" in row(table)["run_note"]
    assert "evenly spaced" in row(table, 1)["run_note"]
    assert "latency_s" not in row(table, 2)


def test_a_later_layout_of_guidellm_is_refused_in_words(save):
    with pytest.raises(ScenarioError, match=r"guidellm 0\.2 to 0\.8"):
        read_runs([save({"metadata": {"version": 9}, "benchmarks": [{"outcome": {}}]})], {})


def aiperf(**more):
    def metric(unit, avg):
        return {"unit": unit, "avg": avg, "p50": avg, "p90": avg, "p95": avg, "p99": 2 * avg, "std": 0.0}

    return {
        "schema_version": "1.4",
        "request_throughput": metric("requests/sec", 5.0),
        "request_latency": metric("ms", 2000.0),
        "time_to_first_token": metric("ms", 100.0),
        "inter_token_latency": metric("ms", 15.0),
        "output_token_throughput": metric("tokens/sec", 640.0),
        "input_sequence_length": metric("tokens", 1000.0),
        "output_sequence_length": metric("tokens", 128.0),
        "request_count": metric("requests", 200.0),
        **more,
    }


def test_aiperf_of_today_and_its_older_configuration(save):
    phases = [
        {"name": "warmup", "type": "concurrency", "concurrency": 2},
        {"name": "profiling", "type": "concurrency", "concurrency": 10},
    ]
    new = {"models": {"items": [{"name": "Qwen/Qwen3-8B"}]}, "phases": phases}
    old = {"endpoint": {"model_names": ["Qwen/Qwen3-8B"]}, "loadgen": {"request_rate": 5.0}}
    table = read_runs([save(aiperf(input_config=new), "a.json"), save(aiperf(input_config=old), "b.json")], {})
    assert table.columns["mode"] == ["closed", "open"]
    assert table.columns["model"] == ["Qwen/Qwen3-8B"] * 2
    assert (row(table)["concurrency"], row(table, 1)["request_rate_per_s"]) == ("10", "5")
    assert near(row(table)["tpot_s"], 0.015)
    assert near(row(table)["ttft_s_p99"], 0.2)
    assert near(row(table)["latency_s"], 2.0)


def test_an_unfinished_run_of_aiperf_is_refused(save):
    with pytest.raises(ScenarioError, match="watchdog"):
        read_runs([save(aiperf(is_complete=False, incomplete_reason="watchdog fired"))], {"concurrency": "10"})


def test_aiperf_request_by_request(save):
    def line(i, phase="profiling", error=None):
        start = i * 1_000_000_000
        values = {
            "time_to_first_token": (100.0 + i, "ms"),
            "inter_token_latency": (10.0, "ms"),
            "request_latency": (2.0, "sec"),
            "input_sequence_length": (500, "tokens"),
            "output_sequence_length": (100, "tokens"),
        }
        return {
            "metadata": {"benchmark_phase": phase, "request_start_ns": start, "request_end_ns": start + 2_000_000_000},
            "metrics": {k: {"value": v, "unit": u} for k, (v, u) in values.items()},
            "error": error,
        }

    lines = [line(0, "warmup"), *(line(i) for i in range(40)), line(40, error={"code": 500})]
    table = read_runs([save("\n".join(map(json.dumps, lines)), "profile_export.jsonl")], {})
    found = row(table)
    assert found["num_requests"] == "40"
    assert (found["mode"], found["concurrency"]) == ("closed", "2")  # two seconds each, one a second
    assert near(found["ttft_s"], 0.1195)
    assert near(found["latency_s"], 2.0)
    assert "1 of 41 requests failed" in found["run_note"]
    message = read_runs([save("\n".join(map(json.dumps, lines)), "profile_export.jsonl")], {"rate": "1"})
    assert row(message)["mode"] == "open"


def test_llmperf_has_its_tpot_worked_out(save):
    summary = {
        "version": "2023-08-31",
        "model": "01-ai/Yi-1.5-34B",
        "mean_input_tokens": 550,
        "num_concurrent_requests": 16,
        "results_ttft_s_mean": 0.5,
        "results_ttft_s_quantiles_p99": 0.9,
        "results_end_to_end_latency_s_mean": 10.4,
        "results_inter_token_latency_s_mean": 0.104,
        "results_number_input_tokens_mean": 550.0,
        "results_number_output_tokens_mean": 100.0,
        "results_number_output_tokens_stddev": 3.0,
        "results_num_completed_requests": 112,
        "results_number_errors": 0,
        "results_mean_output_throughput_token_per_s": 150.0,
        "results_num_completed_requests_per_min": 90.0,
    }
    found = row(read_runs([save(summary)], {"device": "a10g", "devices": "4"}))
    assert near(found["tpot_s"], 0.1)  # (10.4 - 0.5) / 99; its inter-token latency counts the first token
    assert near(found["requests_per_s"], 1.5)
    assert (found["mode"], found["concurrency"], found["num_devices"]) == ("closed", "16", "4")


def scrape(requests, ttft_sum, buckets, preemptions=0.0):
    labels = 'engine="0",model_name="Qwen/Qwen3-8B"'
    lines = [
        "# HELP vllm:time_to_first_token_seconds Histogram of time to first token in seconds.",
        "# TYPE vllm:time_to_first_token_seconds histogram",
        *(f'vllm:time_to_first_token_seconds_bucket{{{labels},le="{le}"}} {n}' for le, n in buckets.items()),
        f"vllm:time_to_first_token_seconds_count{{{labels}}} {requests}",
        f"vllm:time_to_first_token_seconds_sum{{{labels}}} {ttft_sum}",
        f"vllm:request_time_per_output_token_seconds_count{{{labels}}} {requests}",
        f"vllm:request_time_per_output_token_seconds_sum{{{labels}}} {0.02 * requests}",
        f"vllm:prompt_tokens_total{{{labels}}} {512.0 * requests}",
        f"vllm:generation_tokens_total{{{labels}}} {128.0 * requests}",
        f'vllm:request_success_total{{{labels},finished_reason="stop"}} {requests / 2}',
        f'vllm:request_success_total{{{labels},finished_reason="length"}} {requests / 2}',
        f"vllm:num_preemptions_total{{{labels}}} {preemptions}",
        f"vllm:num_requests_running{{{labels}}} 7.0",
    ]
    return "\n".join(lines) + "\n"


def test_two_scrapes_are_the_interval_between_them(save):
    early = save(scrape(100, 10.0, {"0.1": 50, "0.25": 100, "+Inf": 100}), "a.prom")
    late = save(scrape(300, 50.0, {"0.1": 50, "0.25": 300, "+Inf": 300}, preemptions=4), "b.prom")
    with pytest.raises(ScenarioError, match="--concurrency 32"):
        read_runs([early, late], {})
    found = row(read_runs([late, early], {"concurrency": "8", "seconds": "100"}))
    assert near(found["ttft_s"], 0.2)  # (50 - 10) / 200
    assert near(found["ttft_s_p50"], 0.1 + 0.5 * 0.15)  # all 200 fell into the second bucket, half of the way through
    assert near(found["tpot_s"], 0.02)
    assert near(found["requests_per_s"], 2.0)
    assert near(found["output_tokens_per_s"], 256.0)
    assert (found["engine"], found["mode"], found["model"]) == ("vllm", "closed", "Qwen/Qwen3-8B")
    assert "4 preemptions" in found["run_note"]


def test_one_scrape_is_everything_since_the_start(save):
    found = row(read_runs([save(scrape(100, 10.0, {"0.1": 50, "+Inf": 100}), "a.prom")], {"rate": "2"}))
    assert near(found["ttft_s"], 0.1)
    assert near(found["ttft_s_p50"], 0.1)
    assert "ttft_s_p99" not in found  # it lies in the open bucket
    assert "requests_per_s" not in found  # a scrape has no clock
    assert found["mode"] == "open"


def test_a_measured_table_keeps_its_columns(save, tmp_path):
    header = "kind,model,device,mode,input_tokens,output_tokens,concurrency,tpot_s,mine"
    text = f"{header}\nserving,llama-3.1-8b,,closed,512,64,4,0.01,x\n"
    found = row(read_runs([save(text, "runs.csv")], {"device": "l40s"}))
    assert (found["mine"], found["device"], found["tpot_s"]) == ("x", "l40s", "0.01")
    packed = tmp_path / "runs.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert len(read_runs([packed, save(SERVE)], {"device": "l40s"})) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"failed": 100, "completed": 300}, "100 of 400 requests failed"),
        ({"completed": 0, "failed": 0, "num_prompts": 0}, "no request was completed"),
        ({"duration": 0.0}, "a duration of 0 s"),
        ({"mean_tpot_ms": 95_000.0}, "cannot be right"),
        ({"output_throughput": 102400.0}, "another unit"),
        ({"mean_e2el_ms": 3.93}, "less than ttft_s"),
    ],
)
def test_runs_that_went_wrong_are_refused_in_words(save, change, words):
    with pytest.raises(ScenarioError, match=words):
        read_runs([save(SERVE | change)], {"device": "h100-sxm"})


def test_a_few_failed_requests_are_noted(save):
    found = row(read_runs([save(SERVE | {"failed": 4})], {"device": "h100-sxm"}))
    assert "4 of 404 requests failed" in found["run_note"]


def test_files_that_are_nobodys(save, tmp_path):
    with pytest.raises(ScenarioError, match="not whole"):
        read_runs([save(json.dumps(SERVE)[:-40])], {})
    with pytest.raises(ScenarioError, match=r"of no tool that is known .*Its keys: answer"):
        read_runs([save({"answer": 42})], {})
    with pytest.raises(ScenarioError, match="is empty"):
        read_runs([save("", "empty.txt")], {})
    with pytest.raises(ScenarioError, match="no file"):
        read_runs([tmp_path / "missing.json"], {})
    with pytest.raises(ScenarioError, match="is a folder"):
        read_runs([tmp_path], {})
    with pytest.raises(ScenarioError, match="No file was given"):
        read_runs([], {})


def test_a_flag_that_contradicts_the_log_is_refused_and_one_that_agrees_is_not(save):
    path = save(SERVE)
    with pytest.raises(ScenarioError, match=r"concurrency = 32, but --concurrency says 64"):
        read_runs([path], {"concurrency": "64"})
    with pytest.raises(ScenarioError, match="--model says"):
        read_runs([path], {"model": "qwen3-8b"})
    with pytest.raises(ScenarioError, match="input_tokens = 1024"):
        read_runs([path], {"input_tokens": "2048"})
    assert len(read_runs([path], {"model": "llama-3.1-8b", "input_tokens": "1000", "concurrency": "32"})) == 1


def test_a_served_name_is_replaced_by_the_model_that_the_user_names(save):
    found = row(read_runs([save(SERVE | {"model_id": "my-assistant"})], {"model": "llama-3.1-8b"}))
    assert found["model"] == "llama-3.1-8b"


def test_settings_are_checked_together(save):
    with pytest.raises(ScenarioError) as error:
        read_runs([save(SERVE)], {"devicee": "h100", "tp": "two", "concurrency": "0"})
    assert "did you mean 'device'" in str(error.value)
    assert "tp: got 'two'" in str(error.value)
    assert "concurrency: got '0'" in str(error.value)


def test_patterns_are_spelled_out(save, tmp_path):
    save(SERVE, "a.json")
    save(SERVE, "b.json")
    assert len(read_runs([tmp_path / "*.json"], {"device": "h100-sxm"})) == 2
    with pytest.raises(ScenarioError, match="No file is called"):
        read_runs([tmp_path / "*.jsonl"], {})
