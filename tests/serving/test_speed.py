"""An estimate is quick enough to be asked a thousand times a second."""

import time

import pytest

from orrery.serving.estimate import estimate
from orrery.serving.workload import Workload


@pytest.mark.bench
def test_an_estimate_takes_less_than_a_millisecond(deploy):
    deployments = [deploy(tp=4), deploy(tp=8), deploy(tp=8, weights="fp8", activations="fp8", kv="fp8")]
    workloads = [Workload(mode="closed", input_tokens=i, output_tokens=200, concurrency=c)
                 for i in (500, 1000) for c in (4, 64)]  # fmt: skip
    for d in deployments:
        estimate(d, workloads[0])
    start = time.perf_counter()
    for _ in range(20):
        for d in deployments:
            for w in workloads:
                estimate(d, w)
    assert (time.perf_counter() - start) / (20 * len(deployments) * len(workloads)) < 1e-3
