"""Which cause is named first when runs are slower than predicted, and what is said when nothing is wrong."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from orrery.base.errors import ScenarioError
from orrery.calibrate.compare.compare import compare_runs, compare_tables
from orrery.calibrate.compare.read import read_measured
from orrery.calibrate.compare.registry import known_causes
from orrery.calibrate.compare.run import predict
from orrery.cli.calibrate_compare import command
from orrery.evidence.check import check_table
from orrery.evidence.tables import Table

CAUSES = {cause.name: cause for cause in known_causes()}


def table(rows):
    return Table("runs.csv", {c: [row.get(c, "") for row in rows] for c in dict.fromkeys(k for r in rows for k in r)})


def training(num_devices, tp, pp, *, seq_len=4096, model="llama-3.1-8b", device="h100-sxm"):
    return {
        "kind": "training",
        "model": model,
        "device": device,
        "num_devices": str(num_devices),
        "devices_per_node": "8",
        "tp": str(tp),
        "pp": str(pp),
        "dp": str(num_devices // tp // pp),
        "sharding": "zero3" if pp == 1 else "zero1",
        "micro_batch": "1",
        "global_batch": str(2 * num_devices),
        "seq_len": str(seq_len),
        "precision": "bf16",
        "recompute": "none",
        "framework": "megatron-lm",
        "tokens_per_s_per_device": "1",
    }


def serving(**cells):
    return {
        "kind": "serving",
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "num_devices": "1",
        "tp": "1",
        "engine": "vllm",
        "engine_version": "0.11.0",
        **cells,
    }


TRAINING = [
    training(8, 1, 1),
    training(8, 2, 1),
    training(16, 2, 1, seq_len=2048),
    training(64, 2, 2),
    training(128, 1, 1),
]
STATIC = [
    serving(mode="static", batch_size=str(b), input_tokens=str(i), output_tokens=str(o), ttft_s="1", tpot_s="1")
    for b, i, o in ((1, 512, 128), (16, 512, 128), (4, 4096, 32))
]
CLOSED = [
    serving(
        mode="closed",
        concurrency=str(c),
        input_tokens="256",
        output_tokens="64",
        num_requests=str(4 * c),
        ttft_s="1",
        tpot_s="1",
        output_tokens_per_s="1",
    )
    for c in (1, 8, 48)
]


def measured(rows, fault="", severity=0.0, *, noise=0.03, seed=0, times=1.0):
    """Rows with what a fault makes of them, times a factor, and some noise."""
    rng = np.random.default_rng(seed)
    out = []
    for row, run in zip(rows, read_measured([table(rows)]).runs, strict=True):
        metrics = [m for m in row if row[m] == "1" and m.endswith(("_s", "_per_device"))]
        changed = (CAUSES[fault].change(run, severity) or run) if fault else run
        found = predict(changed, metrics)
        out.append(
            row | {m: repr(float(times * found[m].value * np.exp(noise * rng.standard_normal()))) for m in metrics}
        )
    return out


@pytest.mark.parametrize(
    ("fault", "severity"),
    [
        pytest.param("host-bound", 10.0, marks=pytest.mark.slow),
        pytest.param("pcie-instead-of-nvlink", 0.5, marks=pytest.mark.slow),
        ("slow-fabric", 0.1),
        pytest.param("data-loader", 2500.0, marks=pytest.mark.slow),
    ],
)
def test_a_fault_of_training_is_named_first_with_its_severity(fault, severity):
    answer = compare_tables([table(measured(TRAINING, fault, severity))])
    assert answer.suspects[0].cause == fault
    assert answer.suspects[0].severity == pytest.approx(severity, rel=0.15)
    assert answer.verdict == "explained"
    assert answer.nothing_frac < 0.01


@pytest.mark.parametrize(("fault", "severity"), [("host-bound", 8.0), ("slow-memory", 0.4), ("wrong-clocks", 0.3)])
def test_a_fault_of_a_static_batch_is_named_first_with_its_severity(fault, severity):
    answer = compare_tables([table(measured(STATIC, fault, severity))])
    assert answer.suspects[0].cause == fault
    assert answer.suspects[0].severity == pytest.approx(severity, rel=0.2)
    assert answer.suspects[0].evidence_frac > 0.5


@pytest.mark.parametrize(("fault", "severity"), [("front-end", 3e-4), ("network-to-client", 0.1)])
def test_a_fault_before_the_engine_is_named_first_where_requests_come_one_by_one(fault, severity):
    """Prompts of different lengths tell the two apart; static batches come to the engine without a front end."""
    served = [row | {"input_tokens": tokens} for row, tokens in zip(CLOSED, ("256", "4096", "1024"), strict=True)]
    answer = compare_tables([table(measured(served, fault, severity))])
    assert answer.suspects[0].cause == fault
    assert answer.suspects[0].severity == pytest.approx(severity, rel=0.2)
    assert answer.suspects[0].evidence_frac > 0.5
    at_once = compare_tables([table(measured(STATIC, fault, severity))])
    assert at_once.verdict == "within the interval"
    assert "Static batches" in at_once.excluded[fault]


def test_healthy_runs_name_nothing():
    for rows in (TRAINING[:3], STATIC):
        answer = compare_tables([table(measured(rows, noise=0.05))])
        assert answer.verdict == "within the interval"
        assert "nothing to explain" in answer.summary
        assert answer.second is None
        assert answer.next_run is None


def test_a_limit_that_the_rows_do_not_state_is_named_though_no_cause_made_the_runs():
    """The measurements are predictions of the same rows with the limit stated: another path than the cause's."""
    limited = [row | {"max_num_seqs": "6"} for row in CLOSED]
    answers = check_table(table(limited)).answers.predicted
    rows = [row | {m: repr(float(answers[m][i])) for m in answers} for i, row in enumerate(CLOSED)]
    answer = compare_tables([table(rows)])
    assert answer.suspects[0].cause == "batch-limit"
    assert answer.suspects[0].severity == 6.0
    assert any("48 in flight" in line for line in answer.suspects[0].speaks_for)
    assert answer.cells[-1].with_cause_frac == pytest.approx(0.0, abs=0.05)


