"""`orrery show device NAME --as-file`: a device file that every command accepts."""

import json

import pytest

ESTIMATE = ("--model", "llama-3.1-8b", "--input-tokens", "512", "--output-tokens", "64", "--concurrency", "4", "--json")


def test_the_file_is_a_device_that_other_commands_take(describe, tmp_path):
    path = tmp_path / "mine.toml"
    fact = "memory_bandwidth_bytes_per_s=2.02 TB/s"
    code, out, _ = describe("show", "device", "rtx-4090", "--as-file", path, "--fact", fact, "--title", "Mine")
    assert code == 0
    assert f"--device {path}" in out
    own, known = (json.loads(describe("estimate", "--device", d, *ESTIMATE)[1]) for d in (path, "rtx-4090"))
    # twice the bandwidth: a decode step that reads weights takes nearly half as long, and no less
    assert 0.5 <= own["tpot_s"] / known["tpot_s"] < 0.7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("devices", "--fact", "x=1"), "write orrery show device NAME --as-file"),
        (("model", "qwen3-32b", "--as-file", "x.toml"), "write orrery show device NAME --as-file"),
        (("device", "rtx-4090", "--as-file", "x.txt"), "ends in .toml"),
        (("device", "rtx-4090", "--as-file", "x.toml", "--fact", "memory"), "write NAME=VALUE"),
        (("device", "rtx-4090", "--as-file", "x.toml", "--fact", "memory_capacity_bytes=1"), "a number and a unit"),
    ],
)
def test_what_cannot_be_written_is_refused(arguments, words, describe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, error = describe("show", *arguments)
    assert code != 0
    assert words in error
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_left_alone(describe, tmp_path):
    (path := tmp_path / "mine.toml").write_text("mine")
    code, _, error = describe("show", "device", "rtx-4090", "--as-file", path)
    assert code != 0
    assert "there is such a file already" in error
    assert path.read_text() == "mine"
