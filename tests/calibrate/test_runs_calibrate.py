"""Runs of a simulated truth: its constants are found again, what runs cannot tell stays, and nothing else is harmed."""

import csv
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

import orrery
from orrery.base.errors import FactError, ScenarioError
from orrery.calibrate.runs import calibrate, reference_predictions
from orrery.calibrate.runs.calibrate import calibrate_runs
from orrery.calibrate.runs.fit import errors_of
from orrery.calibrate.runs.read import read_runs
from orrery.calibrate.runs.repeated_runs import contradictions, groups_of
from orrery.calibrate.runs.serving import CONSTANTS, ServingRuns
from orrery.calibrate.runs.spread import LEAST, spread
from orrery.calibrate.runs.training import TrainingRuns
from orrery.catalog.devices import get_device
from orrery.catalog.engines import engine_notes, get_engine
from orrery.catalog.frameworks import get_framework
from orrery.cli.calibrate_runs import command
from orrery.evidence.tables import Table, read_table

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data"))
NOISE = 0.03
SAID = {"engine": "vllm", "engine_version": "0.11.0", "device": "h100-sxm", "weights": "bf16"}


def write(path, rows):
    columns = dict.fromkeys(c for row in rows for c in row)
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(columns), restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def static_rows():
    """Batches of every size on two models: host, weights and prompts each show in some of them."""
    shapes = [(1, 256, 64), (1, 8000, 16), (4, 512, 128), (16, 512, 128), (64, 256, 128), (128, 128, 64)]
    return [
        {
            "kind": "serving",
            "mode": "static",
            "model": m,
            "batch_size": b,
            "input_tokens": i,
            "output_tokens": o,
            "ttft_s": 1.0,
            "tpot_s": 1.0,
        }
        for m in ("llama-3.2-1b", "llama-3.1-8b")
        for b, i, o in shapes
    ]


def idle_rows():
    """Requests one by one, and a few together, to a server that is idle: the front end shows in their first tokens."""
    return [
        {
            "kind": "serving",
            "mode": "closed",
            "model": m,
            "concurrency": c,
            "num_requests": 8 * c,
            "input_tokens": 256,
            "output_tokens": o,
            "ttft_s": 1.0,
            "tpot_s": 1.0,
        }
        for m in ("llama-3.2-1b", "llama-3.1-8b")
        for c, o in ((1, 64), (4, 128))
    ]


def measure(
    rows, folder, *, seed=0, noise=NOISE, metrics=("ttft_s", "tpot_s"), kind=ServingRuns, message=SAID, **factors
):
    """The rows as a truth whose constants are so many times the shipped ones would measure them; and that truth."""
    runs = kind(read_runs([write(folder / "blank.csv", rows)], message))
    truth = {k: v * factors.get(k, 1.0) for k, v in runs.start.items()}
    rng = np.random.default_rng(seed)
    out = []
    for i, row in enumerate(rows):
        found = runs.predict(i, truth)
        out.append(row | {m: float(found[m] * math.exp(rng.normal(0.0, noise))) for m in metrics})
    return write(folder / "runs.csv", out), truth


@pytest.fixture(scope="module")
def slow_host(tmp_path_factory):
    """A machine whose host and memory are far slower than the shipped ones, and its calibration."""
    folder = tmp_path_factory.mktemp("slow")
    path, truth = measure([*static_rows(), *idle_rows()], folder, step_s=60.0, memory_ratio=1.2, request_s=4.0)
    seen = []
    answer = calibrate_runs([path], name=str(folder / "my-box"), on_progress=lambda *x: seen.append(x), **SAID)
    return answer, truth, path, seen


def test_constants_of_the_truth_are_found_again_within_their_uncertainty(slow_host):
    answer, truth, _, _ = slow_host
    result = {c.name: c for c in answer.constants}
    for name in ("step_s", "memory_ratio", "request_s"):
        assert result[name].word == "identified", name
        assert abs(math.log(result[name].after / truth[name])) < max(0.12, 3 * result[name].sd_log), name
    assert abs(math.log(result["compute_ratio"].after)) < 0.15  # this one was as shipped


