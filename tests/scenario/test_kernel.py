"""`orrery kernel`: every operator on every device obeys roofs and intervals; variants gain only where they should."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernel_answers import rows

import orrery
from orrery.base.errors import OrreryError, OutOfRange, ScenarioError, UnknownName, WrongType
from orrery.catalog.devices import device_names, get_device
from orrery.scenario.fields_kernel import OPERATORS as LISTED
from orrery.scenario.kernel.operators import OPERATORS
from orrery.scenario.kernel.sweep import read_sweeps

SIZES = {
    "m": (1, 4096),
    "n": (16, 8192),
    "k": (16, 8192),
    "batch": (1, 8),
    "groups": (1, 16),
    "query_tokens": (1, 2048),
    "context_tokens": (2048, 8192),
    "tokens": (1, 4096),
    "width": (16, 8192),
    "depth": (1, 8),
    "hidden_size": (128, 4096),
    "ffn_size": (128, 4096),
    "num_experts": (8, 128),
    "experts_per_token": (1, 8),
    "keys": (1, 2**28),
    "log2_rows": (4, 8),
    "seq_len": (1, 2048),
    "state_size": (8, 256),
    "ops": (1, 500),
    "pixels": (1, 100_000),
    "inputs": (1, 512),
    "outputs": (1, 512),
    "devices": (2, 16),
    "message_bytes": (1, 1e9),
    "leaves": (1, 8),
    "hosts_per_leaf": (1, 8),
}


FIXED = {"fabric": "fat-tree", "model": "bert-base-uncased", "num_heads": 16, "num_kv_heads": 4, "head_size": 128}


NEEDED = {
    "chain": ("ops", "pixels", "batch"),
    "all-reduce": ("devices",),
    "all-gather": ("devices",),
    "reduce-scatter": ("devices",),
    "all-to-all": ("devices",),
    "broadcast": ("devices",),
    "attention": ("context_tokens", "batch"),
    "latent-attention": ("context_tokens", "batch"),
    "gemm": ("batch",),
    "rnn": ("batch",),
    "launch-queue": ("model",),
    "permutation": ("fabric",),
}


DEVICES = ("h100-sxm", "a100-sxm-80gb", "mi300x", "l4", "b200", "tpu-v5p", "max-1550", "rtx-3090", "gaudi2", "t4")


@st.composite
def questions(draw):
    op = draw(st.sampled_from(sorted(OPERATORS)))
    needed = [n for n, default in OPERATORS[op].sizes.items() if default is None] + list(NEEDED.get(op, ()))
    message = {n: FIXED[n] if n in FIXED else draw(st.integers(*map(int, SIZES[n]))) for n in dict.fromkeys(needed)}
    if op == "rnn":
        message["hidden_size"] = 16 * (message["hidden_size"] // 16)
    return {"op": op, "device": draw(st.sampled_from(DEVICES)), **message}


def test_the_help_lists_every_operator_and_its_sizes():
    assert list(LISTED) == list(OPERATORS)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(questions())
def test_no_answer_beats_its_roofs_and_intervals_hold_the_answer(message):
    try:
        answer = orrery.kernel(**message)
    except OutOfRange:  # the device lacks something, and the message says what
        return
    device = get_device(message["device"])
    for row in answer.rows:
        assert math.isfinite(row.time_s)
        assert row.time_s > 0
        for name, roof_s in row.roofs_s.items():
            assert row.time_s >= roof_s * (1 - 1e-9), (row.variant, name)
        if row.interval:
            assert row.interval.low_95 <= row.interval.low_80 <= row.time_s * (1 + 1e-9)
            assert row.time_s * (1 - 1e-9) <= row.interval.high_80 <= row.interval.high_95
        else:
            assert "no interval" in row.because
        assert row.bound_by
        assert row.flops >= 0
        assert row.bytes >= 0
        if "memory" in row.roofs_s:
            assert row.roofs_s["memory"] <= row.bytes / device.memory_bandwidth_bytes_per_s * (1 + 1e-9)
        if "compute" in row.roofs_s and row.flops:
            assert row.roofs_s["compute"] > 0
    json = answer.to_json()
    assert {"device", "op", "variant", "format", "time_s", "intervals", "bound_by", "flops", "bytes", "because"} <= set(
        json["results"][0]
    )


GROWS = {
    "softmax": "width",
    "norm": "width",
    "add": "tokens",
    "sort": "keys",
    "spgemm": "entries_per_row",
    "rnn": "seq_len",
    "tree-recurrence": "batch",
    "chain": "ops",
    "fused-mlp": "batch",
    "all-reduce": "message_bytes",
    "all-to-all": "message_bytes",
    "broadcast": "message_bytes",
    "gemm-reduce-scatter": "k",
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(questions().filter(lambda message: message["op"] in GROWS), st.integers(2, 8))
def test_more_work_of_a_kind_is_never_faster(message, more):
    # products and attention choose tiles, and learned corrections may step: those are not promised to be monotone
    name = GROWS[message["op"]]
    message.setdefault(name, OPERATORS[message["op"]].sizes[name])
    if name == "entries_per_row":
        more = 2
    try:
        less, larger = rows(**message), rows(**{**message, name: message[name] * more})
    except OrreryError:
        return
    for key in less.keys() & larger.keys():
        assert larger[key].bytes >= less[key].bytes * (1 - 1e-9), key
        assert larger[key].time_s >= less[key].time_s * (1 - 1e-9), key


def test_formats_that_a_device_lacks_are_refused():
    with pytest.raises(OutOfRange, match="no matrix units for fp8"):
        orrery.kernel(op="gemm", device="a100-sxm-80gb", m=64, n=64, k=64, format="fp8")
    answer = orrery.kernel(op="gemm", device="a100-sxm-80gb,h100-sxm", m=64, n=64, k=64, format="fp8")
    assert [row.device for row in answer.rows] == ["h100-sxm"]
    assert [d.device for d in answer.declined] == ["a100-sxm-80gb"]


@pytest.mark.parametrize(
    ("message", "error", "words"),
    [
        ({"op": "gemmm", "m": 1, "n": 1, "k": 1}, UnknownName, "'gemm'"),
        ({"op": "gemm", "m": 1}, ScenarioError, "n, k must be said"),
        ({"op": "gemm", "m": 1, "n": 1, "k": 1, "keys": 3}, ScenarioError, "does not ask for it"),
        ({"op": "gemm", "m": 1.5, "n": 1, "k": 1}, ScenarioError, "whole number"),
        ({"op": "gemm", "n": 1, "k": 1, "sweep": "m=1:8"}, ScenarioError, "first, last and step"),
        ({"op": "gemm", "n": 1, "k": 1, "sweep": "m=8:1:x2"}, ScenarioError, "below its first"),
        ({"op": "gemm", "n": 1, "k": 1, "sweep": "q=8"}, ScenarioError, "no size of this operator"),
        ({"op": "gemm", "n": 1, "k": 1, "sweep": "m=1:1e9:+1"}, ScenarioError, "cannot|got|values"),
        ({"op": "gemm", "m": 1, "n": 1, "k": 1, "sweep": "m=1,2"}, ScenarioError, "given and swept"),
        ({"op": "gemm", "m": 1, "n": 1, "k": 1, "variant": "pack"}, ScenarioError, "packed"),
        ({"op": "gemm", "m": 1, "n": 1, "k": 1, "variant": "packed"}, ScenarioError, "does not go with"),
        ({"op": "attention", "query_tokens": 8, "context_tokens": 4, "num_heads": 8}, ScenarioError, "counts both"),
        ({"op": "attention", "query_tokens": 8, "num_heads": 8, "num_kv_heads": 3}, ScenarioError, "divide"),
        ({"op": "attention", "query_tokens": 8, "num_heads": 8, "phase": "train"}, ScenarioError, "prefill, decode"),
        ({"op": "all-reduce", "message_bytes": 1, "routing": "ecmp", "devices": 4}, ScenarioError, "--fabric"),
        ({"op": "all-reduce", "message_bytes": 1}, ScenarioError, "--devices"),
        ({"op": None}, ScenarioError, "write one of"),
    ],
)
def test_mistakes_are_told(message, error, words):
    with pytest.raises(error, match=words):
        orrery.kernel(device="h100-sxm", **message)


def test_a_keyword_that_is_none_is_refused_with_its_neighbours():
    with pytest.raises((ScenarioError, WrongType), match="num_heads"):
        orrery.kernel(op="attention", device="h100-sxm", query_tokens=8, num_head=8)
    with pytest.raises(ScenarioError, match="device"):
        orrery.kernel(op="gemm", m=1, n=1, k=1)


def test_sweeps_are_read_as_written():
    takes = ("m", "k", "message_bytes")
    read = lambda text: read_sweeps([text], takes)  # noqa: E731
    assert read("m=1:4096:x4")["m"] == (1, 4, 16, 64, 256, 1024, 4096)
    assert read("m=1:100:x4")["m"] == (1, 4, 16, 64)
    assert read("m=64:256:+64")["m"] == (64, 128, 192, 256)
    assert read("m=1:256:5")["m"] == (1, 4, 16, 64, 256)
    assert read("m=1k,2k")["m"] == (1000, 2000)
    assert read("message_bytes=1KiB:4KiB:x2")["message_bytes"] == (1024.0, 2048.0, 4096.0)


def test_sweeps_make_a_grid_of_rows_that_equal_single_answers():
    answer = orrery.kernel(op="gemm", device="h100-sxm", k=512, sweep=["m=16:64:x2", "n=512,1024"])
    assert len(answer.rows) == 6
    for row in answer.rows:
        (alone,) = orrery.kernel(op="gemm", device="h100-sxm", k=512, m=row.sizes["m"], n=row.sizes["n"]).rows
        assert alone.time_s == row.time_s
        assert alone.interval == row.interval
    assert len(answer.at(m=16)) == 2


def test_scenario_and_keyword_give_the_same(tmp_path):
    from orrery.scenario.kernel.run import read_kernel

    message = {"op": "softmax", "device": "l4", "tokens": 64, "sweep": ["width=64:4096:x8"]}
    read_kernel(message).save(tmp_path / "kernel.toml")
    import tomllib

    retained = tomllib.loads((tmp_path / "kernel.toml").read_text(encoding="utf-8"))
    assert orrery.kernel(**retained).to_json() == orrery.kernel(**message).to_json()


def test_every_device_of_the_catalogue_answers_a_product_or_refuses():
    description = 0
    for name in device_names():
        try:
            (row, *_) = orrery.kernel(op="gemm", device=name, m=256, n=256, k=256).rows
        except OutOfRange:
            continue
        description += 1
        assert np.isfinite(row.time_s)
    assert description > 50


@pytest.mark.parametrize(
    ("asked", "setting", "is_used"),
    [
        ({"op": "gemm", "m": 64, "n": 512, "k": 512}, {"wide_frac": 0.2}, False),
        ({"op": "gemm", "m": 64, "n": 512, "k": 512}, {"tensors": "none.npy"}, False),
        (
            {"op": "gemm", "m": 64, "n": 512, "k": 512, "weights": "int4", "activations": "int4+int8"},
            {"wide_frac": 0.2},
            True,
        ),
        (
            {"op": "attention", "query_tokens": 256, "num_heads": 8},
            {"cold": True},
            False,
        ),
        ({"op": "rnn", "hidden_size": 512, "seq_len": 64}, {"meeting_s": 5e-6}, True),
        ({"op": "rnn", "hidden_size": 512, "seq_len": 64, "variant": "launched"}, {"meeting_s": 5e-6}, False),
        ({"op": "all-reduce", "devices": 16, "message_bytes": 1e6}, {"draws": 8}, False),
    ],
)
def test_a_setting_that_no_row_depends_on_is_told(asked, setting, is_used):
    device = "a100-sxm-80gb" if "activations" in asked else "h100-sxm"
    (name,) = setting
    plain, having = orrery.kernel(device=device, **asked), orrery.kernel(device=device, **asked, **setting)
    is_told = f"{name}: these rows are the same without it" in having.notes
    assert is_told is not is_used
    assert is_told is ([r.time_s for r in having.rows] == [r.time_s for r in plain.rows])
