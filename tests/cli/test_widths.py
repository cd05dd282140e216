"""Every command's tables at 80, 100 and 120 columns, without colour: all numbers of wide paper are read back whole."""

import importlib
import json
import re
from collections import Counter

import pytest

ONE = ("--model", "llama-3.1-8b", "--device", "h100-sxm", "--input-tokens", "1024", "--output-tokens", "256")
RATE = (*ONE, "--rate", "2")
SHORT = (*RATE, "--num-requests", "30")
JOB = (
    "--model",
    "llama-3.1-70b",
    "--device",
    "h100-sxm",
    "--devices",
    "64",
    "--global-batch",
    "128",
    "--seq-len",
    "8192",
)
RL = (
    "--rl",
    "--model",
    "llama-3.1-8b",
    "--device",
    "h100-sxm",
    "--prompts-per-step",
    "16",
    "--generations-per-prompt",
    "4",
    "--output-tokens",
    "200",
    "--max-output-tokens",
    "800",
    "--global-batch",
    "64",
)
WIDTHS = (80, 100, 120)
RUNS = "model,device,num_devices,tp,weights_format,engine,mode,input_tokens,output_tokens,batch_size,tpot_s,ttft_s"

COMMANDS = {
    "estimate": ("estimate", *ONE, "--concurrency", "32"),
    "answers": ("estimate", *ONE, "--batch", "1", "--reasoning", "best-of-n", "--samples", "1,4", "--success", "0.3"),
    "plan": ("plan", *RATE, "--device", "h100-sxm,l40s", "--slo", "ttft:1000", "--slo", "tpot:50"),
    "plan simulated": ("plan", *RATE, "--num-requests", "200", "--max-devices", "1", "--weights", "fp8", "--simulate"),
    "plan disaggregated": (
        "plan",
        *RATE,
        "--num-requests",
        "200",
        "--max-devices",
        "2",
        "--weights",
        "fp8",
        "--disaggregate",
    ),
    "simulate": ("simulate", *SHORT, "--slo", "ttft:1000", "--slo", "p99_tpot:50"),
    "capacity": ("simulate", *SHORT, "--slo", "ttft:1000", "--find-capacity"),
    "sweep": ("simulate", *SHORT, "--sweep", "rate=1,2", "--sweep", "max_num_seqs=64,128"),
    "bits": ("bits", "--model", "llama-3.2-1b", "--device", "b200", "--formats", "bf16,nvfp4", "--size-ratio", "0.7"),
    "scaling": ("scaling", "--parameters", "7e9", "--tokens", "2e12", "--exponent-bits", "2", "--mantissa-bits", "1"),
    "scaling widths": ("scaling", "--law", "quartet", "--parameters", "8e9", "--tokens", "2e12", "--device", "b200"),
    "formats": ("formats", "list"),
    "format": ("formats", "show", "nvfp4"),
    "compare formats": ("formats", "compare", "nvfp4", "mxfp4", "fp8", "--device", "b200"),
    "quantize": ("quantize", "weights", "outliers", "--formats", "nvfp4,mxfp4", "--rows", "64", "--columns", "256"),
    "experiments": ("experiment",),
    "papers": ("papers", "list"),
    "paper": ("papers", "show", "holmes"),
    "reproduce": ("reproduce", "holmes"),
    "train": (
        "train",
        *JOB,
        "--tp",
        "4",
        "--pp",
        "4",
        "--recompute",
        "full",
        "--sharding",
        "zero1",
        "--train-tokens",
        "1.5e13",
        "--usd-per-hour",
        "2.5",
        "--node-mtbf-s",
        "2e8",
    ),
    "train plan": (
        "train",
        *JOB,
        "--plan",
        "--tp",
        "4",
        "--train-tokens",
        "1.5e13",
        "--against",
        "tp8 sp pp2 mb1 zero1 recompute-full 1f1b",
    ),
    "train offload": (
        "train",
        "--model",
        "llama-3.1-8b",
        "--device",
        "l40s",
        "--devices",
        "1",
        "--global-batch",
        "8",
        "--seq-len",
        "2048",
        "--offload",
        "zero-offload",
        "--train-tokens",
        "1e9",
    ),
    "train rl": ("train", *RL, "--devices", "16"),
    "train rl plan": ("train", *RL, "--devices", "4", "--plan", "--generation-tp", "1"),
    "train rl placement": ("train", *RL, "--devices", "4", "--rl-placement", "symmetric"),
    "check": ("check", "runs.csv", "--by", "device,engine"),
    "calibrate compare": ("calibrate", "compare", "runs.csv"),
    **{
        f"show {kind}": ("show", kind)
        for kind in (
            "devices",
            "models",
            "formats",
            "techniques",
            "engines",
            "frameworks",
            "recipes",
            "prices",
            "traces",
            "workloads",
        )
    },
    "show a device": ("show", "device", "h100-sxm"),
    "show a model": ("show", "model", "llama-3.1-8b"),
}

