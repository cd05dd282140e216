"""Load generators that others wrote, unchanged, against the emulator: what they measure is what ``simulate`` says.

They are found by ORRERY_AIPERF and ORRERY_GUIDELLM, or on the path; tools/checks/clients.sh installs them.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agreement import Timed, assert_agrees, lags_of, late_s, prompt, served

SCENARIO = {"model": "llama-3.1-8b", "device": "h100-sxm"}
SPEED = 0.2  # what the clients themselves cost weighs a fifth
NUM_REQUESTS, NUM_STREAMS, NUM_TOKENS = 40, 4, 48

TOKENIZER = """
import json, pathlib, sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
to = pathlib.Path(sys.argv[1])
made = Tokenizer(models.BPE())
made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
letters = pre_tokenizers.ByteLevel.alphabet()
trainer = trainers.BpeTrainer(vocab_size=1000, special_tokens=["<s>", "</s>"], initial_alphabet=letters)
made.train_from_iterator(sys.stdin.read().splitlines(), trainer)
made.save(str(to / "tokenizer.json"))
about = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
(to / "tokenizer_config.json").write_text(json.dumps(about))
"""

pytestmark = pytest.mark.slow


def client(name):
    """Where a client is installed."""
    found = os.environ.get(f"ORRERY_{name.upper()}") or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed; tools/checks/clients.sh does that")
    return Path(found)


def run(*words):
    """A client to its end."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture
def tokenizer(tmp_path):
    """``tokenizer(client)``: a small tokeniser on disk; both clients want one, and none is to be fetched."""

    def make(path):
        message = "\n".join(prompt(seed, 200) for seed in range(50))
        subprocess.run([path.parent / "python", "-c", TOKENIZER, tmp_path], input=message, text=True, check=True)
        return tmp_path

    return make


@pytest.fixture
def url():
    with served(SCENARIO, "--speed", str(SPEED), "--served-model-name", "llama") as found:
        yield found


def test_aiperf(url, tokenizer, tmp_path):
    aiperf = client("aiperf")
    before = lags_of(url)
    run(
        aiperf,
        "profile",
        "--model",
        "llama",
        "--tokenizer",
        tokenizer(aiperf),
        "--url",
        url,
        "--endpoint-type",
        "completions",
        "--streaming",
        "--isl",
        400,
        "--osl",
        NUM_TOKENS,
        "--extra-inputs",
        "ignore_eos:true",
        "--concurrency",
        NUM_STREAMS,
        "--request-count",
        NUM_REQUESTS,
        "--warmup-request-count",
        NUM_STREAMS,
        "--random-seed",
        1,
        "--ui",
        "none",
        "--use-server-token-count",
        "--artifact-dir",
        tmp_path / "out",
    )
    rows = [json.loads(x) for x in (tmp_path / "out" / "profile_export.jsonl").read_text().splitlines()]
    timed = [aiperf_timed(x) for x in rows if x["metadata"]["benchmark_phase"] == "profiling"]
    assert len(timed) == NUM_REQUESTS
    assert {x.answer_tokens for x in timed} == {NUM_TOKENS}
    assert_agrees(SCENARIO, SPEED, timed, late_s(url, before))


def aiperf_timed(row):
    """A line of AIPerf's export."""
    metrics = {name: x["value"] for name, x in row["metrics"].items()}
    return Timed(
        sent_s=row["metadata"]["request_start_ns"] * 1e-9,
        prompt_tokens=int(metrics["usage_prompt_tokens"]),
        answer_tokens=int(metrics["output_sequence_length"]),
        ttft_s=metrics["time_to_first_token"] * 1e-3,
        tpot_s=metrics["inter_token_latency"] * 1e-3,
        latency_s=metrics["request_latency"] * 1e-3,
    )


def test_guidellm(url, tokenizer, tmp_path):
    guidellm = client("guidellm")
    before = lags_of(url)
    out = tmp_path / "out.json"
    run(
        guidellm,
        "run",
        "--backend",
        f"kind=openai_http,target={url},request_format=/v1/completions",
        "--profile",
        f"kind=concurrent,streams={NUM_STREAMS}",
        "--constraint",
        f"kind=max_requests,count={NUM_REQUESTS}",
        "--tokenizer",
        f"kind=hf_auto,model={tokenizer(guidellm)}",
        "--data",
        f"kind=synthetic_text,prompt_tokens=400,output_tokens={NUM_TOKENS}",
        "--output",
        f"kind=json,path={out}",
        "--disable-console",
    )
    (benchmark,) = json.loads(out.read_text())["benchmarks"]
    timed = [guidellm_timed(x) for x in benchmark["requests"]["successful"]]
    assert len(timed) == NUM_REQUESTS
    assert not benchmark["requests"]["errored"]
    assert {x.answer_tokens for x in timed} == {NUM_TOKENS}
    assert_agrees(SCENARIO, SPEED, timed, late_s(url, before))


def guidellm_timed(row):
    """A request of guidellm's report."""
    return Timed(
        sent_s=row["request_start_time"],
        prompt_tokens=row["prompt_tokens"],
        answer_tokens=row["output_tokens"],
        ttft_s=row["time_to_first_token_ms"] * 1e-3,
        tpot_s=row["inter_token_latency_ms"] * 1e-3,
        latency_s=row["request_latency"],
    )
