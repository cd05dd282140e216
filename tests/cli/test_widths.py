"""Every command's tables at 80, 100 and 120 columns, without colour: all numbers of wide paper are read back whole."""

import importlib
import json
import re
from collections import Counter

import pytest

ONE = ("--model", "llama-3.1-8b", "--device", "h100-sxm", "--input-tokens", "1024", "--output-tokens", "256")
RATE = (*ONE, "--rate", "2")
SHORT = (*RATE, "--num-requests", "30")
WIDTHS = (80, 100, 120)
RUNS = "model,device,num_devices,tp,weights_format,engine,mode,input_tokens,output_tokens,concurrency,tpot_s,ttft_s"

COMMANDS = {
    "estimate": ("estimate", *ONE, "--concurrency", "32"),
    "answers": ("estimate", *ONE, "--batch", "1", "--reasoning", "best-of-n", "--samples", "1,4", "--success", "0.3"),
    "plan": ("plan", *RATE, "--device", "h100-sxm,l40s", "--slo", "ttft:1000", "--slo", "tpot:50"),
    "plan simulated": ("plan", *RATE, "--num-requests", "200", "--max-devices", "1", "--weights", "fp8", "--simulate"),
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
    "check": ("check", "runs.csv", "--by", "device,engine"),
    "calibrate compare": ("calibrate", "compare", "runs.csv"),
    **{f"show {kind}": ("show", kind) for kind in ("devices", "models", "formats", "techniques", "engines",
                                                   "frameworks", "recipes", "prices", "traces", "workloads")},
    "show a device": ("show", "device", "h100-sxm"),
    "show a model": ("show", "model", "llama-3.1-8b"),
}  # fmt: skip

SLOW = ("orrery.scenario.ask.plan", "orrery.scenario.bits.bits", "orrery.scenario.simulate.simulate",
        "orrery.cli.plan_simulated.plan_simulated", "orrery.cli.capacity.find_capacity", "orrery.cli.sweep.sweep",
        "orrery.scenario.compare_formats.compare_formats", "orrery.evidence.judge.run.rerun",
        "orrery.evidence.check.check", "orrery.calibrate.compare.compare.compare_runs")  # fmt: skip
"""What takes long and does not know the width: worked out once."""

NUMBER = re.compile(r"\d(?:[\d.,]*\d)?(?:e[+-]?\d+)?%?")


@pytest.fixture
def once(monkeypatch):
    """The slow parts answer from memory the second time; pictures are left out, as they change with the width."""
    monkeypatch.setattr("orrery.cli.scatter.NARROWEST", 10_000)
    for path in SLOW:
        module, name = path.rsplit(".", 1)
        found = getattr(importlib.import_module(module), name)
        kept = []

        def remembered(*arguments, found=found, kept=kept, **named):
            if not kept:
                kept.append(found(*arguments, **named))
            return kept[0]

        monkeypatch.setattr(path, remembered)


def numbers(text):
    return Counter(NUMBER.findall(text))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_number_is_whole_at_every_width(name, said, once, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text(
        f"kind,{RUNS}\n"
        + "".join(
            f"serving,llama-3.1-8b,h100-sxm,1,1,bf16,vllm,closed,{n},128,{c},{0.007 + c / 1e4},0.05\n"
            for n, c in ((512, 8), (1024, 16), (2048, 4))
        )
    )
    monkeypatch.setenv("COLUMNS", "1000")
    code, wide, _ = said(*COMMANDS[name])
    assert code == 0
    assert re.search(r"\de\+0\d", wide) is None, "thousands are grouped or abbreviated"
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("NO_COLOR", "1")
        _, text, _ = said(*COMMANDS[name])
        assert "\x1b" not in text
        assert [line for line in text.splitlines() if len(line) > width and not _is_command(line)] == []
        assert numbers(wide) - numbers(text) == Counter(), "headings may stand again below a row; nothing is missing"


def _is_command(line):
    """Launch commands are there to be copied: they are not wrapped."""
    return line.startswith(("  --", "vllm ", "python ", "trtllm", "cat "))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_plan_is_read_back_from_its_row(width, said, once, monkeypatch):
    command = COMMANDS["plan"]
    plans = json.loads(said(*command, "--json")[1])["plans"]
    monkeypatch.setenv("COLUMNS", str(width))
    lines = said(*command)[1].splitlines()
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
