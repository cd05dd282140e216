"""Every public function, given what it does not take: it answers, or says in the project's own words what is wrong."""

import contextlib
import inspect
import math
import time
from pathlib import Path

import numpy as np
import pytest

import orrery
from orrery.base.arguments import is_of, typed, words_of
from orrery.base.errors import OrreryError, WrongType
from orrery.calibrate.compare.compare import compare_runs
from orrery.catalog.agent_sessions import session_file
from orrery.catalog.trace_requests import requests_of
from orrery.evidence.paper_file import get_paper
from orrery.reports.make import report_of
from orrery.scenario.schema import read_scenario

MAX_S = 20.0
SERVED = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 64, "output_tokens": 8}
ONCE = {**SERVED, "rate": 1.0, "num_requests": 3}
LEARNED = {"model": "llama-3.1-8b", "device": "h100-sxm", "devices": 8, "global_batch": 16, "seq_len": 2048}
REWARDED = {
    "model": "llama-3.2-1b",
    "device": "h100-sxm",
    "devices": 8,
    "prompts_per_step": 2,
    "generations_per_prompt": 2,
    "output_tokens": 20,
    "max_output_tokens": 40,
}
LAYERS = {"model": "llama-3.1-8b", "device": "h100-sxm", "formats": "bf16,fp8", "size_ratio": 0.8}


class Odd:
    """Of nobody's, and without words."""

    def __repr__(self):
        raise RuntimeError("no words")


SESSIONS = session_file("example-agents")

WRONG = (
    None,
    "",
    "\x00",
    "x" * 300,
    "../..",
    "/",
    "~nobody/x",
    "/dev/null",
    0,
    -1,
    1.5,
    True,
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    -(10**30),
    [],
    {},
    (),
    [1],
    ["\x00"],
    {"a": 1},
    {1: 2},
    b"x",
    object(),
    Odd(),
    math,
    Path("/dev/null/nowhere.toml"),  # cannot be made, whoever runs the tests
    np.float32(3.5),
    np.zeros((2, 2)),
    np.array([object()]),
    1j,
    range(3),
)


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """A call of each that is right, or that is refused at its last check where it would take long."""
    folder = tmp_path_factory.mktemp("arguments")
    (folder / "table.csv").write_text("kind,device,op,m,n,k,format,time_s\nkernel,h100-sxm,gemm,64,64,64,bf16,1e-5\n")
    (folder / "scenario.toml").write_text('model = "llama-3.1-8b"\n')
    scenario, table = read_scenario(SERVED), str(folder / "table.csv")
    return {
        "bits": ((), LAYERS),
        "cache_size": ((), {"model": "llama-3.1-8b", "device": "h100-sxm", "sessions": str(SESSIONS)}),
        "calibrate_device": ((folder / "no" / "box.toml",), {"minutes": 0.1}),
        "calibrate_runs": (([table],), {"name": str(folder / "box"), "device": "h100-sxm"}),
        "check": (([table],), {}),
        "cold_start": ((), {"model": "llama-3.1-8b", "device": "h100-sxm"}),
        "compare": (([SERVED, SERVED],), {}),
        "compare_formats": (("fp8", "nvfp4"), {}),
        "estimate": ((scenario,), {}),
        "experiment": ((), {"experiment": "streamed-weights", "set": {"batch": 1}, "device": "alveo-u280", "steps": 1}),
        "find_capacity": ((scenario,), {"slo": ["ttft:1"], "num_requests": 3}),
        "simulate_fleet": ((), {**ONCE, "autoscaler": "hpa"}),
        "get_device": (("h100-sxm",), {}),
        "get_format": (("fp8",), {}),
        "get_model": (("llama-3.1-8b",), {}),
        "kernel": ((), {"op": "gemm", "device": "h100-sxm", "m": 64, "n": 64, "k": 64, "sweep": "batch=1,2"}),
        "load_scenario": ((folder / "scenario.toml",), {}),
        "load_trace": (("chat",), {}),
        "plan": ((scenario,), {"max_devices": 1, "rate": 1.0, "slo": ["tpot:50"]}),
        "quantize": (("normal",), {"formats": "fp8"}),
        "round_trip": (([1.0, 2.0], "fp8"), {}),
        "save_scenario": ((scenario, folder / "saved.toml"), {}),
        "scaling": ((), {"law": "fp-quantisation", "parameters": 1e9, "tokens": 1e10}),
        "search": ((), {"space": "cells", "device": "t4", "latency_ratio": 0.5}),
        "simulate": ((read_scenario(ONCE),), {}),
        "split": ((), {"model": "resnet-50", "device": "jetson-nano", "server": "l4", "link_rates": "1,10"}),
        "sweep": ((read_scenario(ONCE),), {"over": ["rate=1"], "jobs": 1}),
        "train": ((), LEARNED),
        "train_plan": ((), {**LEARNED, "count": 1}),
        "train_rl": ((), REWARDED),
        "train_rl_placement": ((), {**REWARDED, "devices": 2, "rl_placement": "symmetric"}),
        "train_rl_plan": ((), {**REWARDED, "devices": 2}),
        "compare_runs": (([table],), {}),
        "fit_trace": ((orrery.load_trace("chat"),), {}),
        "get_paper": (("distserve",), {}),
        "plan_disaggregated": ((scenario,), {"model": "llama-3.1-405b", "max_devices": 1}),  # which does not fit: quick
        "what_if": (("fp8-weights", scenario), {}),
        "requests_of": ((orrery.load_trace("chat"),), {"count": 5}),
        "read_scenario": ((SERVED,), {}),
        "report_of": ((None,), {}),
    }


