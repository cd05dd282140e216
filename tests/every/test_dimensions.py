"""Dimensional analysis as a test: measure time in a unit a quarter as long, and every answer must follow.

Names carry units, so nothing is listed here: whatever ends in ``_s`` becomes four times as large, whatever ends in
``_per_s``, ``_hz`` or ``_w`` a quarter. A hidden number of seconds anywhere below serving breaks it.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest
from drawn_ops import ops

from orrery import kernels, network
from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.hardware.cluster import Cluster
from orrery.network import Collective
from orrery.reasoning.cost import cost
from orrery.reasoning.graph import Problem
from orrery.reasoning.shape import graph_of
from orrery.serving.estimate import estimate
from orrery.serving.workload import Workload

FACTOR = 4.0
NEARLY = 1e-9
"""Powers and logarithms of fitted exponents round; a hidden constant shows far above this."""


def exponent(name):
    """How often seconds enter a quantity of that name."""
    if name.endswith("_s2_per_bytes"):
        return 2
    if name.endswith(("_per_s", "_hz", "_w")) or "_per_s_per_" in name:
        return -1
    return 1 if name.endswith("_s") or "_s_per_" in name else 0


def slower(value, name=""):
    """The same object with every time in units a quarter as long."""
    scale = FACTOR ** exponent(name)
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, float | np.ndarray):
        return value * scale if exponent(name) else value
    if isinstance(value, Mapping):
        return {k: slower(v, k if exponent(str(k)) else name) for k, v in value.items()}
    if dataclasses.is_dataclass(value):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        retained = {"facts", "fact", "spread", "spreads", "range", "residual", "residuals", "trees"}
        return dataclasses.replace(value, **{k: slower(v, k) for k, v in fields.items() if k not in retained})
    return value


def quick(name):
    """A device whose answers may still change with the clock, and the same one on a slower clock."""
    device = get_device(name)
    return device, slower(device)


NAMES = ("h100-sxm", "a100-sxm-80gb", "b200", "l40s", "mi300x", "rtx-4090", "m2-ultra")


@pytest.mark.parametrize("name", NAMES)
def test_kernels_follow_the_clock(name):
    before, after = quick(name)
    for op in ops(np.random.default_rng(7), "bf16" if "bf16" in before.dense_flops_per_s else "fp16"):
        try:
            fast, slow = kernels.predict(op, before), kernels.predict(op, after)
        except OutOfRange:
            continue
        for field in ("time_s", "compute_s", "memory_s", "overhead_s"):
            np.testing.assert_allclose(
                np.asarray(getattr(slow, field)),
                FACTOR * np.asarray(getattr(fast, field)),
                rtol=NEARLY,
                err_msg=f"{type(op).__name__}.{field} on {name} hides a constant",
            )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "all_to_all"])
def test_collectives_follow_the_clock(name, kind):
    before, after = quick(name)
    work = Collective(kind=kind, num_devices=4, message_bytes=np.geomspace(1e3, 1e9, 30))
    fast, slow = network.predict(work, before), network.predict(work, after)
    np.testing.assert_allclose(np.asarray(slow.time_s), FACTOR * np.asarray(fast.time_s), rtol=NEARLY)


def deployment(device, engine):
    return Deployment(
        model=get_model("llama-3.1-8b"),
        cluster=Cluster(device=device, num_devices=2, devices_per_node=8),
        layout=Layout(tp=2),
        formats=Formats(weights="bf16", activations="bf16", kv="bf16"),
        engine=engine,
    )


@pytest.mark.parametrize("mode", ["static", "offline", "closed", "open"])
def test_serving_follows_the_clock(mode):
    before, after = quick("h100-sxm")
    engine = get_engine("vllm", "", before)
    load = {
        "static": {"batch_size": 8},
        "offline": {"num_requests": 500},
        "closed": {"concurrency": 24},
        "open": {"request_rate_per_s": 3.0},
    }
    workload = Workload(mode=mode, input_tokens=700, output_tokens=150, **load[mode])
    fast = estimate(deployment(before, engine), workload)
    slow = estimate(deployment(after, slower(engine)), slower(workload))
    for field in ("ttft_s", "tpot_s", "latency_s", "requests_per_s", "output_tokens_per_s", "total_tokens_per_s"):
        expected = getattr(fast, field) * FACTOR ** exponent(field)
        assert getattr(slow, field) == pytest.approx(expected, rel=1e-6), f"{field} of a {mode} run hides a constant"
    assert slow.memory == fast.memory


@pytest.mark.parametrize("shape", ["best-of-n", "sequential-revision"])
def test_answers_follow_the_clock(shape):
    before, after = quick("h100-sxm")
    engine, graph = get_engine("vllm", "", before), graph_of(shape, Problem(prompt_tokens=700, answer_tokens=150))
    fast = cost(graph, {"solver": deployment(before, engine)})
    slow = cost(graph, {"solver": deployment(after, slower(engine))})
    assert slow.time_s == pytest.approx(FACTOR * fast.time_s, rel=1e-6)
    assert slow.energy_j == pytest.approx(fast.energy_j, rel=1e-6)
    assert slow.peak_kept_bytes == fast.peak_kept_bytes
