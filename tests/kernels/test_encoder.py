"""Encoders' attention: what it counts by hand, padded heads, and how near it is to measured kernels of encoders."""

from pathlib import Path

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.kernels import calibration, predict
from orrery.kernels.attention import encoder
from orrery.kernels.ops import AttentionPrefill

DATA = Path(__file__).parents[3] / "shared" / "data" / "kernels_aiconfigurator" / "encoder_attention_perf__all.parquet"


def op(**more):
    sizes = {"batch": 4, "query_tokens": 1024, "num_heads": 16, "head_size": 72} | more
    sizes = {"context_tokens": sizes["query_tokens"], "num_kv_heads": sizes["num_heads"]} | sizes
    return AttentionPrefill(**({"is_causal": False, "format": "bf16", "kv_format": "bf16"} | sizes))


def test_operations_and_bytes_are_of_the_heads_themselves():
    """Two products of 1024 x 1024 x 72 for each of 4 x 16 heads; queries, keys, values and results once."""
    found = predict(op(), get_device("gb300"), "sglang")
    assert found.flops == 2 * 2 * 1024 * 1024 * 72 * 4 * 16
    assert found.bytes == 4 * (1024 * 4 * 16 * 72) * 2


def test_padded_heads_take_what_the_next_size_takes():
    constants = np.array([1.0] * 14 + [64.0, 64.0])
    wide = encoder.padded([1, 2, 2, 16, 16, 72, 0, 0], constants)
    assert (int(wide[encoder.HEAD_SIZE]), int(wide[encoder.VALUE_SIZE])) == (128, 0)
    constants[-2:] = 16.0
    assert [int(encoder.padded([1, 2, 2, 16, 16, d, 0, 0], constants)[5]) for d in (64, 72, 80)] == [64, 80, 80]
    constants[-1] = 256.0  # another kernel for heads that are no whole sixteens
    assert [int(encoder.padded([1, 2, 2, 16, 16, d, 0, 0], constants)[5]) for d in (64, 72, 80)] == [64, 256, 80]


def test_arrays_say_what_numbers_say():
    device, tokens = get_device("h100-sxm"), np.array([64, 500, 4096])
    together = predict(op(query_tokens=tokens, context_tokens=tokens), device, "vllm")
    for i, n in enumerate(tokens.tolist()):
        alone = predict(op(query_tokens=n), device, "vllm")
        assert alone.time_s == pytest.approx(together.time_s[i], rel=1e-12)
        assert np.ndim(alone.time_s) == 0
        assert alone.time_s >= alone.compute_s


@pytest.mark.parametrize(
    ("more", "is_encoder"),
    [
        ({}, True),
        ({"is_causal": True}, False),
        ({"head_size": 128}, False),
        ({"context_tokens": 2048}, False),
        ({"window_tokens": 128}, False),
    ],
)
def test_only_whole_sequences_of_measured_heads_are_encoders(more, is_encoder):
    found = calibration(op(**more), get_device("h100-sxm"), "vllm")
    assert found.op == ("attention_encoder" if is_encoder else "attention_prefill")


NAMES = {"h100_sxm": "h100-sxm", "b200_sxm": "b200", "l40s": "l40s", "rtx_pro_6000_server": "rtx-pro-6000-server"}


@pytest.mark.skipif(not DATA.exists(), reason="the measured tables are not beside this checkout")
@pytest.mark.parametrize(
    ("system", "framework", "limit"),
    [
        ("h100_sxm", "VLLM", 0.08),
        ("h100_sxm", "TRTLLM", 0.05),
        ("b200_sxm", "VLLM", 0.07),
        ("b200_sxm", "SGLang", 0.08),
        ("l40s", "VLLM", 0.08),
        ("rtx_pro_6000_server", "VLLM", 0.05),
    ],
)
def test_measured_encoders_of_vision_models(system, framework, limit):
    import duckdb

    which = f"system = '{system}' and framework = '{framework}' using sample 5 % (bernoulli, 1)"
    rows = duckdb.execute(f"select * from '{DATA}' where {which}").fetchnumpy()
    names = {"batch": "batch_size", "query_tokens": "isl", "num_heads": "num_heads", "head_size": "head_dim"}
    sizes = {name: rows[column].astype(np.int64) for name, column in names.items()}
    engine = {"VLLM": "vllm", "SGLang": "sglang", "TRTLLM": "tensorrt-llm"}[framework]
    found = predict(op(**sizes), get_device(NAMES[system]), engine).time_s
    assert float(np.median(np.abs(found / (rows["latency"] * 1e-3) - 1))) < limit