DEEPER = (compare_runs, get_paper, report_of, requests_of, read_scenario)
FUNCTIONS = {
    **{name: found for name in orrery.__all__ if inspect.isfunction(found := getattr(orrery, name))},
    **{function.__name__: function for function in DEEPER},
}


@pytest.mark.filterwarnings("ignore:pathlib.Path.__enter__")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_argument_is_refused_in_our_own_words(bases, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, (args, kwargs) = FUNCTIONS[name], bases[name]
    is_open = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())
    named = [key for key, p in inspect.signature(function).parameters.items() if p.kind is p.KEYWORD_ONLY]
    for wrong in WRONG:
        calls = [((*args[:i], wrong, *args[i + 1 :]), kwargs) for i in range(len(args))]
        calls += [(args, {**kwargs, key: wrong}) for key in (*kwargs, *named, *(("model", "seed") if is_open else ()))]
        calls += [((wrong,), {})] if name == "get_format" else [((*args, wrong), kwargs), ((wrong,), {})]
        for given, settings in calls:
            begun_s = time.process_time()
            with contextlib.suppress(OrreryError):
                function(*given, **settings)
            assert time.process_time() - begun_s < MAX_S, (name, settings)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_missing_or_too_much_is_refused_too(name):
    if all(
        p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
        for p in list(inspect.signature(FUNCTIONS[name]).parameters.values())[:1]
    ):
        with pytest.raises(TypeError):
            FUNCTIONS[name]()
    with pytest.raises((OrreryError, TypeError)):
        FUNCTIONS[name](*[object()] * 9)


def test_a_refusal_names_function_argument_and_what_to_give():
    with pytest.raises(WrongType, match=r"^load_trace: seed: got 'x' of type str; give a whole number\.$"):
        orrery.load_trace("chat", seed="x")
    with pytest.raises(
        TypeError, match=r"check: paths: got 'a.csv' of type str; give a list, each item a path or text"
    ):
        orrery.check("a.csv")
    with pytest.raises(WrongType, match="save_scenario: missing a required argument: 'path'"):
        orrery.save_scenario(read_scenario(SERVED))


def test_numbers_of_numpy_are_numbers_and_truths_are_none():
    assert is_of(np.int64(3), int)
    assert is_of(np.float32(3), float)
    assert is_of(3, float)
    assert not is_of(True, int)
    assert not is_of(3.0, int)
    assert is_of((1.0, 2.0), tuple[float, float])
    assert not is_of((1.0,), tuple[float, float])
    assert words_of(tuple[float, float]) == "a list, each item a number"


def test_a_guarded_function_stays_itself():
    @typed
    def double(x: int, *more: str, key: list[int] | None = None) -> int:
        """Twice as much."""
        return 2 * x

    assert (double.__name__, double.__doc__, double(4, "a", key=[1])) == ("double", "Twice as much.", 8)
    for args, kwargs in (((1, 2), {}), ((1,), {"key": [1.5]}), (("1",), {}), ((), {}), ((1,), {"other": 1})):
        with pytest.raises(WrongType):
            double(*args, **kwargs)
