"""Recipes over several seeds: means and ends, as the seeds say one by one."""

import json

import pytest

from orrery import quantize
from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.scenario.quantize_layers import Measurement
from orrery.scenario.quantize_seeds import over_seeds

ASKED = {"formats": "int4/32:fp16", "recipes": "low-rank", "rows": 48, "columns": 32}


def measurement(recipe: str, sqnr_db: float, error_frac: float) -> Measurement:
    return Measurement(
        source="drawn",
        tensor="outliers",
        format="int4",
        activations="int4",
        recipe=recipe,
        bits_per_element=4.0,
        output_sqnr_db=sqnr_db,
        output_error_frac=error_frac,
        weights_error_frac=2 * error_frac,
        extra_bytes=8.0,
        extra_flops_per_token=16.0,
        output_sqnr_low_db=sqnr_db,
        output_sqnr_high_db=sqnr_db,
    )


def test_means_and_ends_by_hand() -> None:
    first = [measurement("gptq", 10.0, 0.1), measurement("rearrange", 3.0, 0.5)]
    gptq, alone = over_seeds([first, [measurement("gptq", 16.0, 0.05)]])
    assert (gptq.output_sqnr_db, gptq.output_sqnr_low_db, gptq.output_sqnr_high_db) == (13.0, 10.0, 16.0)
    assert gptq.output_error_frac == pytest.approx(0.075)
    assert gptq.weights_error_frac == pytest.approx(0.15)
    assert (gptq.extra_bytes, gptq.num_seeds) == (8.0, 2)
    assert alone == first[1]  # it was left out with the other seed


def test_several_seeds_are_the_mean_of_one_by_one() -> None:
    both = quantize("outliers", seeds=2, seed=5, **ASKED)
    each = [quantize("outliers", seed=seed, **ASKED) for seed in (5, 6)]
    assert both.totals == each[0].totals
    for i, one in enumerate(both.layers):
        signal = [answer.layers[i].output_sqnr_db for answer in each]
        assert one.output_sqnr_db == pytest.approx(sum(signal) / 2)
        assert (one.output_sqnr_low_db, one.output_sqnr_high_db) == (min(signal), max(signal))
        assert one.num_seeds == 2
    assert any("recipes over 2, from 5 on" in note for note in both.notes)


def test_one_seed_is_no_seeds() -> None:
    assert quantize("outliers", seeds=1, **ASKED).to_json() == quantize("outliers", **ASKED).to_json()


def test_the_terminal_shows_the_ends(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["quantize", "outliers", "--rows", "48", "--columns", "32", "--formats", "int4/32:fp16"]
    assert run([*command, "--recipes", "low-rank", "--seeds", "2"]) == 0
    assert " dB to " in capsys.readouterr().out
    assert run([*command, "--recipes", "low-rank", "--seeds", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["layers"][0]
    assert found["output_sqnr_low_db"] < found["output_sqnr_db"] < found["output_sqnr_high_db"]
    assert run([*command, "--seeds", "2"]) == 2
    assert "those of recipes alone" in capsys.readouterr().err


def test_seeds_without_recipes_and_none_are_refused() -> None:
    with pytest.raises(ScenarioError, match="recipes alone"):
        quantize("normal", formats="fp8", seeds=3)
    with pytest.raises(ScenarioError, match="seeds"):
        quantize("outliers", seeds=0, **ASKED)