def test_each_run_is_predicted_better_by_the_others(slow_host):
    answer, _, _, _ = slow_host
    assert answer.written
    for metric, (before, after) in answer.scores.items():
        assert before.rows == 16, metric
        assert before.median_abs_error_frac > 0.08, metric
        assert after.median_abs_error_frac < 0.06, metric
        assert abs(after.bias_frac) < abs(before.bias_frac), metric


def test_what_the_runs_do_not_tell_stays_and_its_run_is_named(tmp_path):
    """One model has one depth: what its layers take cannot be told from what its steps take, so one of both stays."""
    path, _ = measure(static_rows()[:4], tmp_path, step_s=20.0, memory_ratio=1.2)
    answer = calibrate_runs([path], name=str(tmp_path / "box"), **SAID)
    both = {c.name: c for c in answer.constants if c.name in ("step_s", "per_layer_s")}
    (stays,) = [c for c in both.values() if c.word == "not identified"]
    assert stays.after == stays.before
    assert "a small model" in both["step_s"].needs
    assert "different depth" in both["per_layer_s"].needs
    assert stays.name not in answer.written.read_text().split("[conditions]")[0]


def test_static_batches_do_not_tell_the_front_end_which_they_do_not_pass(tmp_path):
    path, _ = measure(static_rows(), tmp_path, step_s=16.0, request_s=4.0)
    answer = calibrate_runs([path], name=str(tmp_path / "box"), **SAID)
    assert answer.written
    result = {c.name: c for c in answer.constants}
    assert result["step_s"].word == "identified"
    assert result["request_s"].word == "not identified"
    assert result["request_s"].after == result["request_s"].before
    assert "first tokens of short prompts" in result["request_s"].needs


def test_intervals_hold_the_measurements_and_other_modes_keep_theirs(slow_host):
    answer, _, _, _ = slow_host
    assert set(answer.spreads) == {f"{mode}.{m}" for mode in ("static", "closed") for m in ("ttft_s", "tpot_s")}
    ratios = np.array([p.measured / p.after for p in answer.predicted[:24] if p.metric == "tpot_s"])  # the static ones
    table = answer.spreads["static.tpot_s"]
    assert np.mean((ratios >= table["low_95"]) & (ratios <= table["high_95"])) >= 0.9
    device = get_device("h100-sxm")
    shipped, own = get_engine("vllm", "0.11.0", device), get_engine(str(answer.written), "", device)
    assert own.spreads["open.tpot_s"] == shipped.spreads["open.tpot_s"]
    assert own.spreads["static.tpot_s"].high_95_ratio == table["high_95"]


def test_the_file_is_an_engine_for_every_question_on_its_device(slow_host):
    answer, _, _, _ = slow_host
    requested = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 128, "batch": 4}
    shipped = orrery.estimate(engine="vllm", engine_version="0.11.0", **requested)
    own = orrery.estimate(engine=str(answer.written), **requested)
    assert own.estimate.tpot_s > 1.1 * shipped.estimate.tpot_s
    result = {c.name: c for c in answer.constants}
    engine = get_engine(str(answer.written), "", get_device("h100-sxm"))
    assert engine.step_s == pytest.approx(result["step_s"].after, rel=1e-3)
    assert result["per_layer_s"].word in ("partly", "not identified")
    assert engine.per_layer_s == pytest.approx(result["per_layer_s"].after, rel=1e-3)
    assert engine.name == "vllm"
    assert str(engine.facts["step_s"].basis) == "measured"
    assert engine is get_engine(str(answer.written), "0.11.0", get_device("h100-sxm"))


