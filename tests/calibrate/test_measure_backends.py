"""NumPy as a backend: what it does, cold and warm, and what it refuses; PyTorch beside it, where it is installed."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.calibrate.measure import torch_kernels
from orrery.calibrate.measure.backends.backend import Prepared, Unsupported, num_copies, rotating, time_prepared
from orrery.calibrate.measure.backends.on_numpy import NumpyBackend
from orrery.calibrate.measure.backends.torch_device import TorchDevice
from orrery.calibrate.measure.clock import Timed
from orrery.calibrate.measure.probes import Launch, Stream
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm, MoE

HEADS = {"num_heads": 4, "num_kv_heads": 2, "head_size": 16, "format": "fp32", "kv_format": "fp32"}
PROBES = [
    Gemm(m=3, n=8, k=5, format="fp32", is_cold=False),
    Gemm(m=3, n=8, k=5, format="fp32", batch=2, is_cold=False),
    AttentionPrefill(batch=2, query_tokens=3, context_tokens=7, **HEADS),
    AttentionDecode(batch=2, context_tokens=7, is_cold=False, **HEADS),
    *(
        Elementwise(kind=kind, tokens=4, width=64, format="fp32")
        for kind in ("norm", "rope", "gated_activation", "add")
    ),
    Elementwise(kind="sample", tokens=4, width=64, format="fp32"),
    *(Stream(footprint_bytes=4096, kind=kind) for kind in ("read", "copy", "add")),
    Launch(),
]


@pytest.mark.parametrize("probe", PROBES, ids=lambda p: f"{type(p).__name__}-{getattr(p, 'kind', '')}")
def test_numpy_times_what_it_offers(probe):
    prepared = NumpyBackend().prepare(probe)
    assert isinstance(prepared, Prepared)
    timed = time_prepared(NumpyBackend(), prepared, budget_s=0.001, least_samples=3)
    assert isinstance(timed, Timed)
    assert 0 < timed.fastest_s <= timed.time_s


@pytest.mark.parametrize(
    ("probe", "shape"),
    [
        (Gemm(m=3, n=8, k=5, format="fp32", is_cold=False), (3, 8)),
        (Gemm(m=3, n=8, k=5, format="fp32", batch=2, is_cold=False), (2, 3, 8)),
        (Elementwise(kind="norm", tokens=4, width=64, format="fp32"), (4, 64)),
        (Elementwise(kind="gated_activation", tokens=4, width=64, format="fp32"), (4, 64)),  # width is what leaves
        (Elementwise(kind="sample", tokens=4, width=64, format="fp32"), (4,)),
        (Elementwise(kind="rope", tokens=4, width=256, format="fp32"), (4, 2, 128)),
    ],
)
def test_what_leaves_has_the_size_that_the_op_says(probe, shape):
    assert NumpyBackend().prepare(probe).call().shape == shape


@pytest.mark.parametrize(
    ("probe", "word"),
    [
        (Gemm(m=1, n=8, k=8, format="bf16"), "bf16"),
        (Gemm(m=np.array([1, 2]), n=8, k=8, format="fp32"), "arrays"),
        (Gemm(m=1, n=2**20, k=2**20, format="fp32"), "GiB"),
        (AttentionPrefill(batch=1, query_tokens=4, context_tokens=2, **HEADS), "new tokens"),
        (AttentionPrefill(batch=1, query_tokens=4, context_tokens=4, window_tokens=2, **HEADS), "window"),
        (AttentionPrefill(batch=1, query_tokens=4, context_tokens=4, is_causal=False, **HEADS), "causal"),
        (AttentionDecode(batch=1, context_tokens=4, **{**HEADS, "num_kv_heads": 3}), "whole groups"),
        (AttentionDecode(batch=1, context_tokens=4, **{**HEADS, "kv_format": "fp8"}), "fp8"),
        (Elementwise(kind="quantise", tokens=4, width=64, format="fp32"), "quantise"),
        (
            MoE(tokens=4, hidden_size=8, ffn_size=8, num_experts=2, experts_per_token=1, format="fp32"),
            "MoE",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(probe, word):
    refused = NumpyBackend().prepare(probe)
    assert isinstance(refused, Unsupported)
    assert word in refused.reason


def test_cold_weights_come_round_after_the_cache_has_seen_others(monkeypatch):
    backend, cache_bytes = NumpyBackend(), 2**20
    monkeypatch.setattr("orrery.calibrate.measure.backends.on_numpy.last_level_cache", lambda: None)
    monkeypatch.setattr("orrery.calibrate.measure.backends.on_numpy.FALLBACK_CACHE_BYTES", cache_bytes)
    seen = []
    monkeypatch.setattr(
        "orrery.calibrate.measure.numpy_kernels.product", lambda x, w: seen.append((w.ctypes.data, w.nbytes))
    )
    cold = backend.prepare(Gemm(m=1, n=256, k=256, format="fp32"))
    for _ in range(40):
        cold.call()
    again = next(i for i in range(1, 40) if seen[i] == seen[0])
    assert sum(size for _, size in set(seen[:again])) >= 2 * cache_bytes
    assert seen[again : 2 * again] == seen[:again][: len(seen[again : 2 * again])]
    seen.clear()
    warm = backend.prepare(Gemm(m=1, n=256, k=256, format="fp32", is_cold=False))
    for _ in range(5):
        warm.call()
    assert len(set(seen)) == 1


def test_operands_stay_within_their_share_of_memory():
    assert num_copies(1.0, 100.0, 1e9, is_cold=True) == 200
    assert num_copies(1e9, 1.0, 1e10, is_cold=True) == 2
    assert num_copies(1e9, 1.0, 1e10, is_cold=False) == 1
    assert isinstance(num_copies(1e9, 1.0, 3e9, is_cold=False), Unsupported)


def test_rotating_takes_each_set_in_turn():
    seen = []
    call = rotating(seen.append, [(1,), (2,), (3,)])
    for _ in range(7):
        call()
    assert seen == [1, 2, 3, 1, 2, 3, 1]


def test_streams_are_cut_into_equal_arrays():
    assert Stream(footprint_bytes=2400, kind="add").elements == 200
    assert Stream(footprint_bytes=2400).elements == 300
    with pytest.raises(ValueError, match="triad"):
        Stream(footprint_bytes=2400, kind="triad")


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


@pytest.mark.slow
@pytest.mark.parametrize(("tokens", "past"), [(1, 7), (5, 0), (5, 3)])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_pytorch_attends_as_numpy_does(torch, tokens, past, kv_heads):
    from orrery.calibrate.measure import numpy_kernels, torch_kernels

    draw = np.random.default_rng(0).standard_normal
    query = draw((2, tokens, 4, 8)).astype(np.float32)
    key, value = (draw((2, tokens, kv_heads, 8)).astype(np.float32) for _ in range(2))
    keys, values = (draw((2, kv_heads, 12, 8)).astype(np.float32) for _ in range(2))
    retained = [torch.from_numpy(cache.copy()) for cache in (keys, values)]
    tensors = [torch.from_numpy(x) for x in (query, key, value)]
    got = torch_kernels.attend(*tensors, *retained, torch_kernels.turns(8, 12, tensors[0]), past)
    want = [numpy_kernels.attend(query[i], key[i], value[i], keys[i], values[i], past) for i in range(2)]
    np.testing.assert_allclose(got.numpy(), np.stack(want), atol=2e-6)
    np.testing.assert_allclose(retained[0].numpy(), keys, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["norm", "gated_activation", "sample"])
def test_pytorch_does_the_small_kernels_as_numpy_does(torch, kind):
    from orrery.calibrate.measure import numpy_kernels, torch_kernels

    draw = np.random.default_rng(1).standard_normal
    shapes = {"norm": [(4, 16), (4, 16), (16,)], "gated_activation": [(4, 32)], "sample": [(4, 16)]}[kind]
    arrays = [draw(shape).astype(np.float32) for shape in shapes]
    got = getattr(torch_kernels, kind)(*(torch.from_numpy(a.copy()) for a in arrays))
    np.testing.assert_allclose(got.numpy(), getattr(numpy_kernels, kind)(*arrays), atol=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("probe", PROBES, ids=lambda p: f"{type(p).__name__}-{getattr(p, 'kind', '')}")
def test_pytorch_times_what_numpy_does(probe):
    from orrery.calibrate.measure.backends.on_pytorch import PytorchBackend

    backend = PytorchBackend("cpu")
    assert isinstance(backend.prepare(probe), Prepared)
    assert "fp32" in backend.formats()
    assert isinstance(backend.prepare(Gemm(m=4, n=16, k=16, format="mxfp4")), Unsupported)


def test_memory_that_pytorch_keeps_for_later_is_free_for_operands(monkeypatch):
    properties = SimpleNamespace(name="Board", total_memory=80e9, multi_processor_count=132, uuid="ab-1")
    cuda = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 1,
        get_device_properties=lambda name: properties,
        mem_get_info=lambda name: (10e9, 80e9),
        memory_reserved=lambda name: 30e9,
        memory_allocated=lambda name: 5e9,
    )
    mps = SimpleNamespace(mps=SimpleNamespace(is_available=lambda: False))
    played = SimpleNamespace(cuda=cuda, backends=mps, version=SimpleNamespace(hip=None))
    monkeypatch.setattr(torch_kernels, "load", lambda: played)
    device = TorchDevice("cuda:0")
    assert device.free_bytes() == 35e9
    assert device.board == "GPU-ab-1"
    del properties.uuid
    assert device.board == ""
