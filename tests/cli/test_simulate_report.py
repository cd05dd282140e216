"""A simulated run as a file: every suffix, read back by a reader of its own; and a report that nothing breaks into."""

import csv
import json
import re
import shutil
import subprocess
from dataclasses import replace

import duckdb
import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.cli.serving_result import banner, print_serving_result
from orrery.cli.simulate_report import report_html, write_result
from orrery.cli.simulate_report.parquet import parquet_bytes
from orrery.serving.metrics import About, result_json, summary
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import GAP_BINS_PER_DECADE, GAP_DECADES, STEP, TIMELINE, Simulated

EVIL = "</script><script>alert(1)</script><!--{{DATA}}&amp;\u2028"
COLUMNS = [
    "arrive_s",
    "admitted_s",
    "first_token_s",
    "finish_s",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "preemptions",
    "machine",
    "session",
    "client",
]


@pytest.fixture(scope="module")
def run():
    """600 requests on two machines, the last one refused."""
    rng, n = np.random.default_rng(4), 600
    arrive = np.cumsum(rng.exponential(0.1, n))
    admitted = arrive + rng.exponential(0.05, n)
    outputs, zeros = rng.integers(2, 50, n), np.zeros(n, dtype=np.int64)
    first = admitted + 0.1
    finish = first + 0.02 * (outputs - 1)
    for column in (admitted, first, finish):
        column[-1] = np.nan
    counts = np.zeros(GAP_BINS_PER_DECADE * GAP_DECADES)
    gaps = float(outputs[:-1].sum() - n + 1)
    counts[int(np.log10(0.02 / 1e-6) * GAP_BINS_PER_DECADE)] = gaps
    timeline = np.abs(rng.normal(1.0, 0.1, (300, len(TIMELINE))))
    steps = np.zeros((40, len(STEP)))
    at = {name: index for index, name in enumerate(STEP)}
    steps[:, at["machine"]] = np.arange(40) % 2
    steps[:, at["start_s"]] = np.arange(40) // 2 * 0.02
    steps[:, at["end_s"]] = steps[:, at["start_s"]] + 0.0125
    steps[::4, at["prompts"]], steps[::4, at["prompt_tokens"]], steps[2:, at["decodes"]] = 1, 512, 7
    return Simulated(
        requests=Requests(arrive_s=arrive, input_tokens=outputs * 9, output_tokens=outputs),
        arrive_s=arrive,
        admitted_s=admitted,
        first_token_s=first,
        finish_s=finish,
        cached_tokens=zeros,
        preemptions=zeros,
        machine=np.arange(n) % 2,
        gap_counts=counts,
        gap_sum_s=gaps * 0.02,
        gap_squares_s2=gaps * 0.0004,
        timeline_s=np.linspace(0, 60, 301),
        timeline=timeline,
        step_log=steps,
        num_steps=40,
        duration_s=60.0,
        num_machines=2,
        num_devices=4,
        energy_j=6e4,
        kv_capacity_bytes=50.0,
        idle_frac=0.2,
        max_running=64,
        counters={},
    )


@pytest.fixture
def answer(run):
    """Its answer, about a model with a wicked name."""
    found = summary(run, {"ttft": 0.2, "tpot": 0.05})
    return result_json(run, found, About(model_id=EVIL, request_rate_per_s=10.0, usd_per_s=0.01))


def read_parquet(path):
    """Columns of a Parquet file; null numbers come back as nan."""
    with duckdb.connect() as connection:
        found = connection.read_parquet(str(path)).fetchnumpy()
    return {name: np.ma.filled(c, np.nan) if c.dtype.kind == "f" else np.array(c.tolist()) for name, c in found.items()}


def test_parquet_holds_a_row_a_request(run, answer, tmp_path):
    write_result(run, answer, tmp_path / "run.parquet")
    table = read_parquet(tmp_path / "run.parquet")
    assert list(table) == COLUMNS
    np.testing.assert_array_equal(table["finish_s"], run.finish_s)
    np.testing.assert_array_equal(table["output_tokens"], run.requests.output_tokens)
    assert set(table["session"]) == {-1}


@pytest.mark.parametrize("rows", [0, 1, (1 << 17) + 1])
def test_parquet_of_any_size(rows, tmp_path):
    names = ["plain", "with space", 'quo"te', "a.b", "select"]
    table = {name: np.arange(rows) - 5 if i % 2 else np.arange(rows) / 7 for i, name in enumerate(names)}
    table["words"] = np.array([None if i % 3 else f"'{i}; DROP" for i in range(rows)], dtype=object)
    (tmp_path / "t.parquet").write_bytes(parquet_bytes(table))
    found = read_parquet(tmp_path / "t.parquet")
    assert list(found) == list(table)
    for name, column in table.items():
        assert found[name].tolist() == column.tolist()


def test_other_readers_agree(run, answer, tmp_path):
    arrow = pytest.importorskip("pyarrow.parquet")
    write_result(run, answer, tmp_path / "run.parquet")
    table = arrow.read_table(tmp_path / "run.parquet")
    assert (table.num_rows, sum(table["output_tokens"].to_pylist())) == (600, run.requests.output_tokens.sum())


def test_csv_leaves_what_never_happened_empty(run, answer, tmp_path):
    write_result(run, answer, tmp_path / "run.csv")
    rows = list(csv.DictReader((tmp_path / "run.csv").read_text().splitlines()))
    assert list(rows[0]) == COLUMNS
    assert (len(rows), rows[-1]["finish_s"], rows[-1]["client"]) == (600, "", "0")
    assert [float(r["arrive_s"]) for r in rows] == run.arrive_s.tolist()