def test_what_cannot_show_is_excluded_with_the_reason():
    answer = compare_tables([table(measured(STATIC))])
    for name in (
        "pcie-instead-of-nvlink",
        "slow-fabric",
        "fewer-devices",
        "unquantised",
        "recomputation",
        "stragglers",
    ):
        assert answer.excluded[name] == CAUSES[name].hides
        assert name not in [s.cause for s in answer.suspects]


def test_a_single_run_gives_an_answer_that_says_what_it_cannot_tell():
    one = [{k: v for k, v in measured(STATIC[:1], "slow-memory", 0.2)[0].items() if k != "ttft_s"}]
    answer = compare_tables([table(one)])
    assert answer.num_runs == 1
    assert len(answer.cells) == 1
    named = {answer.suspects[0].cause, *answer.suspects[0].not_told_from}
    assert "slow-memory" in named
    assert len(named) > 1
    assert answer.next_run is not None
    assert answer.next_run.difference_ratio > 1.0


def test_runs_that_only_state_throughput_are_compared_by_it():
    rows = [
        {k: v for k, v in row.items() if k not in ("ttft_s", "tpot_s")} | {"output_tokens_per_s": "1"} for row in STATIC
    ]
    answer = compare_tables([table(measured(rows, "slow-memory", 0.15))])
    assert {c.metric for c in answer.cells} == {"output_tokens_per_s"}
    assert answer.suspects[0].cause == "slow-memory" or "slow-memory" in answer.suspects[0].not_told_from