SLOW = (
    "orrery.scenario.ask.plan",
    "orrery.scenario.bits.bits",
    "orrery.scenario.simulate.simulate",
    "orrery.cli.plan_simulated.plan_simulated",
    "orrery.cli.plan_disaggregated.plan_disaggregated",
    "orrery.cli.capacity.find_capacity",
    "orrery.cli.sweep.sweep",
    "orrery.scenario.compare_formats.compare_formats",
    "orrery.evidence.judge.run.rerun",
    "orrery.evidence.check.check",
    "orrery.scenario.train_plan.train_plan",
    "orrery.scenario.rl.train_rl",
    "orrery.scenario.rl_placement.train_rl_placement",
    "orrery.scenario.rl_plan.train_rl_plan",
    "orrery.calibrate.compare.compare.compare_runs",
)
"""What takes long and does not know the width: worked out once."""

NUMBER = re.compile(r"\d(?:[\d.,]*\d)?(?:e[+-]?\d+)?%?")


KEPT = {}
"""What the slow parts of each command answered, for all tests of this file."""


@pytest.fixture
def ask(describe, monkeypatch):
    """Run one of the commands; its slow parts answer once, and pictures are left out, as they change with the width."""
    monkeypatch.setattr("orrery.cli.scatter.NARROWEST", 10_000)
    monkeypatch.setenv("NO_COLOR", "1")
    requested = []
    for path in SLOW:
        module, name = path.rsplit(".", 1)

        found = getattr(importlib.import_module(module), name)

        def remembered(*arguments, found=found, path=path, **named):
            if (requested[-1], path) not in KEPT:
                KEPT[requested[-1], path] = found(*arguments, **named)
            return KEPT[requested[-1], path]

        monkeypatch.setattr(path, remembered)

    def call(name, *more, width=1000):
        requested.append(name)
        monkeypatch.setenv("COLUMNS", str(width))
        return describe(*COMMANDS[name], *more)

    return call


