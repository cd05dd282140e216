"""An experiment by flags, by a file and by Python: one question, one answer; wrong words say what to write."""

import json

import pytest

import orrery
from orrery.cli.main import run
from orrery.scenario.experiment_asked import read_question

LANES = ["experiment", "narrow-lanes", "--set", "tokens=32", "--set", "drop_frac=0.5"]


def answered(capsys, *words):
    assert run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_flags_a_file_and_python_ask_the_same(capsys, tmp_path):
    file = tmp_path / "lanes.toml"
    typed = answered(capsys, *LANES, "--save-scenario", str(file))
    assert typed == answered(capsys, "experiment", "--scenario", str(file))
    for sizes in (["tokens=32", "drop_frac=0.5"], {"tokens": 32, "drop_frac": 0.5}):
        found = orrery.experiment(experiment="narrow-lanes", set=sizes)
        assert typed == json.loads(json.dumps(found.to_json()))


def test_a_flag_stands_over_the_file(capsys, tmp_path):
    file = tmp_path / "lanes.toml"
    file.write_text('experiment = "narrow-lanes"\nseed = 3\n[set]\ntokens = 32\n')
    assert answered(capsys, "experiment", "--scenario", str(file))["sizes"] == {"tokens": "32"}
    other = answered(capsys, "experiment", "--scenario", str(file), "--set", "tokens=64", "--seed", "4")
    assert (other["sizes"], other["seed"]) == ({"tokens": "64"}, 4)
    named = answered(capsys, "experiment", "browser-tuning", "--device", "rtx-4070", "--set", "tokens=64")
    assert named["experiment"] == "browser-tuning"


def test_what_is_not_said_is_the_default():
    asked = read_question({"experiment": "narrow-lanes"})
    assert (asked.seed, asked.seeds, asked.steps, asked.sizes()) == (None, None, None, ())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "experiment: missing; write a name"),
        ({"experiment": "narrow-lane"}, "Did you mean 'narrow-lanes'"),
        ({"experiment": "narrow-lanes", "sets": ["tokens=1"]}, "did you mean 'set'?"),
        ({"experiment": "narrow-lanes", "set": 3}, "set: got 3; write a list of texts"),
        ({"experiment": "narrow-lanes", "set": {"tokens": "many"}}, "write a whole number"),
        ({"experiment": "narrow-lanes", "set": ["tokens"]}, "write NAME=VALUE"),
        ({"experiment": "narrow-lanes", "seeds": 0}, "seeds: got 0; write a whole number from 1 to 100"),
        ({"experiment": "small-core-training", "device": "t4"}, "device: experiment small-core-training reads none"),
    ],
)
def test_wrong_words_say_what_to_write(settings, words):
    with pytest.raises(orrery.OrreryError, match=None) as wrong:
        orrery.experiment(**settings)
    assert words in str(wrong.value)
