"""Samples of products and what learns from them."""

import csv

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.predictors.products.compare import compared
from orrery.predictors.products.predictors import PREDICTORS
from orrery.predictors.products.samples import WANTED, drawn_samples, read_samples
from orrery.predictors.registry import known_experiments


@pytest.fixture(scope="module")
def drawn():
    return drawn_samples("rtx-4070", "fp32", seed=0)


def rows_of(found):
    return {(row["held_out"], row["predictor"]): row for row in found}


def test_the_grid_is_the_one_that_was_profiled(drawn):
    assert drawn.time_s.size == 16_128
    assert len(np.unique(drawn.shape_elements, axis=0)) == 36
    assert len(np.unique(drawn.block_elements, axis=0)) == 7
    assert np.array_equal(drawn_samples("rtx-4070", "fp32", seed=0).power_w, drawn.power_w)
    assert not np.array_equal(drawn_samples("rtx-4070", "fp32", seed=1).power_w, drawn.power_w)


def test_noise_is_as_wide_as_it_says(drawn):
    assert np.log(drawn.power_w / drawn.rule_w).std() == pytest.approx(0.104, rel=0.05)
    ratio = np.log(drawn.time_s / drawn.rule_s)
    same = (drawn.shape_elements == (1024, 1024, 1024)).all(axis=1)
    assert ratio[same].min() > -0.15
    assert ratio[same].max() < 0.25


def test_a_forest_beats_a_line_on_drawn_times_and_unseen_shapes_are_harder(drawn):
    few = drawn.rows(np.arange(0, 16_128, 13))
    found = rows_of(compared(few, trees=10, seed=0))
    assert set(found) == {(kind, name) for kind in ("samples", "shapes") for name in PREDICTORS}
    assert found["samples", "forest"]["time_r2"] > 0.97
    assert found["samples", "forest"]["power_r2"] > 0.7
    for name in ("forest of logarithms", "forest on rules"):
        assert found["samples", name]["time_mean_error_frac"] < found["samples", "line"]["time_mean_error_frac"]
    seen, unseen = (found[kind, "forest of logarithms"]["time_mean_error_frac"] for kind in ("samples", "shapes"))
    assert unseen > 2 * seen
    assert found["shapes", "forest on rules"]["time_mean_error_frac"] < unseen
    assert found["samples", "roofs"]["time_mean_error_frac"] > 0.2


def test_held_out_shapes_were_not_learned_from(drawn):
    seen = []

    def spy(known, queried_value, trees, seed):
        seen.append((known, queried_value))
        return np.column_stack([queried_value.judged_s, queried_value.judged_w])

    few = drawn.rows(np.arange(0, 16_128, 28))
    PREDICTORS["spy"] = spy
    try:
        rows = compared(few, names=("spy",))
    finally:
        del PREDICTORS["spy"]
    assert [row["time_mean_error_frac"] for row in rows] == [0.0, 0.0]
    for known, queried in seen:
        assert known.time_s.size + queried.time_s.size == few.time_s.size
        assert 0.1 < queried.time_s.size / few.time_s.size < 0.3
    known, queried = ({tuple(shape) for shape in part.shape_elements} for part in seen[1])
    assert not known & queried


def test_a_measured_table_takes_the_place_of_drawn_samples(tmp_path):
    path, rng = tmp_path / "measured.csv", np.random.default_rng(0)
    with path.open("w", newline="", encoding="utf-8") as lines:
        table = csv.writer(lines)
        table.writerow([*WANTED, "note"])
        for m in (256, 512, 1024, 2048):
            for n in (1024, 4096):
                for device in ("h100-sxm", "l40s"):
                    seconds = 2 * m * n * 4096 / 2e14
                    table.writerow(["gemm", device, "bf16", m, n, 4096, seconds, 300 * rng.uniform(0.9, 1.1), ""])
        table.writerow(["attention", "l40s", "bf16", 1, 1, 1, 1.0, 300.0, ""])
        table.writerow(["gemm", "l40s", "bf16", 1, 1, 1, 1.0, "", "no power"])
    found = read_samples(path)
    assert found.time_s.size == 16
    assert set(found.limit_w) == {700.0, 350.0}
    assert (found.rule_s > 0).all()
    rows = rows_of(compared(found, trees=5))
    assert rows["shapes", "line of logarithms"]["time_mean_error_frac"] < 1e-3, "these times are a power law"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("m,n,k\n1,1,1\n", "lacks op, device, format"),
        (",".join(WANTED) + "\n", "no row with op = gemm"),
        (None, "There is no file"),
    ],
)
def test_tables_of_something_else_are_refused_in_words(tmp_path, text, says):
    path = tmp_path / "table.csv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match=says):
        read_samples(path)


@pytest.mark.slow
def test_the_experiment_is_found_and_repeats_itself():
    experiment = known_experiments()["gemm-forest"]
    assert experiment(steps=2, seed=3) == experiment(steps=2, seed=3)
