"""`orrery kernel` on the command line: tables, curves, files, contract, what it refuses, and timing this machine."""

import csv
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import orrery
from orrery.calibrate.kernel import is_same
from orrery.calibrate.measure.backends.find import find_backend
from orrery.catalog import devices
from orrery.cli.main import run

GEMM = ("kernel", "gemm", "--device", "h100-sxm", "--n", "4096", "--k", "4096")


def test_a_single_shape_shows_roofs_tiles_and_waves(capsys):
    assert run([*GEMM, "--m", "4096", "--format", "bf16,fp8"]) == 0
    out = capsys.readouterr().out
    for word in ("bf16", "fp8", "tile 128x128", "waves", "compute", "80 %", "measured on h100-sxm"):
        assert word in out, word


def test_the_contract_of_json(capsys):
    assert run([*GEMM, "--m", "16", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    (row,) = answer["results"]
    assert row["intervals"]["time_s"]["low_80"] < row["time_s"] < row["intervals"]["time_s"]["high_80"]
    python = orrery.kernel(op="gemm", device="h100-sxm", m=16, n=4096, k=4096).to_json()
    assert python == answer


def test_flag_file_and_keyword_give_equal_numbers(tmp_path, capsys):
    message = ["kernel", "softmax", "--device", "l4", "--tokens", "64", "--sweep", "width=1k:64k:x8"]
    assert run([*message, "--json", "--save-scenario", str(tmp_path / "k.toml")]) == 0
    typed = json.loads(capsys.readouterr().out)
    assert run(["kernel", "--scenario", str(tmp_path / "k.toml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == typed
    assert orrery.kernel(op="softmax", device="l4", tokens=64, sweep="width=1k:64k:x8").to_json() == typed


def test_a_sweep_draws_curves_and_writes_files(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    outs = [str(tmp_path / name) for name in ("rows.csv", "rows.json", "rows.svg")]
    given = [word for out in outs for word in ("--out", out)]
    assert run([*GEMM, "--sweep", "m=1:4096:x4", "--variants", "library", *given]) == 0
    assert "of that roof" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "rows.csv").read_text().splitlines()))
    assert [int(float(row["m"])) for row in rows] == [1, 4, 16, 64, 256, 1024, 4096]
    assert float(rows[0]["low_80_s"]) < float(rows[0]["time_s"])
    assert len(json.loads((tmp_path / "rows.json").read_text())["results"]) == 7
    assert (tmp_path / "rows.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (["kernel", "gem", "--device", "h100-sxm"], "'gemm'"),
        (["kernel"], "write one of"),
        ([*GEMM, "--m", "zero"], "whole number"),
        ([*GEMM, "--sweep", "m=1:2"], "first, last and step"),
        ([*GEMM, "--m", "8", "--out", "rows.xls"], "end it in"),
        ([*GEMM, "--m", "8", "--out", "rows.svg"], "sweep"),
        ([*GEMM, "--m", "8", "--format", "nope"], "nope"),
        ([*GEMM, "--m", "8", "--measure"], "is not here"),
        (["kernel", "gemm", "--device", "h100", "--m", "8", "--n", "8", "--k", "8", "--vriant", "x"], "--variant"),
    ],
)
def test_what_makes_no_sense_is_refused_with_exit_2(message, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(message) == 2
    assert words in capsys.readouterr().err


def test_help_is_quick():
    assert any(_seconds("kernel", "--help") < 0.6 for _ in range(3))  # 0.2 s on a quiet machine


def _seconds(*describe):
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", "orrery", *describe], check=True, capture_output=True)
    return time.perf_counter() - begun


def test_titles_of_one_device_are_told_from_others():
    assert is_same("NVIDIA H100 SXM5 80GB", "NVIDIA H100 80GB HBM3")
    assert is_same("Intel(R) Xeon(R) Processor", "Intel(R) Xeon(R) Processor")
    assert not is_same("NVIDIA A100 80GB", "NVIDIA H100 80GB HBM3")
    assert not is_same("Raspberry Pi 5", "Intel(R) Xeon(R) Processor")


def test_this_machine_is_timed_beside_its_prediction(tmp_path, capsys):
    title = find_backend("numpy").facts()["title"].value
    text = (Path(devices.__file__).parent / "facts" / "devices" / "raspberry-pi-5-8gb.toml").read_text()
    first, rest = text.split("\n", 1)
    assert first.startswith("title")
    (tmp_path / "here.toml").write_text(f"title = {json.dumps(title)}\n{rest}")
    message = ["kernel", "softmax", "--device", str(tmp_path / "here.toml"), "--tokens", "64", "--width", "512"]
    if find_backend("").device_kind != "cpu":
        pytest.skip("a GPU is measured here")
    assert run([*message, "--format", "fp32", "--measure", "--json"]) == 0
    classification = capsys.readouterr()
    measured = {row["variant"]: row["measured"] for row in json.loads(classification.out)["results"]}
    assert measured["library"]["time_s"] > 0
    assert measured["library"]["library"] == "numpy"
    assert measured["two-pass"] is None
    assert "no library here runs this variant" in classification.err
