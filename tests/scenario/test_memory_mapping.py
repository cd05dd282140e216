"""``experiment memory-mapping``: programs, machines and tables of the user's, by command and in Python alike."""

import json

import pytest

from orrery.base.errors import OrreryError
from orrery.cli.main import run
from orrery.scenario.experiment import run_experiment

SMALL = ("layers=1", "hidden=64", "heads=2", "sequences=2", "tokens=64", "fast_bytes=2e5")


def rows(*sizes, **more):
    return {row["mapping"]: row for row in run_experiment("memory-mapping", sizes=[*SMALL, *sizes], **more).rows}


def test_command_and_python_say_the_same(capsys):
    flags = [word for size in SMALL for word in ("--set", size)]
    assert run(["experiment", "memory-mapping", *flags, "--seed", "2", "--json"]) == 0
    out = {row["mapping"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert out == rows(seed=2)


def test_a_fast_memory_without_room_or_without_speed_saves_nothing():
    assert {row["saved_frac"] for row in rows("fast_bytes=1").values()} == {0.0}
    assert {row["saved_frac"] for row in rows("fast_ratio=1").values()} == {0.0}


def test_all_that_fits_is_the_bound():
    found = rows("fast_bytes=1e12")
    assert found["greedy-mapping"]["of_bound_frac"] == pytest.approx(1.0, rel=1e-3)
    assert found["tree-search-mapping"]["time_s"] == pytest.approx(found["greedy-mapping"]["time_s"])
    assert found["slow-memory-alone"]["saved_frac"] == 0.0


def test_a_larger_fast_memory_saves_no_less_at_the_bound():
    bounds = [rows(f"fast_bytes={size}")["greedy-mapping"]["bound_frac"] for size in (1e4, 1e5, 1e6)]
    assert bounds == sorted(bounds)


def test_a_table_of_the_users_by_hand(tmp_path):
    """Slow memory of a byte a second, fast of two: 10 s, then 20 s for 14 bytes and 6 of weights, 12 s of work."""
    file = tmp_path / "program.csv"
    file.write_text("operation,out_bytes,reads,flops,weight_bytes\na,10,,0,0\nb,4,a,12,6\n")
    machine = ["flops_per_s=1", "slow_bytes_per_s=1", "fast_ratio=2", "fast_bytes=100", "gradients=0"]
    found = run_experiment("memory-mapping", data=file, sizes=machine)
    times = {row["mapping"]: row["time_s"] for row in found.rows}
    assert times == pytest.approx(
        {"slow-memory-alone": 30.0, "greedy-mapping": 17.0, "tree-search-mapping": 17.0}, rel=1e-9
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("operation,out_bytes\na,1\n", "has no column reads"),
        ("operation,out_bytes,reads,flops,weight_bytes\n", "has no operations"),
        ("operation,out_bytes,reads,flops,weight_bytes\na,1,b,0,0\n", "no row above writes 'b'"),
        ("operation,out_bytes,reads,flops,weight_bytes\na,1,,0,0\na,1,,0,0\n", "stands twice"),
        ("operation,out_bytes,reads,flops,weight_bytes\na,x,,0,0\n", "out_bytes: got 'x'"),
        ("operation,out_bytes,reads,flops,weight_bytes\na,0,,0,0\n", "out_bytes above 0"),
    ],
)
def test_tables_that_are_no_program_are_refused(tmp_path, text, words):
    file = tmp_path / "program.csv"
    file.write_text(text)
    with pytest.raises(OrreryError, match=words):
        run_experiment("memory-mapping", data=file)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        ("program=lstm", "write transformer or convolutions"),
        ("fast_bytes=0", "write numbers above 0"),
        ("layers=60", "at most 400"),
        ("width=0", "width"),
        ("noise_ratio=-1", "noise_ratio"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(size, words):
    with pytest.raises(OrreryError, match=words):
        run_experiment("memory-mapping", sizes=[size])