def test_on_any_other_device_the_base_answers_and_a_note_says_so(slow_host):
    answer, _, _, _ = slow_host
    for name in ("a100-sxm-80gb", "h200-sxm", "l40s", "mi300x"):
        device = get_device(name)
        assert get_engine(str(answer.written), "", device) is get_engine("vllm", "0.11.0", device)
        assert engine_notes(str(answer.written), device) == (
            f"my-box: was measured on h100-sxm; vllm as shipped answers for {device.name}",
        )
    assert "corrected by own runs" in engine_notes(str(answer.written), get_device("h100-sxm"))[0]
    assert engine_notes("vllm", get_device("l40s")) == ()


LOADS = ({"batch": 1}, {"batch": 24}, {"concurrency": 2}, {"concurrency": 48}, {"rate": 0.3})
UNRELATED = [
    {"model": model, "device": device, "input_tokens": tokens, "output_tokens": 200, **load}
    for model, device in (
        ("qwen3-8b", "h100-sxm"),
        ("qwen3-14b", "h100-sxm"),
        ("mistral-7b-v0.3", "h100-sxm"),
        ("qwen3-8b", "l40s"),
        ("llama-3.1-8b", "a100-sxm-80gb"),
        ("llama-3.2-3b", "h100-sxm"),
    )
    for tokens in (300, 3000)
    for load in LOADS
]


def moves(path):
    """Of every unrelated question and metric: log(corrected / shipped), and the shipped 95 % interval likewise."""
    for question in UNRELATED:
        shipped = orrery.estimate(engine="vllm", engine_version="0.11.0", **question).estimate
        own = orrery.estimate(engine=str(path), engine_version="0.11.0", **question).estimate
        for metric in reference_predictions.METRICS:
            if interval := shipped.intervals.get(metric):
                value = getattr(shipped, metric)
                yield (
                    question,
                    *np.log([getattr(own, metric) / value, interval.low_95 / value, interval.high_95 / value]),
                )


def test_an_unrelated_prediction_never_leaves_the_interval_of_the_shipped_one(tmp_path):
    path, _ = measure(static_rows(), tmp_path, step_s=1.1, memory_ratio=1.03, request_s=1.1, noise=0.003)
    answer = calibrate_runs([path], name=str(tmp_path / "box"), **SAID)
    assert answer.written
    found = list(moves(answer.written))
    assert len(found) > 150
    for question, moved, low, high in found:
        assert low <= moved <= high, question
        assert moved == 0.0 or question["device"] == "h100-sxm"


def test_where_own_runs_went_further_unrelated_predictions_went_no_further_than_they(slow_host):
    answer, _, _, _ = slow_host
    own = 1.15 * max(abs(math.log(p.after / p.before)) for p in answer.predicted)
    found = list(moves(answer.written))
    assert any(not low <= moved <= high for _, moved, low, high in found)
    for question, moved, low, high in found:
        assert min(low, -own) <= moved <= max(high, own), question


def test_a_correction_that_would_carry_other_models_too_far_is_held_back():
    engine = get_engine("vllm", "0.11.0", get_device("h100-sxm"))
    references = list(reference_predictions.serving_references(engine, get_device("h100-sxm")))
    assert {r.answers({}).keys() >= {"tpot_s"} for r in references} == {True}

    def held(own, ratio):
        return reference_predictions.part_of_the_way(references, own, lambda share: {"memory_ratio": ratio**share})

    assert held(0.0, 1.0) == 1.0
    assert held(0.0, 8.0) < 0.5  # these runs needed nothing of the kind
    assert held(math.log(4.0), 4.0) == 1.0  # these runs went as far themselves
    before, after = np.log([2.0, 1.1, 0.9]), np.log([1.1, 1.0, 0.5])
    assert reference_predictions.furthest_move(before, after) == pytest.approx(
        math.log(2.0 / 1.1)
    )  # the last one got worse


def test_a_correction_that_helps_by_chance_alone_is_not_written(tmp_path):
    path, _ = measure(static_rows(), tmp_path, seed=3)
    answer = calibrate_runs([path], name=str(tmp_path / "box"), **SAID)
    assert answer.written is None
    assert not (tmp_path / "box.toml").exists()
    assert any("Nothing was written" in n for n in answer.notes)


