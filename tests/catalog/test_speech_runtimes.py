"""Runtimes of speech: every count cites where it was counted; fitted seconds are of their kind or of their engine."""

from dataclasses import replace

import pytest

from orrery.base.errors import UnknownName
from orrery.base.sources import Basis
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.speech_runtimes import fitted_constants, fitted_spread, get_runtime, runtime_names
from orrery.execution.speech_runtime import KERNELS_ALONE

DEVICE = get_device("a100-sxm-80gb")


def test_every_fact_of_a_runtime_has_a_source_or_says_that_it_is_assumed():
    for name in runtime_names():
        for fact in get_runtime(name, DEVICE).facts.values():
            assert fact.source or (fact.basis is Basis.ASSUMED and fact.note), (name, fact.name)


def test_spellings_lead_to_the_runtime():
    for spelled, name in (("CTranslate2", "faster-whisper"), ("hf", "transformers"), ("ggml", "whisper.cpp")):
        assert get_runtime(spelled, DEVICE).name == name
    assert get_runtime("kernels", DEVICE) is KERNELS_ALONE
    with pytest.raises(UnknownName, match="no runtime of speech"):
        get_runtime("nemo", DEVICE)


def test_seconds_are_those_of_the_kind():
    fitted = fitted_constants()
    for name, operator, pause in (
        ("openai-whisper", "eager_operator_s", fitted["eager_step_s"]),
        ("transformers", "eager_operator_s", fitted["eager_step_s"]),
        ("faster-whisper", "native_operator_s", fitted["native_step_s"]),
    ):
        runtime = get_runtime(name, DEVICE)
        assert (runtime.operator_s, runtime.step_s) == (fitted[operator], pause)
        assert runtime.spread == fitted_spread()
    graph = get_runtime("whisper.cpp", DEVICE)
    assert (graph.operator_s, graph.node_s) == (0.0, fitted["graph_node_s"])
    assert graph.step_s == fitted["native_step_s"]
    engine = get_engine("vllm", device=DEVICE)
    served = get_runtime("vllm", DEVICE)
    assert (served.operator_s, served.layer_s) == (engine.launch_s, engine.per_layer_s)
    assert served.num_decoder_operators == 0  # a graph


def test_a_slower_host_takes_longer():
    slow = replace(DEVICE, host_time_ratio=2.0)
    for name in ("transformers", "faster-whisper"):
        there, here = get_runtime(name, slow), get_runtime(name, DEVICE)
        assert (there.operator_s, there.step_s) == (2 * here.operator_s, 2 * here.step_s)


def test_an_eager_operator_is_between_a_launch_and_a_millisecond():
    fitted = fitted_constants()
    assert 5e-7 < fitted["graph_node_s"] < fitted["native_operator_s"]  # built, not launched
    assert 2e-6 < fitted["native_operator_s"] < fitted["eager_operator_s"] < 1e-4
    spread = fitted_spread()
    assert spread.low_95_ratio < spread.low_80_ratio < 1.0 < spread.high_80_ratio < spread.high_95_ratio
