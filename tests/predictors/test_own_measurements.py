"""Predictors on the user's own measurements: a table of products, timings of networks, a deployment."""

import itertools
import json

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.cli.main import run
from orrery.kernels.gemm import predict
from orrery.kernels.ops import Gemm
from orrery.predictors.cells.pool import bench
from orrery.predictors.cells.techniques.hardware_embedding import SPACE, reference_cells
from orrery.predictors.cells.timings import text_of
from orrery.scenario.experiment import run_experiment

SIZES = (256, 512, 1024, 2048)


@pytest.fixture
def products(tmp_path):
    """64 products of an L4 by the rules, and one of another card."""
    device, lines = get_device("l4"), ["op,device,format,m,n,k,time_s,power_w"]
    for m, n, k in itertools.product(SIZES, repeat=3):
        time_s = float(predict(Gemm(m=m, n=n, k=k, format="bf16", is_cold=False), device).time_s)
        lines.append(f"gemm,l4,bf16,{m},{n},{k},{time_s},{50 + 1e-9 * 2 * m * n * k}")
    lines.append("gemm,t4,fp16,256,256,256,1e-4,40")
    path = tmp_path / "products.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_forest_learns_and_is_judged_on_the_users_products(products):
    rows = run_experiment("gemm-forest", steps=10, data=products, device="l4").rows
    found = {(row["held_out"], row["predictor"]): row for row in rows}
    assert found["samples", "rules"]["time_mean_error_frac"] == pytest.approx(0.0, abs=1e-9)  # the table is the rules'
    assert found["samples", "forest"]["time_mean_error_frac"] > 0.0
    # power was written as a line of operations: a line finds it, also for shapes that were held out
    assert found["shapes", "line"]["power_r2"] > 0.99 > found["shapes", "roofs"]["power_r2"]


def test_a_table_without_enough_products_of_the_device_is_refused(products):
    with pytest.raises(ScenarioError, match="has 1 products"):
        run_experiment("gemm-forest", steps=2, data=products, device="t4")
    with pytest.raises(ScenarioError, match="no row of a10g"):
        run_experiment("gemm-forest", steps=2, data=products, device="a10g")


def test_drawn_products_are_judged_without_the_noise_that_was_added():
    rows = run_experiment("gemm-forest", steps=2).rows
    rules = next(row for row in rows if row["predictor"] == "rules")
    assert rules["power_median_error_frac"] == 0.0


@pytest.fixture
def timings(tmp_path):
    """Ten references and forty others on a machine whose truth is the data sheet's."""
    machine = bench(get_device("mi300x"), SPACE, 32).truth
    cells = np.concatenate([reference_cells(10), SPACE.draw(40, np.random.default_rng(5))])
    lines = [f"{text_of(cell)},{s}" for cell, s in zip(cells, machine.latency_s(cells), strict=True)]
    path = tmp_path / "timings.csv"
    path.write_text("\n".join(["network,latency_s", *lines]) + "\n")
    return path


def test_ten_of_the_users_timings_adapt_a_predictor_and_the_others_judge_it(timings):
    answer = run_experiment("few-shot-latency", steps=20, data=str(timings), device="mi300x", sizes=["batch=32"])
    found = {row["rule"]: row for row in answer.rows}
    assert found["physics-refit"]["rank_correlation"] > 0.99  # the file is its own physics
    assert found["hardware-embedding"]["median_error_frac"] > found["physics-refit"]["median_error_frac"]
    without = run_experiment("few-shot-latency", steps=2, data=str(timings), sizes=["batch=32"])
    assert "physics-refit" not in {row["rule"] for row in without.rows}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: lines[:5] + lines[6:], "known by ten networks; time"),
        (lambda lines: lines[:12], "time 3 or more to judge"),
        (lambda lines: [*lines, "12345,1"], "write 6 digits, each from 0 to 4"),
        (lambda lines: [*lines, "000000,-1"], "write seconds above 0"),
        (lambda lines: ["name,latency_s", *lines[1:]], "lacks network"),
    ],
)
def test_timings_that_do_not_do_are_refused(timings, change, words):
    timings.write_text("\n".join(change(timings.read_text().splitlines())) + "\n")
    with pytest.raises(ScenarioError, match=words):
        run_experiment("few-shot-latency", steps=2, data=str(timings))


def test_an_acceleration_is_named_for_a_deployment_and_all_are_simulated(tmp_path, capsys):
    path = tmp_path / "deployment.toml"
    path.write_text('model = "llama-3.2-1b"\ndevice = "l4"\ninput_tokens = 200\noutput_tokens = 40\nrate = 2.0\n')
    assert run(["experiment", "which-acceleration", "--deployment", str(path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert sum(row["is_chosen"] for row in rows) == 1
    assert rows[0]["is_chosen"]
    assert min(row["regret_frac"] for row in rows) == 0.0
    assert [row["acceleration"] for row in rows if row["is_best"]] == [
        row["acceleration"] for row in rows if row["regret_frac"] == 0.0
    ][:1]


def test_a_deployment_that_says_too_little_is_refused():
    with pytest.raises(ScenarioError, match="output_tokens, rate: missing"):
        run_experiment("which-acceleration", deployment={"model": "llama-3.2-1b", "device": "l4", "input_tokens": 9})
    with pytest.raises(ScenarioError, match="deployment: experiment qfx reads none"):
        run_experiment("qfx", deployment={"model": "llama-3.2-1b"})
