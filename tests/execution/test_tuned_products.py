"""Products that a server tunes at its start, where the engine's own timings were taken untuned."""

import numpy as np
import pytest
from batches import decodes

from orrery import kernels
from orrery.execution.shard import shard
from orrery.execution.step import step
from orrery.kernels.ops import Gemm

TOKENS = 4


def seconds(deployment, name, maker):
    x = next(x for x in shard(deployment).linears if x.name == name)
    op = Gemm(m=np.array([TOKENS]), n=x.n, k=x.k, batch=x.groups, format=x.format, quantises_input=False)
    return x.count * float(kernels.predict(op, deployment.cluster.device, maker).time_s[0])


def part(deployment, name):
    return float(next(p for p in step(deployment, decodes(TOKENS)).parts if p.name == name).time_s[0])


def test_nvfp4_products_are_those_of_the_tuned_library(deploy):
    served = deploy(
        model="llama-3.1-70b",
        device="b200",
        tp=8,
        weights="nvfp4",
        activations="nvfp4",
        engine="tensorrt-llm",
        engine_version="1.2",
    )
    for name in ("gate_up", "down"):
        assert part(served, name) == pytest.approx(seconds(served, name, "vllm"))
        assert part(served, name) < seconds(served, name, "tensorrt-llm")


def test_other_formats_are_the_engines_own(deploy):
    """FP8 products choose their kernel without an autotuner."""
    served = deploy(
        model="llama-3.1-70b", device="b200", tp=8, weights="fp8", engine="tensorrt-llm", engine_version="1.2"
    )
    for name in ("gate_up", "down"):
        assert part(served, name) == pytest.approx(seconds(served, name, "tensorrt-llm"))
