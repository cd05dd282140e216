"""Activations of low-rank training, whole and pruned: by hand, every door, and where it means nothing."""

import json

import pytest
from battery import over

import orrery
from orrery.base.errors import OrreryError
from orrery.cli.main import run

BASE = {
    "model": "llama-3.1-8b",
    "device": "a100-sxm-80gb",
    "devices": 1,
    "seq_len": 4096,
    "global_batch": 2,
    "task": "lora",
}


def memory(**inputs):
    return orrery.train(**inputs).to_json()["memory"][0]


def test_a_layer_by_hand():
    """Of 32 layers a token keeps, in 16 bits: two norms' inputs of 4096, queries of 4096, keys and values of 1024, the
    output of attention, two halves of 14336, 16 of the adapters, and 32 row sums of 4 bytes."""
    each = 2 * (2 * 4096 + 4096 + 2 * 1024 + 4096 + 2 * 14336 + 16) + 32 * 4
    whole, pruned = (memory(**BASE, prune_activations=p)["activations_bytes"] for p in (False, True))
    layers = 32 * 4096 * each
    assert pruned == pytest.approx(layers, rel=0.1)  # what a backward pass holds for a moment is beside it
    assert whole > 1.4 * pruned


def test_it_saves_memory_and_costs_a_little_time():
    plain, pruned = (orrery.train(**BASE, **more).to_json() for more in ({}, {"prune_activations": True}))
    assert plain["step_time_s"] < pruned["step_time_s"] < 1.1 * plain["step_time_s"]
    assert pruned["memory"][0]["peak_bytes"] < plain["memory"][0]["peak_bytes"]
    assert orrery.train(**BASE, prune_activations=False).to_json()["step_time_s"] == plain["step_time_s"]


def test_every_door_says_the_same(capsys, tmp_path):
    words = [w for k, v in BASE.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    file = tmp_path / "mine.toml"
    file.write_text("".join(f"{k} = {v!r}\n" for k, v in BASE.items()) + "prune_activations = true\n")
    found = [memory(**BASE, prune_activations=True)["peak_bytes"]]
    for typed in ([*words, "--prune-activations"], ["--scenario", str(file)]):
        assert run(["train", *typed, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["memory"][0]["peak_bytes"])
    assert len(set(found)) == 1
    assert any("of which" in n for n in orrery.train(**BASE, prune_activations=True).notes)


WRONG = [
    ({"task": "pretrain"}, "write task = lora or qlora"),
    ({"recompute": "full"}, "recomputed layer keeps its input alone"),
    ({"model": "mixtral-8x7b", "devices": 8}, "dense layers with plain attention"),
]


@over(WRONG, named=lambda changes, words: words)
def test_what_means_nothing_is_refused_in_words(changes, words):
    with pytest.raises(OrreryError, match=words):
        orrery.train(**BASE | {"global_batch": 8} | changes, prune_activations=True)
