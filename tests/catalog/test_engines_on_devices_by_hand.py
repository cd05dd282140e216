"""What an engine's settings and host work become on a device: by hand."""

from dataclasses import replace
from math import inf
from types import SimpleNamespace

import pytest

from orrery.catalog import engines
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine


def test_a_slow_host_takes_longer_for_its_own_work_alone():
    slow = SimpleNamespace(host_time_ratio=2.0)
    constants = {"step_s": 1e-3, "launch_s": 4e-6, "sampling_s": 1e-6, "per_layer_s": 8e-6, "memory_ratio": 1.5}
    assert engines.on_device(constants, slow) == constants | {"step_s": 2e-3, "launch_s": 8e-6}
    usual = get_engine("vllm", "0.11.0", get_device("b200"))
    later = engines._on_device(usual, 3.0, 1.0)
    for name in engines.HOST_WORK:
        assert getattr(later, name) == 3.0 * getattr(usual, name)
        assert later.facts[name].value == getattr(later, name)
    for name in ("sampling_s", "per_layer_s", "memory_ratio", "compute_ratio"):
        assert getattr(later, name) == getattr(usual, name)
    grace, plain = get_device("gb200"), replace(get_device("gb200"), host_time_ratio=1.0)
    assert grace.host_time_ratio == 1.2
    assert get_engine("vllm", "0.11.0", grace).step_s == 1.2 * get_engine("vllm", "0.11.0", plain).step_s


def test_few_compute_units_do_not_fill_a_fast_memory():
    """Ten units of 5 B/s ask for 50 B/s: of 25 B/s (1 + 0.5^4)^(1/4), of 50 B/s 2^(1/4), of 500 B/s ten times as long;
    endless units read as fast as the memory gives."""

    def device(bandwidth):
        return SimpleNamespace(memory_bandwidth_bytes_per_s=bandwidth, num_compute_units=10, host_time_ratio=1.0)

    assert engines.bandwidth_ratio(5.0, device(25.0)) == pytest.approx(1.0625**0.25)
    assert engines.bandwidth_ratio(5.0, device(50.0)) == pytest.approx(2**0.25)
    assert engines.bandwidth_ratio(5.0, device(500.0)) == pytest.approx(10.0, rel=1e-4)
    assert engines.bandwidth_ratio(inf, device(500.0)) == 1.0
    given = {"memory_ratio": 2.0, "compute_ratio": 3.0, "unit_bytes_per_s": 5.0}
    assert engines.on_device(given, device(50.0)) == pytest.approx(given | {"memory_ratio": 2.0 * 2**0.25})


def test_units_bind_on_fast_memories_alone():
    """The same kernels of llama.cpp on two chips of one generation, with 4.6 and 18.9 GB/s of memory a unit."""
    slow, fast = get_device("rtx-4000-ada"), get_device("a100-sxm-80gb")
    for device, lowest, highest in ((slow, 1.0, 1.15), (fast, 1.6, 3.0)):
        engine = get_engine("llama.cpp", "b4000", device)
        plain = engines._engine("llama.cpp", "b4000", device.generation)
        assert lowest < engine.memory_ratio / plain.memory_ratio < highest
        assert engine.facts["memory_ratio"].value == engine.memory_ratio
    assert get_engine("vllm", "", fast).unit_bytes_per_s == inf


@pytest.mark.parametrize(
    ("device", "tokens", "seqs", "wide"),
    [
        ("rtx-4090", 2048, 24, 80),
        ("l40s", 4096, 32, 160),
        ("h100-sxm", 8192, 256, 512),
        ("h200-sxm", 8192, 256, 512),
        ("b200", 16384, 512, 0),
        ("mi300x", 16384, 512, 0),
    ],
)
def test_what_goes_by_memory(device, tokens, seqs, wide):
    """24, 48, 80, 141, 180 and 192 GB: below 35, 60, 160 and 160 GiB, and above."""
    engine = get_engine("sglang", "0.5.9", get_device(device))
    assert (engine.max_num_batched_tokens, engine.max_num_graph_seqs, engine.max_num_wide_graph_seqs) == (
        tokens,
        seqs,
        wide,
    )
    assert get_engine("sglang", "0.5.9").max_num_batched_tokens == 8192  # no device: what the version says


@pytest.mark.parametrize(
    ("device", "tokens", "seqs"),
    [
        ("rtx-5090", 2048, 256),
        ("l40s", 2048, 256),
        ("a100-sxm-80gb", 2048, 256),
        ("mi250x", 2048, 256),
        ("rtx-pro-6000-server", 8192, 1024),
        ("h100-sxm", 8192, 1024),
        ("mi300x", 8192, 1024),
        ("tpu-v6e", 1024, 256),
    ],
)
def test_what_goes_by_memory_in_one_release(device, tokens, seqs):
    """32 and 48 GB lie below 70 GiB; A100 is named, though it has more, and a rank of an MI250X is one die of 64 GiB; a
    TPU has limits of its own. Releases before the first that asks for the memory have one answer for all."""
    engine = get_engine("vllm", "0.19.0", get_device(device))
    assert (engine.max_num_batched_tokens, engine.max_num_seqs) == (tokens, seqs)
    assert get_engine("vllm", "0.6.0", get_device(device)).max_num_seqs == 256


def test_pieces_are_for_cuda_alone():
    assert get_engine("sglang", "0.5.10", get_device("b200")).max_num_graph_tokens == 16384
    assert get_engine("sglang", "0.5.10", get_device("mi300x")).max_num_graph_tokens == 0
    assert get_engine("sglang", "0.5.9", get_device("b200")).max_num_graph_tokens == 0