def numbers(text):
    return Counter(NUMBER.findall(text))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_number_is_whole_at_every_width(name, ask, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text(
        f"kind,{RUNS}\n"
        + "".join(
            f"serving,llama-3.1-8b,h100-sxm,1,1,bf16,vllm,static,{n},128,{c},{0.007 + c / 1e4},0.05\n"
            for n, c in ((512, 8), (1024, 16), (2048, 4))
        )
    )
    code, wide, _ = ask(name)
    assert code == 0
    assert re.search(r"\de\+0\d", wide) is None, "thousands are grouped or abbreviated"
    for width in WIDTHS:
        _, text, _ = ask(name, width=width)
        assert "\x1b" not in text
        assert [line for line in text.splitlines() if len(line) > width and not _is_command(line)] == []
        assert numbers(wide) - numbers(text) == Counter(), "headings may stand again below a row; nothing is missing"


def _is_command(line):
    """Launch commands are there to be copied: they are not wrapped."""
    return line.startswith(("  --", "  orrery ", "orrery ", "vllm ", "python ", "trtllm", "cat ", "torchrun ", ': "'))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_training_plan_is_read_back_from_its_row(width, ask):
    """Its name from the first column's lines, its numbers from the first line, the rest below."""
    best = json.loads(ask("train plan", "--json")[1])["plans"][0]
    lines = ask("train plan", width=width)[1].splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("────")) + 1
    wide = len(lines[at].split("  ")[0])
    row = lines[at][wide:].split()
    assert float(row[0]) * {"s": 1, "ms": 1e-3}[row[1]] == pytest.approx(best["step_time_s"], rel=0.01)
    assert float(row[2]) == pytest.approx(100 * best["mfu_frac"], abs=0.06)
    assert float(row[4].replace(",", "")) == pytest.approx(best["tokens_per_s_per_device"], rel=0.01)
    assert float(row[5]) * 1e9 == pytest.approx(best["peak_memory_bytes"], rel=0.01)
    classification = next(i for i, line in enumerate(lines) if line.startswith("One in full"))
    name = " ".join(lines[classification : classification + 2]).split("'")[1]
    beside = " ".join(line[:wide] for line in lines[at : at + 3])
    assert all(word in beside for word in name.split())
    days = f"{best['run']['days']:,.1f}"
    assert any(days in line for line in lines[at : at + 3])


@pytest.mark.parametrize("width", WIDTHS)
def test_a_training_step_is_read_back(width, ask):
    found = json.loads(ask("train", "--json")[1])
    lines = ask("train", width=width)[1].splitlines()

    def value(label):
        words = next(line for line in lines if line.startswith(label)).removeprefix(label).split()
        return float(words[0].replace(",", "").removeprefix("$")), words[1] if len(words) > 1 else ""

    scale = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "%": 0.01, "GB": 1e9, "W": 1.0, "J": 1.0, "": 1.0}
    for label, name in (
        ("step ", "step_time_s"),
        ("model FLOPs utilization (MFU) ", "mfu_frac"),
        ("peak memory ", "peak_memory_bytes"),
        ("power of a device ", "power_w"),
        ("energy per token ", "energy_j_per_token"),
        ("a million tokens ", "usd_per_million_tokens"),
    ):
        number, unit = value(label)
        assert number * scale[unit] == pytest.approx(found[name], rel=0.01)
    assert value("tokens/s per device ")[0] == pytest.approx(found["tokens_per_s_per_device"], abs=0.5)
    for part, seconds in found["parts"].items():
        if seconds > 1e-6:
            number, unit = value(f"{part} ")
            assert number * scale[unit] == pytest.approx(seconds, rel=0.01)
    shown = found["memory"]
    for rank, line in enumerate(line for line in lines if re.match(r"^ {1,4}\d+ \[", line)):
        figures = line.partition("] ")[2].partition(" = ")
        assert float(figures[2].split()[0]) * 1e9 == pytest.approx(shown[rank]["peak_bytes"], rel=0.01)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_plan_is_read_back_from_its_row(width, ask):
    plans = json.loads(ask("plan", "--json")[1])["plans"]
    lines = ask("plan", width=width)[1].splitlines()
    row = next(line for line in lines if line.startswith("1 "))
    heading = next(line for line in lines if "TTFT" in line and "TPOT" in line)
    best = plans[0]
    for word in ("plan", "devices", "TTFT", "TPOT"):
        assert word in heading
    assert best["device"] in row
    assert f"tp{best['layout']['tp']}" in row
    value, unit = row.split(f" {best['num_devices']} ", 1)[1].split()[:2]
    assert float(value) * {"s": 1, "ms": 1e-3}[unit] == pytest.approx(best["ttft_s"], rel=0.01)
    value, unit, usd = row.split(f" {best['num_devices']} ", 1)[1].split()[2:5]
    assert float(value) * {"s": 1, "ms": 1e-3}[unit] == pytest.approx(best["tpot_s"], rel=0.01)
    assert float(usd) == pytest.approx(best["usd_per_million_tokens"], rel=0.01)
