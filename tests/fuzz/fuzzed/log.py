"""Result files of benchmarks and training runs, as `orrery calibrate runs` and `compare` read them."""

import json
from pathlib import Path

from orrery.base.errors import OrreryError
from orrery.calibrate.runs.read import read_runs

NAME = "result.json"
SAID = {"model": "llama-3.1-8b", "device": "h100-sxm", "engine": "vllm"}
SEEDS = (
    json.dumps(
        {
            "backend": "vllm",
            "model_id": "llama",
            "num_prompts": 10,
            "request_rate": 1.0,
            "max_concurrency": None,
            "duration": 10.0,
            "completed": 10,
            "total_input_tokens": 1000,
            "total_output_tokens": 100,
            "request_throughput": 1.0,
            "output_throughput": 10.0,
            "mean_ttft_ms": 20.0,
            "mean_tpot_ms": 8.0,
        }
    ).encode(),
    b"kind,device,model,input_tokens,output_tokens,concurrency,ttft_s\nserving,h100-sxm,llama-3.1-8b,128,16,4,0.02\n",
    b" iteration       10/     100 | consumed samples: 640 | elapsed time per iteration (ms): 512.3 | "
    b"learning rate: 1.0E-04 | global batch size: 64 | lm loss: 9.1E+00 |\n",
    b" iteration       10/     100 | consumed samples: 640 | elapsed time per iteration (ms): 51e | learning rate: 1e |\n",
    b"vllm:time_to_first_token_seconds_sum 1.5.2\n",
    b"step: 10 loss: 8.1 memory: 4.0.1GiB(50%) tps: , tflops: 300.1 mfu: 30.2%\n",
    b'{"avg_latency": 0.5, "latencies": [null, "a", 1e400, []], "percentiles": {}}',
    b"vllm:time_to_first_token_seconds_sum 1.5\nvllm:time_to_first_token_seconds_count 10\n",
    b"step: 10 loss: 8.1 memory: 40.1GiB(50%) tps: 6,000 tflops: 300.1 mfu: 30.2%\n",
    json.dumps({"avg_latency": 0.5, "latencies": [0.5, 0.5], "percentiles": {"50": 0.5}}).encode(),
)
WORDS = (
    b"null",
    b"true",
    b"NaN",
    b"1e999",
    b"[]",
    b"{}",
    b"-1",
    b"\n",
    b'_bucket{le="+Inf"}',
    b"elapsed time",
    b"nan",
    b"mfu:",
    b'"benchmarks"',
    b'"results"',
    b'"records"',
    b'"input_lens"',
    b'"ttfts"',
    b"9" * 400,
)
REFUSALS = (OrreryError,)


def read(path: Path) -> None:
    """The runs of a file."""
    read_runs([path], SAID)
