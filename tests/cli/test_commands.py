"""The terminal: JSON on standard output, everything else beside it, one message for whatever is wrong."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orrery.cli.main import BAD_INPUT, COMMANDS, DONE, INFEASIBLE, run
from orrery.scenario.fields import SETTINGS, Setting

ONE = ("--model", "llama-3.1-8b", "--device", "h100-sxm", "--input-tokens", "512", "--output-tokens", "128")
ESTIMATE = ("estimate", *ONE, "--concurrency", "8")
PLAN = ("plan", *ONE, "--max-devices", "2", "--rate", "2", "--slo", "ttft:1000", "--slo", "tpot:50")
SMALL_PLAN = (*PLAN, "--max-devices", "1", "--weights", "bf16")
"""The last of two flags counts: one device, which a few plans fill."""

Out = Callable[[], tuple[str, str]]


@pytest.fixture
def out(capsys: pytest.CaptureFixture[str]) -> Out:
    def read() -> tuple[str, str]:
        captured = capsys.readouterr()
        return captured.out, captured.err

    return read


def test_estimate_prints_one_object(out: Out) -> None:
    assert run([*ESTIMATE, "--json"]) == DONE
    text, notes = out()
    found = json.loads(text)
    assert found["ttft_s"] > 0
    assert found["memory"]["weights_bytes"] > 1e10
    assert "note: engine: vllm (default)" in notes


def test_estimate_reads_well(out: Out) -> None:
    assert run(ESTIMATE) == DONE
    text, _ = out()
    for word in ("time to first token", "80 % interval", "W weights", "Limited by"):
        assert word in text


def test_plan_prints_one_object_and_reads_well(out: Out) -> None:
    assert run([*PLAN, "--json"]) == DONE
    found = json.loads(out()[0])
    assert found["plans"][0]["launch"]["vllm"].startswith("vllm serve")
    assert run(PLAN) == DONE
    text, _ = out()
    for word in (
        "price: h100-sxm",
        "best first",
        "tok/s/device",
        "Memory (",
        "Launch the first plan",
        "vllm serve",
        "trtllm-serve",
    ):
        assert word in text


def test_a_narrow_terminal_gets_a_table_for_a_picture(out: Out, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert run(PLAN) == DONE
    text, _ = out()
    assert "+----" not in text
    assert "meets" in text


def test_infeasible_is_three(out: Out) -> None:
    assert run(["estimate", *ONE, "--concurrency", "8", "--model", "llama-3.1-405b", "--json"]) == INFEASIBLE
    text, message = out()
    found = json.loads(text)["infeasible"]
    assert {"need", "have", "smallest_change"} <= found.keys()
    assert "Infeasible: " in message
    assert run([*PLAN, "--slo", "tpot:0.001", "--json"]) == INFEASIBLE
    assert json.loads(out()[0])["infeasible"]["smallest_change"]
    assert run([*PLAN, "--slo", "tpot:0.001"]) == INFEASIBLE
    assert run(["estimate", *ONE, "--rate", "100000"]) == INFEASIBLE
    assert "Infeasible." in out()[0]


def test_why_unfolds_to_sources(out: Out) -> None:
    assert run(["why", "tpot_s", *ESTIMATE[1:], "--depth", "9"]) == DONE
    text, _ = out()
    assert "memory_bandwidth_bytes_per_s" in text
    assert "stated" in text
    assert run(["why", "memory.kv", *ESTIMATE[1:], "--json"]) == DONE
    assert json.loads(out()[0])["why"]["name"] == "memory.kv_capacity_bytes"
    assert run(["why", "tpot_s", *ESTIMATE[1:], "--depth", "0"]) == DONE
    assert "(--depth)" in out()[0]


@pytest.mark.parametrize(
    "kind", ["devices", "models", "formats", "techniques", "engines", "frameworks", "recipes", "prices", "traces"]
)
def test_show_lists_everything(kind: str, out: Out) -> None:
    assert run(["show", kind, "--json"]) == DONE
    rows = json.loads(out()[0])[kind]
    assert len(rows) >= 2
    assert all(row["name"] for row in rows)
    assert run(["show", kind]) == DONE
    assert rows[0]["name"] in out()[0]
    assert run(["show", kind, rows[0]["name"], "--json"]) == DONE
    assert len(json.loads(out()[0])[kind]) >= 1


def test_a_scenario_file_is_saved_and_flags_override_it(tmp_path: Path, out: Out) -> None:
    path = tmp_path / "mine.toml"
    assert run([*ESTIMATE, "--save-scenario", str(path), "--json"]) == DONE
    first = json.loads(out()[0])
    assert run(["estimate", "--scenario", str(path), "--json"]) == DONE
    assert json.loads(out()[0]) == first
    assert run(["estimate", "--scenario", str(path), "--concurrency", "9", "--json"]) == DONE
    assert json.loads(out()[0])["concurrency"] == 9
    assert run(["estimate", "--scenario", str(path), "--batch", "4", "--json"]) == DONE
    assert json.loads(out()[0])["concurrency"] == 4
    assert run(["plan", "--scenario", str(path), "--trace", "chat", "--json"]) == DONE
    assert json.loads(out()[0])["plans"]
    assert run(["plan", "--scenario", str(path), "--json"]) == DONE
    assert "concurrency: not used" in out()[1]


def test_check_scores_a_table(tmp_path: Path, out: Out) -> None:
    table = tmp_path / "runs.csv"
    table.write_text(
        "kind,model,device,num_devices,tp,weights_format,engine,mode,input_tokens,output_tokens,concurrency,tpot_s\n"
        "serving,meta-llama/Llama-3.1-8B,h100-sxm,1,1,bf16,vllm,closed,512,128,8,0.008\n"
    )
    assert run(["check", str(table), "--by", "device", "--json"]) == DONE
    found = json.loads(out()[0])
    assert found["rows"] == 1
    assert found["groups"][0]["by"] == {}
    assert run(["check", str(table)]) == DONE
    assert "tpot_s" in out()[0]


BAD = {
    "no command": ["estimat", *ESTIMATE[1:]],
    "unknown flag": [*ESTIMATE, "--tpp", "2"],
    "flag without value": ["estimate", "--model"],
    "nothing asked": ["estimate"],
    "unknown model": [*ESTIMATE, "--model", "lama-3.1-8b"],
    "unknown device": [*ESTIMATE, "--device", "h10O"],
    "unknown format": [*ESTIMATE, "--weights", "fp7"],
    "unknown engine": [*ESTIMATE, "--engine", "vlm"],
    "no numbers in a version": [*ESTIMATE, "--engine-version", "newest"],
    "negative degree": [*ESTIMATE, "--tp", "-1"],
    "degree of zero": [*ESTIMATE, "--tp", "0"],
    "words for a number": [*ESTIMATE, "--tp", "four"],
    "absurd length": [*ESTIMATE, "--input-tokens", "1e30"],
    "not a number": [*PLAN, "--rate", "nan"],
    "infinite": [*PLAN, "--rate", "inf"],
    "two kinds of traffic": [*ESTIMATE, "--batch", "4"],
    "heads that do not divide": [*ESTIMATE, "--tp", "3"],
    "experts of a dense model": [*ESTIMATE, "--ep", "2"],
    "devices that do not fit the layout": [*ESTIMATE, "--tp", "2", "--devices", "4"],
    "memory share above one": [*ESTIMATE, "--gpu-memory-utilization", "90"],
    "scenario file that is not there": ["estimate", "--scenario", "nowhere.toml"],
    "scenario in a folder that is not there": [*ESTIMATE, "--save-scenario", "nowhere/x.toml"],
    "config that is not there": [*ESTIMATE, "--model", "./nowhere/config.json"],
    "device file that is not there": [*ESTIMATE, "--device", "./nowhere.toml"],
    "objective without a limit": [*PLAN, "--slo", "ttft"],
    "objective of percentiles": [*PLAN, "--slo", "p99_ttft:100"],
    "unknown trace": ["plan", *ONE[:4], "--trace", "chatt"],
    "trace that is not there": ["plan", *ONE[:4], "--trace", "nowhere.csv"],
    "plan without traffic": ["plan", *ONE[:4]],
    "layout that no number of devices has": [*PLAN, "--tp", "7"],
    "unknown metric": ["why", "tpto", *ESTIMATE[1:]],
    "unknown kind": ["show", "devises"],
    "unknown name": ["show", "device", "h10O"],
    "table that is not there": ["check", "nowhere.csv"],
    "no table": ["check"],
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_message(arguments: list[str], out: Out) -> None:
    assert run([*arguments, "--json"]) == BAD_INPUT
    text, output_text = out()
    message = json.loads(text)["error"]["message"]
    assert message.strip()
    assert output_text.strip() == f"orrery: {message}"
    assert len(message.splitlines()) == 1
    assert "Traceback" not in output_text


JUNK = ["", " ", "-1", "0", "1e309", "NaN", "½", "\u202e", "x" * 5000, "0x10", "9" * 5000, "[]", "a,b,", "../..", "~"]
MODEL = ("--model", "llama-3.1-8b", "--device", "h100-sxm")
READS = {
    "estimate": ESTIMATE,
    "plan": SMALL_PLAN,
    "simulate": ("simulate", *ONE, "--rate", "2", "--num-requests", "3"),
    "train": ("train", *MODEL, "--devices", "8", "--global-batch", "8", "--seq-len", "512"),
    "cold-start": ("cold-start", *MODEL),
    "cache-size": ("cache-size", *MODEL),
    "fleet": ("fleet", *ONE, "--rate", "2", "--days", "0.001"),
}
"""A command that reads a setting: the first of these that does."""


@pytest.mark.parametrize(("at", "setting"), [*enumerate(SETTINGS)], ids=[s.name for s in SETTINGS])
def test_junk_in_any_flag_ends_in_an_exit_code(at: int, setting: Setting, out: Out) -> None:
    """A third of the junk each, in turn: settings of one kind are read by the same lines."""
    command = next(words for name, words in READS.items() if name in setting.commands)
    for junk in JUNK[at % 3 :: 3]:
        assert run([*command, f"{setting.flag}={junk}"]) in (DONE, BAD_INPUT, INFEASIBLE)
        message = out()[1]
        assert "Traceback" not in message
        assert "There is no flag" not in message


@pytest.mark.parametrize(
    "content",
    [
        "[" * 5000,
        "tp = " + "9" * 5000,
        'model = "a\\u0000.json"',
        "tp = [1]",
        "slo = 5",
        "[tp]\nx = 1",
        "tp = 1\ntp = 2",
    ],
)
def test_junk_in_a_scenario_file_ends_in_a_message(content: str, tmp_path: Path, out: Out) -> None:
    path = tmp_path / "junk.toml"
    path.write_text(content)
    assert run(["estimate", "--scenario", str(path)]) == BAD_INPUT
    message = out()[1]
    assert message.startswith("orrery: ")
    assert "Traceback" not in message


def test_a_malformed_config_is_one_message(tmp_path: Path, out: Out) -> None:
    for content in ("{", "[]", '{"model_type": "llama", "hidden_size": "big"}', '{"model_type": "unheard-of"}', "\x00"):
        path = tmp_path / "config.json"
        path.write_text(content)
        assert run([*ESTIMATE, "--model", str(path)]) == BAD_INPUT
        message = out()[1]
        assert "Traceback" not in message
        assert message.startswith("orrery: ")


def test_a_malformed_scenario_lists_every_mistake(tmp_path: Path, out: Out) -> None:
    path = tmp_path / "bad.toml"
    path.write_text('tp = 0\nmodle = "x"\nrate = nan\n')
    assert run(["estimate", "--scenario", str(path)]) == BAD_INPUT
    message = out()[1]
    assert message.count(str(path)) == 3
    assert "did you mean 'model'" in message


def test_a_reader_that_leaves_early_is_no_error() -> None:
    program = "import sys; from orrery.cli.main import main; main(['show', 'formats', '--json'])"
    writer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout
    assert writer.stderr
    writer.stdout.close()
    message = writer.stderr.read().decode()
    writer.stderr.close()
    writer.wait()
    assert "Traceback" not in message
    assert "BrokenPipe" not in message


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="a device that is always full is Linux's")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_full_disk_is_one_line(form: list[str]) -> None:
    program = f"from orrery.cli.main import main; main({['show', 'formats', *form]})"
    with FULL.open("w") as full:
        found = subprocess.run([sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, check=False)
    assert found.returncode == BAD_INPUT
    assert found.stderr.decode() == "orrery: No space left on device.\n"


def test_nobody_listening_at_all_is_no_error() -> None:
    program = "from orrery.cli.main import main; main(['show', 'formats'])"
    found = subprocess.run(
        ["sh", "-c", f'exec "{sys.executable}" -c "{program}" >&-'], capture_output=True, check=False
    )
    assert (found.returncode, found.stderr) == (DONE, b"")


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, out: Out) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("orrery.scenario.ask.estimate", interrupted)
    assert run(ESTIMATE) == 130
    assert out()[1].strip() == "Interrupted."


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command: str, out: Out) -> None:
    assert run([command, "--help"]) == DONE
    text, _ = out()
    assert f"orrery {command}" in text
    assert "--json" in text
