"""The terminal's what-if: one technique, all of them, JSON, exit codes, and help without anything heavy."""

import json
import re
import subprocess
import sys

SERVED = (
    "--model",
    "llama-3.1-8b",
    "--device",
    "h100-sxm",
    "--input-tokens",
    "512",
    "--output-tokens",
    "64",
    "--concurrency",
    "16",
)


def test_one_technique_reads_well(describe):
    code, out, _ = describe("what-if", "speculative-decoding", *SERVED, "--acceptance", "0.7", "--draft-tokens", "3")
    assert code == 0
    for words in (
        "it is on already",
        "80 % interval",
        "Break-even, acceptance",
        "Measure: how many draft tokens",
        "Run it: orrery simulate",
    ):
        assert words in out


def test_all_are_ranked(describe):
    code, out, _ = describe("what-if", "--all", "--metric", "tpot", *SERVED)
    assert code == 0
    for words in ("By Time per output token (TPOT)", "No effect (", "Not tried (", "tp is 1", "--success"):
        assert words in out
    for other in (
        "TTFT",
        "E2EL",
        "output",
        "cost",
        "energy",
    ):  # beside the ranked metric, or below it on narrow screens
        assert re.search(rf"\b{other}\b", out)
    assert out.count("how much quality your task loses with this cache") == 1


def test_json_and_a_scenario_file_say_the_same(describe, tmp_path):
    file = tmp_path / "mine.toml"
    code, flags, _ = describe("what-if", "fp8-weights", *SERVED, "--save-scenario", file, "--json")
    assert code == 0
    assert describe("what-if", "fp8-weights", "--scenario", file, "--json")[1] == flags
    (result,) = json.loads(flags)["results"]
    _, plain, _ = describe("estimate", *SERVED, "--weights", "fp8", "--json")
    assert json.loads(plain)["tpot_s"] == result["with"]["tpot_s"]


def test_the_command_of_a_result_runs_and_gives_its_numbers(describe):
    _, out, _ = describe("what-if", "layered-prefill", *SERVED, "--json")
    (result,) = json.loads(out)["results"]
    _, plain, _ = describe(*result["command"].split()[1:], "--json")
    assert json.loads(plain)["output_throughput"] == result["with"]["output_tokens_per_s"]


def test_exit_codes(describe):
    assert describe("what-if", *SERVED)[0] == 2
    assert describe("what-if", "fp8-weights", "--all", *SERVED)[0] == 2
    assert describe("what-if", "zero-bubble-h1", *SERVED)[0] == 2
    assert describe("what-if", "fp8-kv-cache", *SERVED, "--model", "llama-3.1-405b")[0] == 3
    code, _, wrong = describe("what-if", "polynomial-softmax", *SERVED)
    assert code == 2
    assert "no command takes it" in wrong


def test_help_is_light():
    text = (
        "import sys; from orrery.cli.main import run; run(['what-if', '--help']); "
        "assert not {'numpy', 'pandas', 'pydantic'} & set(sys.modules), 'heavy'"
    )
    found = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert "Break" not in found.stderr
    assert "--break-even" in found.stdout
