"""What a check counts, declines, scores and writes."""

import csv

import pytest

from orrery.base.errors import ScenarioError
from orrery.evidence.check import check, check_table
from orrery.evidence.tables import read_table

GEMM = "kind,device,op,format,m,n,k,engine,time_s,colour\n"
SERVING = (
    "kind,model,device,num_devices,weights_format,engine,mode,input_tokens,output_tokens,batch_size,latency_s,outcome\n"
)


@pytest.fixture
def table(tmp_path):
    def write(text, name="runs.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_kernel_row_is_predicted_with_an_interval(table):
    found = check_table(read_table(table(GEMM + "kernel,h100-sxm,gemm,bf16,4096,4096,4096,tensorrt-llm,2.2e-4,red\n")))
    predicted = found.answers.predicted["time_s"][0]
    assert 1.4e-4 < predicted < 4e-4, "137 GFLOP at 989 TFLOP/s take 0.14 ms at best"
    assert found.answers.intervals["time_s"]["low_80"][0] < predicted * 1.2
    assert found.answers.bound_s[0] == pytest.approx(2 * 4096**3 / 989e12, rel=0.01)


def test_rows_are_counted_and_declined_once(table):
    report = check(
        [
            table(
                GEMM
                + "kernel,h100-sxm,gemm,bf16,64,4096,4096,,1e-5,\n"
                + "kernel,h900,gemm,bf16,64,4096,4096,,1e-5,\n"
                + "kernel,h100-sxm,juggle,bf16,64,4096,4096,,1e-5,\n"
                + "kernel,h100-sxm,gemm,bf17,64,4096,4096,,1e-5,\n"
                + "kernel,h100-sxm,gemm,bf16,,,4096,,1e-5,\n"
                + "kernel,h100-sxm,gemm,bf16,64,4096,4096,,,\n"
                + "kernel,h100-sxm,gemm,bf16,64,4096,4096,,-1,\n"
                + "training,,,,,,,,1,\n"
            )
        ]
    )
    assert report.rows == 6, "rows without a metric of their kind do not count"
    assert dict(report.declined) == {
        "unknown device h900": 1,
        "unknown op juggle": 1,
        "unknown format bf17": 1,
        "m is blank": 1,
        "time_s is not a positive number": 1,
    }
    assert [(g.by, g.metric, g.score.rows) for g in report.groups] == [({}, "time_s", 1)]


def test_a_row_of_an_unknown_device_is_declined_with_its_reason(table):
    report = check([table("kind,model,device,step_time_s\ntraining,x,y,1.5\n")])
    assert dict(report.declined) == {"unknown device y": 1}
    assert report.to_json()["declined"] == [{"reason": "unknown device y", "rows": 1}]


def test_groups_cover_all_rows_first(table):
    rows = "".join(
        f"kernel,{d},gemm,bf16,{m},4096,4096,,1e-4,\n" for d in ("h100-sxm", "a100-sxm-80gb") for m in (8, 512)
    )
    report = check([table(GEMM + rows)], by=["device"])
    assert [(dict(g.by), g.score.rows) for g in report.groups] == [
        ({}, 4),
        ({"device": "a100-sxm-80gb"}, 2),
        ({"device": "h100-sxm"}, 2),
    ]
    entry = report.to_json()["groups"][0]
    assert list(entry)[:8] == [
        "by",
        "metric",
        "rows",
        "median_abs_error_frac",
        "mean_abs_error_frac",
        "p90_abs_error_frac",
        "bias_frac",
        "covered_80_frac",
    ]


def test_rows_come_back_with_predictions(table, tmp_path):
    path = table(GEMM + "kernel,h100-sxm,gemm,bf16,64,4096,4096,,1e-5,red\nkernel,h900,gemm,bf16,1,1,1,,1e-5,blue\n")
    out = tmp_path / "out.csv"
    check([path], out=out)
    first, second = csv.DictReader(out.read_text().splitlines())
    assert first["colour"] == "red", "unknown columns are carried through"
    assert float(first["error_time_s"]) == pytest.approx(float(first["predicted_time_s"]) / 1e-5 - 1, rel=1e-4)
    assert second["predicted_time_s"] == ""
    assert second["declined"] == "unknown device h900"


def test_an_output_that_cannot_be_written_is_refused(table, tmp_path):
    path = table(GEMM + "kernel,h100-sxm,gemm,bf16,64,4096,4096,,1e-5,red\n")
    with pytest.raises(ScenarioError, match="no folder"):
        check([path], out=tmp_path / "nowhere" / "out.csv")
    with pytest.raises(ScenarioError, match=r"ends in \.csv"):
        check([path], out=tmp_path / "out.parquet")


def test_an_outcome_is_predicted_too(table):
    report = check(
        [
            table(
                SERVING
                + "serving,llama-3.1-8b,h100-sxm,1,bf16,vllm,static,128,128,1,1.1,ok\n"
                + "serving,llama-3.1-70b,h100-sxm,1,bf16,vllm,static,128,128,1,,out_of_memory\n"
                + "serving,llama-3.1-8b,h100-sxm,1,bf16,vllm,static,128,128,1,,out_of_memory\n"
            )
        ]
    )
    fits = next(g for g in report.groups if g.metric == "fits")
    assert report.rows == 3
    assert fits.score.rows == 3
    assert fits.score.mean_abs_error_frac == pytest.approx(1 / 3)


def test_blanks_take_defaults_that_the_report_names(table):
    text = (
        "kind,model,device,mode,input_tokens,output_tokens,latency_s\nserving,llama-3.1-8b,h100-sxm,static,128,128,1\n"
    )
    report = check([table(text)])
    assert report.assumed["engine: vllm"] == 1
    assert report.assumed["weights_format: bf16"] == 1
    assert report.assumed["batch_size: 1"] == 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("serving,no-such-model-7b,h100-sxm,1,,vllm,static,128,128,1,1,", "unknown model no-such-model-7b"),
        ("serving,llama-3.1-8b,h100-sxm,1,,no-such-engine,static,128,128,1,1,", "unknown engine no-such-engine"),
        ("serving,llama-3.1-8b,h100-sxm,1,,vllm,stotic,128,128,1,1,", "unknown mode stotic"),
        ("serving,llama-3.1-8b,h100-sxm,1,,vllm,closed,128,128,,1,", "concurrency is blank"),
        ("serving,llama-3.1-8b,,1,,vllm,static,128,128,1,1,", "device is blank"),
        ("serving,llama-3.1-8b,h100-sxm,1,,vllm,static,-5,128,1,1,", "input_tokens is negative"),
    ],
)
def test_a_row_is_declined_with_its_reason(table, row, reason):
    columns = SERVING.replace("batch_size", "batch_size").rstrip() + ",concurrency\n"
    report = check([table(columns + row + ",\n")])
    assert dict(report.declined) == {reason: 1}


def test_a_batch_that_reads_its_weights_faster_than_memory_gives_them_is_counted(table):
    """Llama-2-7B's 6.74 G parameters in 16 bits are 13.48 GB, which the A100's 2,039 GB/s bring in 6.61 ms: no token
    takes 5.2 ms, no batch of one or two decodes at 191 or 380 tokens a second; 7 ms, 150 and 300 are possible."""
    head = (
        "kind,model,device,num_devices,weights_format,engine,mode,output_tokens,batch_size,tpot_s,decode_tokens_per_s\n"
    )
    runs = ("1,0.0052,", "1,0.007,", "1,,191", "2,,380", "1,,150", "2,,300")
    rows = [f"serving,meta-llama/Llama-2-7b-hf,a100-sxm-80gb,1,fp16,vllm,static,512,{run}\n" for run in runs]
    path = table(head + "".join(rows))
    found = check_table(read_table(path))
    assert found.beats_bound().tolist() == [True, False, True, True, False, False]
    assert check([path]).beat_bound == 3