def test_a_slow_host_behind_a_fast_device_is_found_though_it_leaves_no_slope(tmp_path):
    """Asynchronous scheduling hides the host until it is the slower of the two."""
    message = SAID | {"engine_version": "0.20.0"}
    path, truth = measure(static_rows(), tmp_path, message=message, step_s=12.0)
    result = {c.name: c for c in calibrate_runs([path], name=str(tmp_path / "box"), **message).constants}
    assert result["step_s"].word == "identified"
    assert result["step_s"].after == pytest.approx(truth["step_s"], rel=0.15)


def test_training_constants_are_found_again(tmp_path):
    message = {"device": "h100-sxm", "framework": "megatron-lm", "precision": "bf16"}
    shapes = [
        ("llama-3.2-1b", 1, 1, 1, 4096),
        ("llama-3.2-1b", 1, 1, 4, 4096),
        ("llama-3.1-8b", 8, 8, 1, 4096),
        ("llama-3.1-8b", 8, 8, 1, 16384),
        ("llama-3.1-8b", 8, 4, 1, 8192),
        ("llama-3.2-3b", 8, 2, 2, 4096),
    ]
    rows = [
        {
            "kind": "training",
            "model": m,
            "num_devices": n,
            "tp": tp,
            "micro_batch": b,
            "global_batch": 32,
            "seq_len": s,
            "recompute": "none",
            "sharding": "zero1" if n > tp else "none",
            "step_time_s": 1.0,
        }
        for m, n, tp, b, s in shapes
    ]
    path, truth = measure(
        rows, tmp_path, metrics=("step_time_s",), kind=TrainingRuns, message=message, noise=0.01, matrix_ratio=1.25
    )
    answer = calibrate_runs([path], name=str(tmp_path / "cluster"), **message)
    result = {c.name: c for c in answer.constants}
    assert answer.written
    assert result["matrix_ratio"].after == pytest.approx(truth["matrix_ratio"], rel=0.1)
    assert result["scaleout_ratio"].word == result["fixed_bytes"].word == "not identified"
    before, after = answer.scores["step_time_s"]
    assert after.median_abs_error_frac < 0.5 * before.median_abs_error_frac
    device = get_device("h100-sxm")
    own, shipped = get_framework(str(answer.written), device, "bf16"), get_framework("megatron-lm", device, "bf16")
    assert own.matrix_ratio == pytest.approx(result["matrix_ratio"].after, rel=1e-3)
    assert own.spreads["finetune.step_time_s"] == shipped.spreads["finetune.step_time_s"]
    assert get_framework(str(answer.written), device, "fp8") is get_framework("megatron-lm", device, "fp8")
    assert get_framework(str(answer.written), get_device("b200"), "bf16").name == "megatron-lm"
    requested = {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "devices": 8,
        "tp": 8,
        "global_batch": 32,
        "seq_len": 4096,
    }
    slow = orrery.train(framework=str(answer.written), **requested).to_json()
    assert slow["step_time_s"] > orrery.train(framework="megatron-lm", **requested).to_json()["step_time_s"]


def test_runs_that_contradict_each_other_are_named_and_count_less(tmp_path):
    rows = static_rows()
    path, _ = measure(rows, tmp_path, noise=0.0)
    measured = list(csv.DictReader(path.read_text().splitlines()))
    twice = measured[0] | {"tpot_s": str(3 * float(measured[0]["tpot_s"])), "input_tokens": "258"}
    runs = ServingRuns(read_runs([write(tmp_path / "twice.csv", [*measured, twice])], SAID))
    groups = groups_of(runs.table)
    assert groups[-1] == groups[0]
    assert len(set(groups)) == len(measured)
    found, weights = contradictions(runs.table, runs.cells, groups)
    assert [c.metric for c in found] == ["tpot_s"]
    assert "run 1" in str(found[0])
    assert "run 13" in str(found[0])
    light = [w for w, c in zip(weights, runs.cells, strict=True) if c.metric == "tpot_s" and c.run in (0, 12)]
    assert max(light) < 0.2
    assert sorted(weights)[2] == 1.0
    answer = calibrate_runs([tmp_path / "twice.csv"], name=str(tmp_path / "box"), **SAID)
    assert any("same conditions, different tpot_s" in n for n in answer.notes)
    with_it, without = answer.spreads["static.tpot_s"], calibrate_runs([path], name=str(tmp_path / "b"), **SAID).spreads
    assert with_it["high_95"] > without["static.tpot_s"]["high_95"]


