"""A smaller cache in estimate, plan and simulate: shares, files, chosen positions; off, limits and refusals."""

import json

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.ask import Answer, estimate, plan
from orrery.scenario.simulate import simulate

LONG = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 8192, "output_tokens": 129}
CHOSEN = {"kv_selection": "snapkv", "kv_budget_tokens": 1024}


def estimated(**more) -> Answer:
    found = estimate(**{**LONG, "concurrency": 16, **more})
    assert isinstance(found, Answer)
    return found


def figures(answer):
    return {k: v for k, v in answer.to_json().items() if k not in ("settings", "notes", "kv_selection")}


@pytest.mark.parametrize("off", [{"kv_kept_bytes": 1.0}, {"kv_kept_tokens": 1.0}, {"kv_selection": None}])
def test_keeping_all_is_off_to_the_bit(off):
    assert figures(estimated(**off)) == figures(estimated())


def test_a_budget_as_long_as_the_prompt_changes_nothing():
    whole = estimated(kv_selection="snapkv", kv_budget_tokens=8192)
    assert whole.estimate.tpot_s == pytest.approx(estimated().estimate.tpot_s, rel=1e-3)
    assert whole.estimate.ttft_s == pytest.approx(estimated().estimate.ttft_s, rel=0.01)
    assert any("within the budget" in note for note in whole.notes)


def test_chosen_positions_gain_and_cost():
    plain, chosen = estimated(), estimated(**CHOSEN)
    assert chosen.estimate.tpot_s < plain.estimate.tpot_s
    assert chosen.room.max_sequences > 2 * plain.room.max_sequences
    lot = estimated(**{**CHOSEN, "kv_selection": "random"})
    assert lot.estimate.ttft_s < chosen.estimate.ttft_s, "scoring is counted"
    recall = chosen.to_json()["kv_selection"]["recall_fracs"]
    assert recall["snapkv"] > recall["random"]


@pytest.mark.parametrize("more", [CHOSEN, {"kv_kept_bytes": 0.25}, {"kv_kept_tokens": 0.25}])
def test_the_simulator_says_the_same(more):
    served = simulate(**LONG, concurrency=16, num_requests=96, **more).to_json()
    assert served["mean_tpot_ms"] / 1e3 == pytest.approx(estimated(**more).estimate.tpot_s, rel=0.15)


def test_a_plan_keeps_less_too():
    inputs = {**LONG, "rate": 1.0, "max_devices": 1}
    first, kept = (plan(**inputs, **more).to_json()["plans"][0] for more in ({}, {"kv_kept_bytes": 0.25}))
    assert kept["tpot_s"] < first["tpot_s"]


def test_the_gain_grows_with_length_and_vanishes_without():
    def gain(tokens):
        return (
            estimated(input_tokens=tokens, concurrency=4).estimate.tpot_s
            / estimated(input_tokens=tokens, concurrency=4, kv_kept_bytes=0.25).estimate.tpot_s
        )

    gains = [gain(tokens) for tokens in (64, 1024, 8192, 32768)]
    assert gains == sorted(gains)
    assert gains[0] == pytest.approx(1.0, abs=0.03)


def test_shares_by_layer_and_head(tmp_path):
    """32 layers of 8 key heads: half of the layers at 0.25 and half at 0.75 in each head are as one share of 0.5."""
    path = tmp_path / "rates.csv"
    path.write_text("\n".join([",".join(["0.25"] * 8)] * 16 + ["0.75"] * 16))
    assert figures(estimated(kv_kept_layers=str(path))) == figures(estimated(kv_kept_bytes=0.5))


def test_a_map_of_the_user(tmp_path):
    """Two keys take all later attention and all scores: they are found, and by lot hardly ever."""
    maps = np.zeros((1, 8, 4096), dtype=np.float32)
    maps[:, :, [100, 200]] = 0.5
    np.savez(tmp_path / "maps.npz", attention=maps)
    found = estimated(**CHOSEN, attention_map=str(tmp_path / "maps.npz")).to_json()["kv_selection"]
    assert found["recall_frac"] == 1.0
    assert found["recall_fracs"]["recent"] == 0.0


def test_every_door_gives_the_same_numbers(tmp_path, capsys):
    from orrery.cli.main import run

    inputs = {**LONG, "concurrency": 16, **CHOSEN}
    path = tmp_path / "mine.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in inputs.items()))
    flags = [word for key, value in inputs.items() for word in (f"--{key.replace('_', '-')}", str(value))]
    found = [estimated(**CHOSEN).estimate.tpot_s]
    for words in (flags, ["--scenario", str(path)]):
        assert run(["estimate", *words, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["tpot_s"])
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"kv_selection": "h2o", "kv_budget_tokens": 8}, "write one of snapkv, recent, random"),
        ({"kv_selection": "snapkv"}, "how many"),
        ({"kv_budget_tokens": 8}, "nothing is chosen"),
        ({"kv_selection": "snapkv", "kv_budget_tokens": 8, "kv_kept_tokens": 0.5}, "exclude each other"),
        ({"kv_kept_layers": "none.csv"}, "is no file"),
        ({**CHOSEN, "model": "mamba-2.8b"}, "no layer of plain attention"),
    ],
)
def test_what_makes_no_sense_is_refused(more, words):
    with pytest.raises(ScenarioError, match=words):
        estimated(**more)


def test_a_file_of_other_layers_is_refused(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("0.5\n0.5\n")
    with pytest.raises(ScenarioError, match="has 32 layers"):
        estimated(kv_kept_layers=str(path))
