"""llmperf's ``*_summary.json`` of ``token_benchmark_ray.py``: keys ``results_<metric>_{mean,stddev,quantiles_pNN}``.

Its inter-token latency divides the whole request by all tokens, the first included, so it is no TPOT; that is worked
out from latency, first token and length, for the mean alone.
"""

from collections.abc import Sequence

from orrery.calibrate.runs.log import Log, number, word
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings, arrivals, check_requests

TIMES = {"ttft_s": "ttft_s", "latency_s": "end_to_end_latency_s"}
PERCENTILES = ("p50", "p90", "p95", "p99")


def _recognise(log: Log) -> bool:
    return {"results_ttft_s_mean", "num_concurrent_requests"} <= log.one.keys()


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    return [_run(log) for log in logs]


def _run(log: Log) -> ParsedRun:
    run, x = ParsedRun(), log.one
    completed, failed = number(x, "results_num_completed_requests"), number(x, "results_number_errors")
    run.notes += check_requests(log.name, completed, failed if failed > 0 else 0.0)
    run.add_note("kind", "serving")
    run.add_note("model", word(x, "model"))
    run.add_note("num_requests", completed)
    for side in ("input", "output"):
        run.add_note(f"{side}_tokens", number(x, f"results_number_{side}_tokens_mean", f"mean_{side}_tokens"))
        run.add_note(f"{side}_tokens_std", number(x, f"results_number_{side}_tokens_stddev"))
    arrivals(run, number(x, "num_concurrent_requests"), float("nan"))
    for column, key in TIMES.items():
        run.add_note(column, number(x, f"results_{key}_mean"))
        for percentile in PERCENTILES:
            run.add_note(f"{column}_{percentile}", number(x, f"results_{key}_quantiles_{percentile}"))
    tokens = number(x, "results_number_output_tokens_mean")
    if tokens > 1:
        latency_s, ttft_s = number(x, "results_end_to_end_latency_s_mean"), number(x, "results_ttft_s_mean")
        run.add_note("tpot_s", (latency_s - ttft_s) / (tokens - 1.0))
    run.add_note("output_tokens_per_s", number(x, "results_mean_output_throughput_token_per_s"))
    run.add_note("requests_per_s", number(x, "results_num_completed_requests_per_min") / 60.0)
    return run


READER = Reader(name="llmperf", recognise=_recognise, read=_read)