def test_intervals_are_those_of_student():
    errors = np.log([1.1, 1.3, 0.9, 1.2])
    found = spread(errors)
    width = 3.182 * errors.std(ddof=1) * math.sqrt(1.25)
    assert found["high_95"] == pytest.approx(math.exp(errors.mean() + width), rel=1e-3)
    assert spread(np.full(5, 0.001)) == LEAST
    narrower = [spread(np.tile([-0.1, 0.1], n))["high_95"] for n in (2, 4, 8, 40)]
    assert narrower == sorted(narrower, reverse=True)
    assert narrower[-1] == pytest.approx(math.exp(0.1 * 1.98), rel=0.02)


def test_nothing_is_overwritten_without_being_told(slow_host, tmp_path):
    answer, _, path, _ = slow_host
    own = tmp_path / "box.toml"
    own.write_bytes(answer.written.read_bytes())
    content = own.read_bytes()
    with pytest.raises(ScenarioError, match="--replace"):
        calibrate_runs([path], name=str(own), **SAID)
    assert own.read_bytes() == content
    few, _ = measure(static_rows()[:4], tmp_path, step_s=20.0, memory_ratio=1.2)
    again = calibrate_runs([few], name=str(own), replace=True, **SAID)
    assert again.written == own
    assert own.read_bytes() != content
    with pytest.raises(ScenarioError, match="no folder"):
        calibrate_runs([path], name=str(tmp_path / "missing" / "box"), **SAID)
    with pytest.raises(ScenarioError, match="name: is blank"):
        calibrate_runs([path], name=" ", **SAID)


def test_progress_ends_at_its_total(slow_host):
    seen = slow_host[3]
    assert seen[-1][0] == seen[-1][1]
    assert [x for x, _ in seen] == sorted(x for x, _ in seen)


def test_the_answer_is_plain_data(slow_host):
    found = json.loads(json.dumps(slow_host[0].to_json(), allow_nan=False))
    assert found["left_out"]["tpot_s"]["after"]["rows"] == 16
    assert {c["name"] for c in found["constants"]} == {c.name for c in CONSTANTS}
    assert found["constants"][0]["identified"] in ("identified", "partly", "not identified")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:2], "needs at least 3"),
        (lambda rows: [rows[0], *(r | {"device": "l40s"} for r in rows[1:])], r"device: .*h100-sxm \(1 runs\)"),
        (lambda rows: [rows[0] | {"kind": "training"}, *rows[1:]], "serving and training"),
        (
            lambda rows: [r | {"model": "no-such-model"} for r in rows],
            "No run can be predicted: 12 x There is no model",
        ),
        (lambda rows: [r | {"device": ""} for r in rows], "device is blank"),
    ],
)
def test_runs_that_make_no_correction_are_refused_in_words(tmp_path, change, words):
    rows = [r | {"device": "h100-sxm", "engine": "vllm", "engine_version": "0.11.0"} for r in static_rows()]
    path = write(tmp_path / "runs.csv", change(rows))
    with pytest.raises(ScenarioError, match=words):
        calibrate_runs([path], name=str(tmp_path / "box"))
    assert not (tmp_path / "box.toml").exists()


