"""``orrery train`` in the terminal: offloading, the run, the pipeline's timeline, and what it refuses."""

import json
from pathlib import Path

import pytest

from orrery.cli.main import BAD_INPUT, DONE, INFEASIBLE, run
from orrery.execution.train.layout import TrainingLayout
from orrery.scenario.schema import read_scenario
from orrery.scenario.train import TrainAnswer, train
from orrery.scenario.train_job import training_question
from orrery.scenario.train_timeline import played_step

ONE = (
    "train",
    "--model",
    "llama-3.1-8b",
    "--device",
    "a100-sxm-80gb",
    "--devices",
    "1",
    "--global-batch",
    "4",
    "--seq-len",
    "2048",
)
PIPED = (
    "train",
    "--model",
    "gpt3-13b",
    "--device",
    "a100-sxm-80gb",
    "--devices",
    "8",
    "--tp",
    "2",
    "--pp",
    "4",
    "--global-batch",
    "32",
    "--seq-len",
    "2048",
)
JOB = {"model": "gpt3-13b", "device": "a100-sxm-80gb", "devices": 8, "tp": 2, "pp": 4, "seq_len": 2048}


def test_offloading_reads_well_and_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    requested = [
        *ONE,
        "--offload",
        "zero-offload",
        "--train-tokens",
        "1e8",
        "--eval-every-steps",
        "50",
        "--eval-batches",
    ]
    assert run([*requested, "2"]) == DONE
    text = capsys.readouterr().out
    for word in (
        "zero-offload",
        "Where the step goes",
        "Memory by tier",
        "host memory",
        "Busy: device",
        "Limited by",
        "Where the run goes, with 244 evaluations",
    ):
        assert word in text
    assert run([*requested, "2", "--json"]) == DONE
    captured = capsys.readouterr()
    assert set(json.loads(captured.out)["tiers"]) == {"device", "host", "nvme"}
    assert "note: host_memory_bytes: 1.28e+11 a node (assumed" in captured.err
    assert "nvme" not in captured.err  # nothing goes there


def test_what_does_not_fit_exits_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ONE, "--offload", "zero-offload", "--host-memory-bytes", "1e9", "--json"]) == INFEASIBLE
    infeasible = json.loads(capsys.readouterr().out)["infeasible"]
    assert infeasible["need"] > infeasible["have"]
    assert "host_memory_bytes = " in infeasible["smallest_change"]


def test_a_timeline_is_a_trace_of_the_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "step.json"
    assert run([*PIPED, "--timeline", str(path), "--json"]) == DONE
    captured = capsys.readouterr()
    answer, events = json.loads(captured.out), json.loads(path.read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert {e["pid"] for e in slices} == {0, 1, 2, 3}
    assert sum(e["cat"] == "forward" for e in slices) == 4 * 32
    end_s = max(e["ts"] + e["dur"] for e in slices) / 1e6
    after = ("gradient reduction", "parameter gathering", "update", "once a step")
    passes_s = answer["step_time_s"] - sum(answer["parts"][n] for n in after)
    assert end_s == pytest.approx(passes_s, rel=0.05)
    assert f"timeline: {path}" in captured.err
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("layout", "drawn"),
    [
        ({"global_batch": 512}, 64),
        ({"global_batch": 510, "vp": 2, "schedule": "interleaved", "pp": 5, "devices": 10}, 60),
        ({"global_batch": 96, "schedule": "zero-bubble-h1"}, 64),
        ({"global_batch": 48, "schedule": "gpipe", "recompute": "full"}, 48),
    ],
)
def test_so_many_micro_batches_are_drawn_as_the_schedule_takes(layout: dict[str, int | str], drawn: int) -> None:
    answer = train(read_scenario(JOB | layout))
    assert isinstance(answer, TrainAnswer)
    step = played_step(answer.job, answer.layout)
    assert step.num_micro_batches == drawn
    assert bool(step.notes) == (drawn < int(layout["global_batch"]))
    busy_s = step.timeline.busy_s
    passes = ("forward", "backward", "weight gradients", "recomputation", "tensor parallel", "launches")
    mine_s = sum(answer.parts[n] for n in passes) * drawn / int(layout["global_batch"])
    assert max(busy_s) == pytest.approx(mine_s, rel=0.05)  # the slowest rank is what the step is made of


def test_two_copies_of_the_model_are_drawn_twice() -> None:
    """DualPipe's ranks hold two groups of layers each, from either end."""
    job = training_question(read_scenario(JOB | {"global_batch": 16})).job
    one, two = (
        played_step(job, TrainingLayout(tp=2, pp=4, schedule=name, micro_batch=1)).timeline.busy_s.sum()
        for name in ("1f1b", "dualpipe")
    )
    assert two == pytest.approx(one, rel=1e-6)  # as much work in all, otherwise spread


WRONG = [
    ([*ONE, "--timeline", "x.json"], "--pp 2"),
    ([*PIPED, "--timeline", "no/such/folder/x.json"], "no folder"),
    ([*PIPED, "--timeline", "."], "is a folder"),
    ([*PIPED, "--plan", "--timeline", "x.json"], "leave --plan out"),
    ([*ONE, "--offload", "zero-offload", "--timeline", "x.json"], "leave one of them out"),
    ([*ONE, "--plan", "--layout", "dp8 mb1"], "write --against"),
    ([*ONE, "--layout", "dp8 mb1 zreo1"], "write 'zero1'"),
    ([*ONE, "--against", "dp8 mb1"], "is for --plan"),
    ([*ONE, "--offload", "nowhere"], "There is no offload 'nowhere'"),
    ([*ONE, "--nvme-bytes", "much"], "--nvme-bytes: got 'much'"),
    ([*ONE, "--startup-s", "60"], "--train-tokens"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[s for _, s in WRONG])
def test_wrong_input_is_one_message(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == BAD_INPUT
    captured = capsys.readouterr()
    assert message in captured.err
    assert not captured.out


def test_techniques_show_their_knobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "techniques", "--json"]) == DONE
    rows = json.loads(capsys.readouterr().out)["techniques"]
    assert len({r["name"] for r in rows}) == len(rows)
    assert {"domino", "zero-infinity", "1f1b"} <= {r["name"] for r in rows}
    assert run(["show", "techniques", "domino"]) == DONE
    text = capsys.readouterr().out
    assert "knob row_slices" in text
    assert "frozenset" not in text


@pytest.mark.parametrize(
    ("stages", "chunks", "message"),
    [
        ("18", "8", "144 chunks for 126 layers of meta-llama/Llama-3.1-405B; write at most 16 stages"),
        ("127", "1", "127 chunks for 126 layers of meta-llama/Llama-3.1-405B; write at most 126 stages"),
    ],
)
def test_more_chunks_than_layers_and_both_ends_name_the_most(
    stages: str, chunks: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--devices", str(8 * int(stages)), "--tp", "8", "--pp", stages, "--vp", chunks, "--global-batch", "2286"]
    requested = ["train", "--model", "llama-3.1-405b", "--device", "h100-sxm", "--seq-len", "4096", *flags]
    assert run(requested) == BAD_INPUT
    assert message in capsys.readouterr().err
