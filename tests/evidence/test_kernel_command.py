"""`orrery kernel` says of a measured row what the scorecard predicts for it."""

import os
from pathlib import Path

import numpy as np
import pytest

import orrery
from orrery.base.errors import OutOfRange
from orrery.evidence.check import check_table
from orrery.evidence.tables import read_table

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data"))
TABLES = sorted((DATA / "kernels").glob("*.csv*"))
ROWS = 40
SAME = {
    "batch",
    "context_tokens",
    "num_heads",
    "num_kv_heads",
    "head_size",
    "query_tokens",
    "window_tokens",
    "m",
    "n",
    "k",
    "tokens",
    "width",
    "hidden_size",
    "ffn_size",
    "num_experts",
    "experts_per_token",
    "tp",
    "ep",
    "groups",
    "value_head_size",
    "devices_per_node",
    "message_bytes",
}
OPS = {
    "gemm": "gemm",
    "grouped_gemm": "grouped-gemm",
    "moe": "moe",
    "attention_prefill": "attention",
    "attention_decode": "attention",
    "mla_prefill": "latent-attention",
    "mla_decode": "latent-attention",
    "norm": "norm",
    "rope": "rope",
    "gated_activation": "gated-activation",
    "add": "add",
    "embedding": "embedding",
    "softmax": "softmax",
}


def question(table, row):
    """A measured row as a question; None where the command has no such operator."""
    cell = {name: column[row] for name, column in table.columns.items()}
    if cell.get("kind") == "collective" or "collective" in cell:
        op = cell["collective"].replace("_", "-")
        if op not in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):
            return None
        message = {"op": op, "variant": "fastest", "devices": int(float(cell["num_devices"]))}
        message["engine"] = cell.get("library", "")
        if "," in message["engine"]:
            return None
    else:
        if (op := OPS.get(cell["op"])) is None:
            return None
        message = {"op": op, "variant": "library", "engine": cell.get("engine", "")}
        if cell.get("format"):
            message["format"] = cell["format"]
        if op in ("attention", "latent-attention"):
            message["phase"] = cell["op"].rpartition("_")[2]
            message |= {"query_tokens": 1} if message["phase"] == "decode" else {}
            if cell.get("kv_format"):
                message["kv"] = cell["kv_format"]
        if op == "moe":
            named = cell.get("moe_backend") or cell.get("kernel") or cell.get("engine_version")
            if named or cell.get("gated_ffn", "").casefold() in ("false", "0", "no"):
                return None  # other back ends, releases and blocks than the command's own
            message["routing"] = cell.get("routing") or "random"
    sizes = {key: int(float(cell[key])) for key in SAME & cell.keys() if cell[key]}
    if message["op"] == "latent-attention":
        sizes.pop("num_kv_heads", None)
    message |= {key: value for key, value in sizes.items() if value or key == "window_tokens"}
    if not message.get("engine"):
        message.pop("engine")
    known = set(orrery_sizes(message["op"])) | {"op", "variant", "engine", "format", "phase", "kv", "routing"}
    return {key: value for key, value in message.items() if key in known} | {"device": cell["device"]}


def orrery_sizes(op):
    from orrery.scenario.kernel.operators import OPERATORS

    return OPERATORS[op].sizes


@pytest.mark.skipif(not TABLES, reason="no measured tables beside the repository (set ORRERY_DATA)")
@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_a_measured_row_gets_the_prediction_of_the_scorecard(path):
    table = read_table(path)
    if "time_s" not in table.columns or not {"op", "collective"} & table.columns.keys():
        pytest.skip("rows of no operator")
    rows = np.random.default_rng(0).choice(len(table), size=min(ROWS, len(table)), replace=False)
    chosen = table.take(np.sort(rows))
    predicted = check_table(chosen).answers.predicted.get("time_s", np.full(len(chosen), np.nan))
    compared = 0
    for row, time_s in enumerate(predicted):
        if np.isnan(time_s) or (message := question(chosen, row)) is None:
            continue
        try:
            (answer,) = orrery.kernel(**message).rows
        except OutOfRange as refused:
            if "no matrix units" in str(refused):
                continue
            raise
        assert answer.time_s == pytest.approx(time_s, rel=1e-9), message
        compared += 1
    if path.name in (
        "gemm.csv.gz",
        "attention_prefill.csv.gz",
        "attention_decode.csv.gz",
        "mla.csv.gz",
        "collectives.csv.gz",
        "small_kernels.csv",
    ):
        assert compared > 5
