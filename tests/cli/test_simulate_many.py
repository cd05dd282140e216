"""Capacity, sweeps and simulated plans from the terminal: tables, one object, files, exit codes, patience."""

import csv
import json
import time

import duckdb
import pytest

from orrery.cli.main import BAD_INPUT, DONE, INFEASIBLE, run
from orrery.cli.progress import LOADING, patience

ONE = ("--model", "llama-3.1-8b", "--device", "h100-sxm", "--input-tokens", "400", "--output-tokens", "40")
CAPACITY = ("simulate", *ONE, "--num-requests", "600", "--find-capacity")
SWEEP = ("simulate", *ONE, "--num-requests", "100", "--jobs", "1", "--sweep", "tp=1,2", "--sweep", "rate=4,8")


@pytest.fixture(autouse=True)
def _wide_paper(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def describe(capsys):
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_a_capacity_reads_well(capsys):
    assert run([*CAPACITY, "--slo", "tpot:10"]) == DONE
    text, notes = describe(capsys)
    for word in (
        "Serving Benchmark Result",
        "Rates tried",
        "holds",
        "with 90 % of the requests in time",
        "tpot is the limit",
    ):
        assert word in text
    assert "note: engine: vllm (default)" in notes


def test_a_capacity_is_one_object_and_a_file(capsys, tmp_path):
    assert run([*CAPACITY, "--json", "--out", str(tmp_path / "c.json"), "--out", str(tmp_path / "c.parquet")]) == DONE
    found = json.loads(describe(capsys)[0])
    assert found["capacity"]["requests_per_s"] == found["request_rate"] > 1
    assert json.loads((tmp_path / "c.json").read_text())["capacity"] == found["capacity"]
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/c.parquet'").fetchall() == [(600,)]


def test_an_objective_out_of_reach_is_infeasible(capsys):
    assert run([*CAPACITY, "--slo", "tpot:0.5", "--json"]) == INFEASIBLE
    assert {"need", "have", "smallest_change"} <= json.loads(describe(capsys)[0])["infeasible"].keys()


def test_a_sweep_is_a_table_and_files(capsys, tmp_path):
    files = [tmp_path / f"all.{suffix}" for suffix in ("json", "csv", "parquet", "html")]
    assert run([*SWEEP, "--slo", "ttft:500", *(w for f in files for w in ("--out", str(f)))]) == DONE
    text, _ = describe(capsys)
    for word in ("/device", "in time", "100.0 %", "4 runs, in"):
        assert word in text
    rows = list(csv.DictReader(files[1].read_text().splitlines()))
    assert [(r["tp"], r["rate"], r["status"]) for r in rows] == [
        ("1", "4.0", "done"),
        ("1", "8.0", "done"),
        ("2", "4.0", "done"),
        ("2", "8.0", "done"),
    ]
    table = duckdb.sql(f"SELECT tp, mean_ttft_ms FROM '{files[2]}'").fetchall()
    assert table == [(float(r["tp"]), float(r["mean_ttft_ms"])) for r in rows]
    page = files[3].read_text()
    assert "4 simulated runs of meta-llama/Llama-3.1-8B" in page
    assert '"label":"tp=2 rate=8"' in page
    assert [r["label"] for r in json.loads(files[0].read_text())["runs"]][-1] == "tp=2 rate=8"


def test_a_sweep_is_one_object_and_goes_on(capsys, tmp_path):
    arguments = [*SWEEP, "--sweep", "pp=1,64", "--json", "--resume", str(tmp_path / "runs")]
    assert run(arguments) == DONE
    first = json.loads(describe(capsys)[0])
    assert (len(first["runs"]), first["num_failed"], first["num_resumed"]) == (8, 4, 0)
    assert run(arguments) == DONE
    again = json.loads(describe(capsys)[0])
    assert (again["num_resumed"], again["runs"]) == (8, first["runs"])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([*SWEEP, "--sweep", "tpp=1"], BAD_INPUT, "did you mean 'tp'"),
        ([*SWEEP, "--sweep", "pp=zwei"], BAD_INPUT, "got 'zwei'"),
        ([*SWEEP, "--out", "x.xlsx"], BAD_INPUT, "end it in one of .json"),
        ([*SWEEP, "--out", "x.trace.json"], BAD_INPUT, "end it in one of .json"),
        ([*SWEEP, "--window", "0:1"], BAD_INPUT, "--window is about one run"),
        ([*SWEEP[:-6], "--jobs", "2"], BAD_INPUT, "--jobs is about sweeps"),
        ([*SWEEP, "--jobs", "0"], BAD_INPUT, "--jobs"),
        (["simulate", *ONE, "--jobs", "1", "--sweep", "tp=3"], BAD_INPUT, "no run of the sweep came out"),
        (["simulate", *ONE, "--jobs", "1", "--sweep", "model=llama-3.1-405b"], INFEASIBLE, ""),
        ([*CAPACITY, "--concurrency", "3"], BAD_INPUT, "leave concurrency out"),
        ([*CAPACITY, "--out", "x.doc"], BAD_INPUT, "does not say what to write"),
        (["plan", *ONE, "--rate", "1", "--slo", "p99_ttft:90"], BAD_INPUT, "add --simulate"),
        (["plan", *ONE, "--rate", "1", "--slo", "p99_ttft:1", "--simulate"], INFEASIBLE, ""),
    ],
)
def test_exit_codes_and_words(capsys, arguments, code, words):
    assert run(arguments) == code
    _, wrong = describe(capsys)
    assert words in wrong
    assert "Traceback" not in wrong


def test_a_simulated_plan_reads_well(capsys):
    arguments = [
        "plan",
        *ONE,
        "--max-devices",
        "2",
        "--rate",
        "6",
        "--slo",
        "p90_ttft:500",
        "--simulate",
        "--num-requests",
        "300",
    ]
    assert run(arguments) == DONE
    text, notes = describe(capsys)
    for word in ("best first", "Simulated (in brackets the closed form)", "holds", "goodput"):
        assert word in text
    assert "note: simulated: 300 requests" in notes
    assert run([*arguments, "--json"]) == DONE
    assert json.loads(describe(capsys)[0])["plans"][0]["simulated"]["is_met"]


def test_patience_is_asked_for_only_where_it_takes_long(capsys, monkeypatch):
    with patience():
        pass
    monkeypatch.setattr("orrery.cli.progress.PATIENCE_S", 0.01)
    with patience():
        time.sleep(0.2)
    out, wrong = describe(capsys)
    assert (out, wrong) == ("", LOADING + "\n")