def test_runs_faster_than_predicted_blame_nobody():
    answer = compare_tables([table(measured(TRAINING[:3], times=5.0))])
    assert answer.verdict == "faster than predicted"
    assert answer.nothing_frac >= 0.5
    assert answer.cells[0].with_cause_frac == answer.cells[0].slower_frac < 0.0


def test_two_faults_are_found_one_after_the_other():
    twice = measured(TRAINING, "slow-fabric", 0.05, noise=0.01)
    slow = measured(TRAINING, "host-bound", 12.0, noise=0.01)
    clean = measured(TRAINING, noise=0.0)
    metric = "tokens_per_s_per_device"
    both = [
        a | {metric: repr(float(a[metric]) * float(b[metric]) / float(c[metric]))}
        for a, b, c in zip(twice, slow, clean, strict=True)
    ]
    answer = compare_tables([table(both)])
    assert answer.second is not None
    assert {answer.suspects[0].cause, answer.second.cause} == {"slow-fabric", "host-bound"}


def test_equal_metrics_count_once():
    row = serving(
        mode="static",
        batch_size="4",
        input_tokens="64",
        output_tokens="16",
        output_tokens_per_s="300",
        requests_per_s="9",
        tpot_s_p50="0.01",
        tpot_s_p99="0.02",
        itl_s="0.01",
    )
    assert [c.metric for c in read_measured([table([row])]).cells] == ["output_tokens_per_s", "itl_s"]


def test_rows_that_cannot_be_compared_are_counted_with_the_reason():
    rows = [
        *measured(STATIC[:1]),
        serving(mode="static", batch_size="4", input_tokens="64", output_tokens="16"),
        STATIC[0] | {"model": "no-such-model"},
        STATIC[0] | {"ttft_s": "0"},
        {
            "kind": "kernel",
            "device": "h100-sxm",
            "op": "gemm",
            "format": "bf16",
            "m": "1",
            "n": "1",
            "k": "1",
            "time_s": "1",
        },
    ]
    found = read_measured([table(rows)])
    assert len(found.runs) == 1
    assert found.declined == {
        "no measurement of speed, power or cache": 1,
        "unknown model no-such-model": 1,
        "ttft_s is zero": 1,
        "kind kernel: only serving and training runs are compared": 1,
    }


def test_nothing_to_compare_is_refused_with_the_reasons():
    with pytest.raises(ScenarioError, match=r"No run to compare: 1 x unknown model no-such-model\."):
        compare_tables([table([STATIC[0] | {"model": "no-such-model"}])])
    with pytest.raises(ScenarioError, match="no file"):
        compare_runs(["nowhere.csv"])


def test_the_answer_is_plain_json_and_a_table():
    answer = compare_tables([table(measured(STATIC[:2], "slow-memory", 0.3))])
    found = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    assert found["suspects"][0]["checks"]
    assert 0.0 <= found["nothing_frac"] <= 1.0
    assert sum(s["evidence_frac"] for s in found["suspects"]) == pytest.approx(1.0)
    assert answer.table().rows[0]["cause"] == answer.suspects[0].cause


def test_the_command_shows_bars_causes_and_checks_and_prints_one_object(tmp_path):
    rows = measured(STATIC[:2], "slow-memory", 0.3)
    path = tmp_path / "mine.csv"
    names = [c for c in rows[0] if c != "device"]
    path.write_text("\n".join(",".join(cells) for cells in [names, *([row[c] for c in names] for row in rows)]))
    shown = CliRunner().invoke(command, [str(path), "--device", "h100-sxm"])
    assert shown.exit_code == 0, shown.output
    for words in ("slow-memory", "check: nvidia-smi", "run 1 (batch 1, 512+128) tpot_s", "Cannot be it here"):
        assert words in shown.output
    result = CliRunner().invoke(command, [str(path), "--device", "h100-sxm", "--json"])
    assert json.loads(result.stdout)["suspects"][0]["cause"] == "slow-memory"
    with pytest.raises(ScenarioError, match="device"):
        CliRunner().invoke(command, [str(path)], catch_exceptions=False)