def test_files_that_are_no_corrections_are_refused_in_words(slow_host, tmp_path):
    written, device = str(slow_host[0].written), get_device("h100-sxm")
    with pytest.raises(FactError, match="no such file"):
        get_engine(str(tmp_path / "none.toml"))
    with pytest.raises(FactError, match="--framework says"):
        get_framework(written, device)
    with pytest.raises(ScenarioError, match=r"calibrate with runs of 0\.4"):
        get_engine(written, "0.4", device)
    good = Path(written).read_text()
    for old, new, words in (
        ("step_s =", "step_ms =", "no such constant"),
        ("low_80 =", "low_81 =", "in rising order"),
        ('base = "vllm"', 'base = ""', "has no base"),
        ("memory_ratio = 1", "memory_ratio = -1", "above zero"),
    ):
        bad = tmp_path / "bad.toml"
        bad.write_text(good.replace(old, new, 1))
        os.utime(bad, ns=(0, hash(words) % 10**15))
        with pytest.raises(FactError, match=words):
            get_engine(str(bad), "", device)


def written_out(path, folder):
    """The arguments of the command for runs in a file, whose constants go to the folder."""
    flags = {"--device": "h100-sxm", "--engine": "vllm", "--engine-version": "0.11.0", "--weights": "bf16"}
    return [str(path), "--name", str(folder / "box"), *(word for pair in flags.items() for word in pair)]


def test_the_command_prints_a_table_and_a_line_a_measurement(slow_host, tmp_path, capsys, monkeypatch):
    """The answer is the fixture's, so that it is computed once; the command passes on what was written."""
    answer, _, path, _ = slow_host
    received = {}
    monkeypatch.setattr(calibrate, "calibrate_runs", lambda files, **rest: received.update(rest, files=files) or answer)
    assert command.main(written_out(path, tmp_path), standalone_mode=False) == 0
    message = capsys.readouterr().out
    assert "step_s" in message
    assert all(constant.word in message for constant in answer.constants)
    assert message.count("[") == 24
    assert "8 more; --json lists every one" in message
    assert [str(file) for file in received["files"]] == [str(path)]
    assert received["name"] == str(tmp_path / "box")
    assert {name: received[name] for name in SAID} == SAID


def test_with_json_the_command_prints_one_object(tmp_path, capsys):
    path, _ = measure(static_rows()[:3], tmp_path, seed=1)
    assert (
        command.main([*written_out(path, tmp_path), "--json"], standalone_mode=False) == 3
    )  # as shipped: there is nothing to correct
    assert json.loads(capsys.readouterr().out)["written"] is None


GROUPS = [
    (
        "serving/closed_loop_llama70b_gptoss.csv",
        {"engine": "vllm", "device": "h100-sxm", "model": "meta-llama/Llama-3.1-70B"},
    ),
    ("training/torchtitan.csv", {"device": "a100-sxm-80gb", "precision": "bf16"}),
    ("training/dgxc_benchmarking.csv", {"device": "h100-sxm", "precision": "bf16", "framework": "nemo"}),
    ("serving/argonne_llamacpp.csv", {"device": "a100-sxm-40gb"}),
]


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="no measured tables beside the repository (set ORRERY_DATA)")
@pytest.mark.parametrize(("name", "group"), GROUPS)
def test_half_of_a_published_table_predicts_the_other_half_no_worse(name, group, tmp_path):
    table = read_table(DATA / name)
    mine = [i for i in range(len(table)) if all(table.columns[c][i] == v for c, v in group.items())]
    mine = np.random.default_rng(0).permutation(np.array(mine, dtype=np.int64))[:40]
    used, other = table.take(sorted(mine[: len(mine) // 2])), table.take(sorted(mine[len(mine) // 2 :]))
    rows = [{c: v[i] for c, v in used.columns.items()} for i in range(len(used))]
    answer = calibrate_runs([write(tmp_path / "half.csv", rows)], name=str(tmp_path / "box"))
    runs = (ServingRuns if name.startswith("serving") else TrainingRuns)(Table("other", other.columns))
    constants = {c.name: c.after for c in answer.constants} if answer.written else dict(runs.start)
    before, after = (np.abs(errors_of(runs, c, lambda: None)) for c in (runs.start, constants))
    assert np.median(after) <= np.median(before) * 1.02 + 0.002
