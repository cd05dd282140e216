"""A large table is scored in seconds."""

import time

import numpy as np
import pytest

from orrery.evidence.check import check


@pytest.mark.bench
def test_a_hundred_thousand_kernels_in_seconds(tmp_path):
    rng = np.random.default_rng(0)
    sizes = np.rint(np.exp(rng.uniform(np.log(16), np.log(16384), (100_000, 3)))).astype(int)
    rows = "".join(f"kernel,h100-sxm,gemm,bf16,{m},{n},{k},tensorrt-llm,1e-4\n" for m, n, k in sizes)
    path = tmp_path / "many.csv"
    path.write_text("kind,device,op,format,m,n,k,engine,time_s\n" + rows)
    check([path])  # compiles
    started = time.perf_counter()
    assert check([path]).rows == 100_000
    took_s = time.perf_counter() - started
    print(f"\n100,000 kernel rows in {took_s:.2f} s")
    assert took_s < 6.0
