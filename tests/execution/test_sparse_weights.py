"""Weights of which N of M are kept: bytes and rates by hand, off, where nothing is gained, and what is refused."""

from dataclasses import replace

import pytest

from orrery import estimate, kernels, plan, simulate
from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.sparsity import pattern_of, sparse_facts
from orrery.execution.shard import shard
from orrery.hardware.sparsity import read_sparsity
from orrery.kernels.ops import Gemm

H100 = get_device("h100-sxm")
SERVED = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 128}
LARGE = Gemm(m=8192, n=8192, k=8192, format="bf16", quantises_input=False)
THIN = replace(LARGE, m=1)


PATTERNS = [("2:4", 0.5, 2), ("1:8", 0.125, 3), ("3:5", 0.6, 3), ("4:4", 1.0, 0)]
SPARSE = {"kept_frac": 0.5, "index_bits": 2}


@pytest.mark.parametrize(("text", "kept", "bits"), PATTERNS)
def test_a_pattern_as_it_is_written(text, kept, bits):
    found = read_sparsity(text)
    assert (found.kept_frac, found.index_bits, str(found)) == (kept, bits, text)


@pytest.mark.parametrize("text", ["", "2", "0:4", "5:4", "2:4:8", "-1:4", "2:65", "a:b"])
def test_what_is_no_pattern(text):
    with pytest.raises(ScenarioError, match="such as 2:4"):
        read_sparsity(text)


def test_roofs_of_a_sparse_product_by_hand():
    """Half of the operations; 2 and a quarter bytes for each kept weight, 16-bit inputs and results as before."""
    dense, sparse = (kernels.predict(replace(LARGE, **more), H100) for more in ({}, SPARSE))
    assert (dense.flops, sparse.flops) == (2.0 * 8192**3, 8192.0**3)
    assert sparse.compute_s == pytest.approx(dense.compute_s / 2)
    assert dense.bytes - sparse.bytes == pytest.approx(8192**2 * (2.0 - 0.5 * 2.25))
    assert 0.5 * dense.time_s <= sparse.time_s < 0.75 * dense.time_s


def test_a_thin_product_gains_bytes_alone():
    dense, sparse = (kernels.predict(replace(THIN, **more), H100) for more in ({}, SPARSE))
    assert 2.25 / 4 < sparse.time_s / dense.time_s < 0.75


def test_a_pattern_that_leaves_nothing_out_is_dense():
    assert kernels.predict(replace(LARGE, kept_frac=1.0), H100).time_s == kernels.predict(LARGE, H100).time_s
    plain, whole = (estimate(**SERVED, batch=8, **more).estimate for more in ({}, {"sparsity": "4:4"}))
    assert (plain.tpot_s, plain.memory) == (whole.tpot_s, whole.memory)


def test_layers_keep_half_of_their_weights_and_the_head_all():
    plain, sparse = (estimate(**SERVED, batch=8, **more).estimate.deployment for more in ({}, {"sparsity": "2:4"}))
    for dense, kept in zip(shard(plain).linears, shard(sparse).linears, strict=True):
        ratio = 1.0 if dense.is_head else 0.5 * 2.25 / 2.0
        assert kept.weight_bytes == pytest.approx(ratio * dense.weight_bytes)


def test_a_decode_gains_bytes_and_a_long_prompt_operations():
    plain, sparse = (estimate(**SERVED, batch=1, **more).estimate for more in ({}, {"sparsity": "2:4"}))
    assert 0.55 * plain.tpot_s < sparse.tpot_s < 0.75 * plain.tpot_s
    assert sparse.memory.weights_bytes < 0.65 * plain.memory.weights_bytes
    run, other = (simulate(**SERVED, rate=2, num_requests=50, **more).summary for more in ({"sparsity": "2:4"}, {}))
    assert run.tpot.mean_s < other.tpot.mean_s


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"device": "v100-sxm2-32gb"}, "has no unit that is known for sparse weights"),
        ({"device": "tpu-v5e", "model": "llama-3.2-1b"}, "has no unit that is known"),
        ({"sparsity": "1:4"}, "skips 2:4 alone"),
        ({"model": "mixtral-8x7b"}, "no kernel is known for sparse experts"),
    ],
)
def test_what_cannot_be_skipped_is_refused(settings, words):
    asked = {**SERVED, "batch": 1, "sparsity": "2:4", **settings}
    with pytest.raises(ScenarioError, match=words):
        estimate(**asked)


def test_an_fpga_skips_any_pattern_and_a_plan_says_what_is_not_measured():
    small = {"model": "llama-3.2-1b", "device": "alveo-u280", "weights": "int8", "batch": 1, "input_tokens": 128}
    quarter, half, dense = (
        estimate(**small, output_tokens=64, **more).estimate.tpot_s
        for more in ({"sparsity": "1:4"}, {"sparsity": "2:4"}, {})
    )
    assert quarter < half < dense
    found = plan(**SERVED, sparsity="2:4", max_devices=1)
    assert any(note.startswith("sparsity: no sparse product was measured") for note in found.notes)


def test_every_pattern_is_one():
    assert {pattern_of(name) for name in sparse_facts()} == {"2:4", "any"}
    assert pattern_of("volta") == ""