def test_json_is_the_answer_in_detail(run, answer, tmp_path):
    write_result(run, answer, tmp_path / "run.json")
    read = json.loads((tmp_path / "run.json").read_text())
    assert read["p99_ttft_ms"] == answer["p99_ttft_ms"]
    assert len(read["ttfts"]) == 600


@pytest.mark.parametrize("name", ["run.trace.json", "run.perfetto.json"])
def test_a_trace_has_a_track_a_machine(run, answer, tmp_path, name):
    write_result(run, answer, tmp_path / name)
    events = json.loads((tmp_path / name).read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == 40
    assert {e["pid"] for e in slices} == {0, 1}
    assert slices[2]["dur"] == pytest.approx(12_500)
    assert slices[4]["ts"] == pytest.approx(40_000)
    assert [s["cat"] for s in slices[:5]] == ["prefill", "other", "decode", "decode", "mixed"]
    assert slices[4]["name"] == "mixed: 512 prompt tokens, 7 decodes"
    assert {e["name"] for e in events if e["ph"] == "C"} >= {"running", "waiting", "kv_bytes", "kv_use_frac"}
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {"machine 0", "machine 1", "all machines"}


def test_an_unknown_suffix_is_refused_and_leaves_no_file(run, answer, tmp_path):
    with pytest.raises(ScenarioError, match=r"end it in one of \.parquet"):
        write_result(run, answer, tmp_path / "run.xlsx")
    assert not list(tmp_path.iterdir())


def embedded(page):
    """The data that the page carries."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_report_is_one_safe_file(run, answer, tmp_path):
    answer |= {"settings": {"model": EVIL}, "notes": [EVIL]}
    write_result(run, answer, tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert "alert(1)</script>" not in page
    assert page.count("<script") == page.count("</script>") == 2
    assert not re.search(r"(?:src|href)\s*=|@import|url\(|https?://(?!www\.w3\.org/2000/svg)|eval\(|innerHTML", page)
    data = embedded(page)
    assert data[0]["model_id"] == data[0]["notes"][0] == EVIL
    assert data[0]["p99_e2el_ms"] == answer["p99_e2el_ms"]
    assert not {"ttfts", "errors"} & data[0].keys()
    assert len(page) < 80_000


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
@pytest.mark.parametrize("count", [1, 3])
def test_a_browser_draws_it(answer, tmp_path, count):
    page = tmp_path / "run.html"
    page.write_text(report_html([answer | {"request_rate": 10.0 * (i + 1)} for i in range(count)]))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom"]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    drawn = done.stdout.split('<script type="application/json"')[0]
    assert drawn.count("<path") >= 3 + 2 + 1 + 2 + (2 if count > 1 else 0)
    assert drawn.count("<circle") >= (count if count > 1 else 0)
    assert drawn.count('class="tile"') >= 8
    assert "599 of 600 requests" in drawn


def test_a_report_without_data_is_small():
    assert len(report_html([{"model_id": "m"}])) < 60_000
    with pytest.raises(ScenarioError, match="at least one result"):
        report_html([])


def test_long_curves_are_thinned_and_details_become_curves():
    ttfts = np.random.default_rng(1).exponential(1.0, 9000)
    result = {
        "model_id": "m",
        "ttfts": ttfts.tolist(),
        "output_lens": [11] * 9000,
        "latencies": (ttfts + 1).tolist(),
        "timeline": {"start_s": list(range(9000))},
        "p99_ttft_ms": float("nan"),
    }
    (data,) = embedded(report_html([result]))
    curves = data["latency_curves"]
    assert curves["ttft_ms"][curves["share"].index(0.99)] == pytest.approx(1e3 * np.percentile(ttfts, 99))
    assert curves["tpot_ms"][0] == pytest.approx(100.0)
    assert (len(data["timeline"]["start_s"]), data["p99_ttft_ms"]) == (1800, None)


def test_the_banner_is_vllms(answer):
    lines = banner(answer)
    assert lines[0] == "============ Serving Benchmark Result ============"
    assert lines[1:4] == [
        "Successful requests:                     599",
        "Failed requests:                         1",
        "Request rate configured (RPS):           10.00",
    ]
    assert lines[-1] == "=" * 50
    assert "-----Time per Output Token (excl. 1st token)------" in lines
    assert f"P99 TTFT (ms):                           {answer['p99_ttft_ms']:.2f}" in lines
    assert not any("concurrency" in line for line in lines)
    assert "Maximum request concurrency:             8" in banner(answer | {"max_concurrency": 8})


def test_the_terminal_shows_ours_too(answer, capsys):
    print_serving_result(answer)
    message = capsys.readouterr().out
    for word in ("in the queue", "cache in use", "preemptions", "energy per output token", "a million output tokens"):
        assert word in message
    assert "No limit reached" in message or "First limit reached" in message


def test_the_terminal_survives_an_answer_full_of_nulls(run, capsys):
    nothing = np.full(600, np.nan)
    empty = replace(
        run, finish_s=nothing, first_token_s=nothing, admitted_s=nothing, energy_j=0.0, gap_counts=run.gap_counts * 0
    )
    print_serving_result(result_json(empty, summary(empty, {}), About(model_id="m")))
    assert "Failed requests:                         600" in capsys.readouterr().out
