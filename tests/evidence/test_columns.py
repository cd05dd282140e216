"""Tables that cannot be read are refused in one sentence: what was found, and what to write."""

import pytest

from orrery.base.errors import ScenarioError
from orrery.evidence.check import check
from orrery.evidence.metrics import base_metric, likest, measured_columns, mistaken_for

GEMM = "kind,device,op,format,m,n,k,"


def table(folder, text, name="runs.csv"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("device,time_s\nh100-sxm,1\n", r"has no column kind .*serving"),
        ("kind,time_s\nkernels,1\n", r"row 2, column kind: 'kernels' is none of"),
        ("kind,time_s\n,1\n", r"row 2, column kind: '' is none of"),
        (GEMM + "time_ms\nkernel,h100-sxm,gemm,bf16,1,1,1,2\n", r"'time_ms' looks like time_s.*0.0125"),
        ("kind,model,device,mode,ttft_ms\nserving,a,b,static,2\n", r"'ttft_ms' looks like ttft_s, .*in seconds"),
        ("kind,model,device,mode,TPOT (ms)\nserving,a,b,static,2\n", r"looks like tpot_s"),
        ("kind,model,device,mode,ttft_p99_ms\nserving,a,b,static,2\n", r"looks like ttft_s"),
        ("kind,model,device,mode,peak_memory_gb\nserving,a,b,static,2\n", r"looks like peak_memory_bytes"),
        ("kind,model,device,mode,power_kw\nserving,a,b,static,2\n", r"looks like power_w"),
        ("kind,model_name,device,mode,tpot_s\nserving,a,b,static,2\n", r"column model; the nearest .* .model_name"),
        ("kind,model,device,mode,tokens_per_sec\nserving,a,b,static,2\n", r"no .* measurement; 'tokens_per_sec'"),
        ("kind,device,op,time_s\nkernel,h100-sxm,gemm,1\n", r"rows of kind kernel need a column format"),
        ("kind,gpu,op,format,time_s\nkernel,h100-sxm,gemm,bf16,1\n", r"need a column device"),
        (GEMM + "time_s\nkernel,h100-sxm,gemm,bf16,x,1,1,2\n", r"row 2, column m: 'x' is not a number"),
        (GEMM + "time_s\nkernel,h100-sxm,gemm,bf16,1,1,1,2 ms\n", r"'2 ms' is not a number"),
        ("", r"is empty"),
        ("kind,time_s,time_s\nkernel,1,1\n", r"time_s is named twice"),
        ("kind,time_s\nkernel\n", r"row 2: has 1 cells"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path, text, says):
    with pytest.raises(ScenarioError, match=says):
        check([table(tmp_path, text)])


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match="There is no file"):
        check([tmp_path / "none.csv"])


def test_grouping_by_a_column_that_no_table_has(tmp_path):
    path = table(tmp_path, "kind,device,op,format,note\nkernel,h100-sxm,gemm,bf16,x\n")
    with pytest.raises(ScenarioError, match="did you mean 'device'"):
        check([path], by=["devise"])


def test_the_right_column_beside_the_wrong_one_is_enough():
    assert mistaken_for("time_us", "kernel") is not None
    assert mistaken_for("time_s", "kernel") is None
    assert mistaken_for("timer", "kernel") is None
    assert mistaken_for("latency_1024_tokens_s", "serving") is None


def test_percentiles_belong_to_their_metric():
    assert base_metric("ttft_s_p99") == "ttft_s"
    assert measured_columns("serving", ["ttft_s", "ttft_s_p99.9", "note"]) == ["ttft_s", "ttft_s_p99.9"]


def test_the_likest_column_is_one_that_no_schema_knows():
    """``tp`` and ``num_devices`` describe a run and ``ttft_s`` measures one, so none of them was meant by another."""
    assert likest("num_nodes", ["num_devices", "number_nodes", "tp"]) == "number_nodes"
    assert likest("num_nodes", ["num_devices", "ttft_s", "ttft_s_p99"]) == ""
    assert likest("concurrency", ["max_concurrency", "concurrenci"]) == "max_concurrency", (
        "one that holds it comes first"
    )
    assert likest("model", ["Model_Name", "modes"]) == "Model_Name"
    assert likest("concurrency", ["cc"]) == "", "two letters are in every word"
    assert likest("concurrency", ["concur"]) == "concur"
