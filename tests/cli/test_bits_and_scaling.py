"""``orrery scaling`` and ``orrery bits``: answers as objects and as text, files, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import orrery
import orrery.cli.main as terminal
from orrery.cli.main import BAD_INPUT, DONE, INFEASIBLE, run
from orrery.numerics.laws import quartet
from orrery.scenario.bits import BitsQuestion
from orrery.scenario.fields_bits import BITS_BY_NAME, BITS_SETTINGS
from orrery.scenario.fields_scaling import SCALING_SETTINGS
from orrery.scenario.inputs import read_asked
from orrery.scenario.scaling import ScalingQuestion

DATA = Path(__file__).resolve().parents[2] / "docs" / "data"
BITS = ("bits", "--model", "llama-3.2-1b", "--device", "b200", "--formats", "bf16,fp8,nvfp4", "--tokens", "64")
RESNET = ("bits", "--layers", str(DATA / "resnet50-t4.csv"), "--device", "t4", "--formats", "int8,w4a4")


@pytest.fixture(autouse=True)
def commands(monkeypatch):
    for name in ("bits", "scaling"):
        monkeypatch.setitem(terminal.COMMANDS, name, name)


def describe(capsys, *arguments, code=DONE):
    assert run(arguments) == code
    return capsys.readouterr()


def answer(capsys, *arguments, code=DONE):
    return json.loads(describe(capsys, *arguments, "--json", code=code).out)


def test_a_format_s_law_answers_with_loss_splits_critical_data_and_the_best_width(capsys):
    point = (
        "--parameters",
        "1e9",
        "--tokens",
        "100e9",
        "--exponent-bits",
        "4",
        "--mantissa-bits",
        "3",
        "--block",
        "32",
    )
    found = answer(capsys, "scaling", "--law", "fp-quantisation", *point, "--compute-flops", "1e24")
    assert found["loss"] > found["lossless"] > 1.9
    assert found["critical_tokens"] > 1e13
    assert {s["bits"]: (s["exponent_bits"], s["mantissa_bits"]) for s in found["splits"]}[8] == (4, 3)
    assert found["budget"]["bits"] == 5
    assert all(c["source"] for c in found["coefficients"])
    text = describe(capsys, "scaling", *point)
    for word in ("E4M3", "critical tokens", "Best width by budget"):
        assert word in text.out
    assert "as recalled" in text.err


def test_your_own_coefficients_take_the_place_of_the_paper_s(capsys):
    law = ("scaling", "--law", "fp-quantisation", "--parameters", "1e9", "--tokens", "1e11")
    published, fine = answer(capsys, *law), answer(capsys, *law, "--coefficients", "gamma=1e9")
    assert fine["lossless"] == published["lossless"]
    assert fine["loss"] - fine["lossless"] < 1e-4 * (published["loss"] - published["lossless"])  # gamma divides it
    sources = {c["name"]: (c["value"], c["source"]) for c in fine["coefficients"]}
    assert sources["gamma"] == (1e9, "your own")
    assert "your own" not in sources["nu"][1]
    assert answer(capsys, *law, "--coefficients", "gamma=11334.5197")["loss"] == published["loss"]
    assert orrery.scaling(parameters=1e9, tokens=1e11, coefficients="gamma=1e9").run.loss == fine["loss"]


def test_fp4_against_fp8_takes_the_device_s_rates(capsys):
    found = answer(capsys, "scaling", "--law", "quartet", "--parameters", "8e9", "--tokens", "2e12", "--device", "b300")
    assert found["fp4_ratio"] == pytest.approx(3.0, rel=0.1)
    best = [o for o in found["outcomes"] if o["is_best"]]
    assert len(best) == 1
    assert best[0]["loss"] == min(o["loss"] for o in found["outcomes"])
    text = describe(capsys, "scaling", "--law", "quartet", "--same-size").out
    for word in ("keeps its size", "tokens a parameter", "4 all FP4"):
        assert word in text


QUARTET = ("scaling", "--law", "quartet", "--parameters", "8e9", "--tokens", "2e12", "--fp4-ratio", "2")


def runs_file(folder, text):
    path = folder / "runs.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_own_runs_say_the_shares_of_a_method(capsys, tmp_path):
    """Losses that the law gives for 0.7 of the parameters and 0.9 of the tokens give both back."""
    losses = float(quartet.loss(1e8, 1e10, 0.7, 1.0)), float(quartet.loss(4e8, 2e10, 1.0, 0.9))
    text = f"loss,parameters,tokens,fp4\n{losses[0]!r},1e8,1e10,forward\n{losses[1]!r},4e8,2e10,backward\n"
    path = runs_file(tmp_path, text)
    found = answer(capsys, *QUARTET, "--runs", path)
    assert found["method"] == pytest.approx({"parameters_frac": 0.7, "tokens_frac": 0.9}, rel=1e-6)
    by_hand = answer(capsys, *QUARTET, "--parameters-frac", "0.7", "--tokens-frac", "0.9")
    assert [o["loss"] for o in found["outcomes"]] == pytest.approx([o["loss"] for o in by_hand["outcomes"]])
    notes = describe(capsys, *QUARTET, "--runs", path).err
    assert "parameters_frac: 0.7 (fitted to 1 of the runs, at most 0.00 % off)" in notes
    assert "tokens_frac: 0.9 (fitted to 1 of the runs, at most 0.00 % off)" in notes


def test_runs_of_one_pass_leave_the_other_share_as_it_is(capsys, tmp_path):
    loss = float(quartet.loss(1e8, 1e10, 1.0, 0.8))
    path = runs_file(tmp_path, f"parameters,tokens,loss,fp4\n1e8,1e10,{loss!r},backward\n")
    known = quartet.known_method().parameters_frac
    assert answer(capsys, *QUARTET, "--runs", path)["method"] == pytest.approx(
        {"parameters_frac": known, "tokens_frac": 0.8}, rel=1e-6
    )
    told = answer(capsys, *QUARTET, "--runs", path, "--parameters-frac", "0.5")["method"]
    assert told == pytest.approx({"parameters_frac": 0.5, "tokens_frac": 0.8}, rel=1e-6)
    error = describe(capsys, *QUARTET, "--runs", path, "--tokens-frac", "0.5", code=BAD_INPUT).err
    assert "--tokens-frac: the runs say it, too" in error


def test_losses_that_no_share_explains_are_said(capsys, tmp_path):
    path = runs_file(tmp_path, "parameters,tokens,loss,fp4\n1e8,1e10,9.9,forward\n")
    notes = describe(capsys, *QUARTET, "--runs", path).err
    assert "parameters_frac: 0.01 (fitted to 1 of the runs, at most" in notes
    assert "the end of the range: the law cannot explain these runs" in notes


def test_the_authors_runs_say_what_the_authors_say(capsys):
    found = answer(capsys, *QUARTET, "--runs", str(DATA / "fp4-runs.csv"))["method"]
    known = quartet.known_method()
    assert found["parameters_frac"] == pytest.approx(known.parameters_frac, rel=0.05)
    assert found["tokens_frac"] == pytest.approx(known.tokens_frac, rel=0.05)


HEAD = "parameters,tokens,loss,fp4\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD, "lists no run"),
        ("parameters,tokens\n1,2\n", "columns are parameters, tokens; write parameters, tokens, loss, fp4"),
        (HEAD + "1e8,1e10,3,both\n", "row 2: fp4: got 'both'"),
        (HEAD + "1e8,1e10,3,forward\n1e8,0,3,forward\n", "row 3: tokens: got '0'"),
        (HEAD + "1e8,1e10,many,forward\n", "row 2: loss: got 'many'"),
        (HEAD + "inf,1e10,3,forward\n", "row 2: parameters: got 'inf'"),
    ],
)
def test_runs_that_cannot_be_read_are_refused(capsys, tmp_path, text, words):
    assert words in describe(capsys, *QUARTET, "--runs", runs_file(tmp_path, text), code=BAD_INPUT).err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--runs", "no.csv"), "runs: the law fp-quantisation does not ask"),
        (("--law", "quartet", "--coefficients", "nu=2"), "coefficients: the law quartet does not ask"),
        (("--coefficients", "nuu=2"), "There is no coefficient of the law 'nuu'"),
        (("--coefficients", "nu=0"), "write nu once, as nu=NUMBER above 0"),
        (("--coefficients", "nu=2,nu=3"), "write nu once"),
        (("--law", "quartet", "--runs", "no.csv"), "no.csv"),
        (("--law", "quartt"), "write 'quartet'"),
        (("--law", "quartet", "--block", "32"), "block: the law quartet does not ask"),
        (("--tokens", "-5"), "tokens: got '-5'; write a number"),
        (("--exponent-bits", "0"), "--exponent-bits: got '0'; write a whole number from 1"),
        (("--law", "quartet", "--device", "a100"), "states no peak rate for fp4"),
    ],
)
def test_scaling_says_what_is_wrong(capsys, arguments, words):
    assert words in describe(capsys, "scaling", *arguments, code=BAD_INPUT).err


def test_bits_stay_within_the_limit_and_beat_uniform_formats_that_do(capsys):
    found = answer(capsys, *BITS, "--latency-ratio", "0.85")
    slowest = max(u["latency_s"] for u in found["uniform"])
    assert found["latency_s"] <= 0.85 * slowest * (1 + 1e-9)
    assert found["is_proven"]
    allowed = [u for u in found["uniform"] if u["latency_s"] <= 0.85 * slowest]
    assert allowed
    assert all(found["perturbation"] < u["perturbation"] for u in allowed)
    assert sum(row["latency_s"] for row in found["assignment"]) == pytest.approx(found["latency_s"])
    assert sum(sum(g.values()) for g in found["groups"].values()) == len(found["assignment"]) == 64
    assert len(found["front"]) > 3


def test_bits_reads_well(capsys):
    text = describe(capsys, *BITS, "--latency-ratio", "0.7")
    for word in ("no better assignment exists", "all nvfp4", "at most", "Layers by group", "Pareto front"):
        assert word in text.out
    assert "estimated on drawn numbers (seed 0)" in text.err


def test_bits_that_cannot_be_are_an_answer(capsys):
    found = answer(capsys, *BITS, "--latency-ratio", "0.1", "--size-bytes", "1e12", code=INFEASIBLE)["infeasible"]
    assert found["need"] > found["have"]
    assert "Write latency_ratio = " in found["smallest_change"]
    share = found["smallest_change"].split("=")[1].split(",")[0]
    answer(capsys, *BITS, "--latency-ratio", share.strip())


def test_resnet50_on_a_t4_is_mixed_as_hawq_v3_mixes_it(capsys):
    found = answer(capsys, *RESNET, "--latency-ratio", "0.77")
    eight, four = found["uniform"]
    assert eight["latency_s"] / four["latency_s"] == pytest.approx(1.55, rel=0.01)
    assert found["latency_s"] <= 0.77 * eight["latency_s"]
    assert eight["perturbation"] < found["perturbation"] < 0.2 * four["perturbation"]
    formats = {row["layer"]: row["format"] for row in found["assignment"]}
    for stage in range(1, 5):
        assert formats[f"stage{stage}.unit1.conv1"] == formats[f"stage{stage}.unit1.shortcut"]


def test_layers_may_be_a_toml_list_and_say_little(capsys, tmp_path):
    path = tmp_path / "layers.toml"
    path.write_text(
        '[[layer]]\nname = "up"\nm = 64\nn = 4096\nk = 1024\ncount = 3\n'
        '[[layer]]\nname = "down"\nm = 64\nn = 1024\nk = 4096\n'
    )
    found = answer(capsys, "bits", "--layers", str(path), "--device", "h100-sxm", "--formats", "bf16,fp8")
    assert [row["size_bytes"] for row in found["assignment"]] == [3 * 2.0 * 4096 * 1024, 2.0 * 4096 * 1024]


def test_a_layer_that_matters_more_keeps_more_bits(capsys, tmp_path):
    names = [f"dense.{i}.{x}" for i in range(16) for x in ("qkv", "out", "gate_up", "down")]
    path = tmp_path / "weights.json"
    path.write_text(json.dumps({name: 100.0 if ".3." in name else 1.0 for name in names}))
    found = answer(capsys, *BITS, "--size-ratio", "0.35", "--sensitivity", str(path))
    bits = {"bf16": 16, "fp8": 8, "nvfp4": 4}
    retained = {row["layer"]: bits[row["format"]] for row in found["assignment"]}
    assert min(retained[f"dense.3.{x}"] for x in ("qkv", "out", "gate_up", "down")) > min(retained.values())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a,1,2", "3 cells"),
        ("a,1,2,x", "k: got 'x'"),
        ("a,1,2,0", "k: got '0'"),
        (",1,2,3", "name"),
    ],
)
def test_a_wrong_line_is_named(capsys, tmp_path, line, words):
    path = tmp_path / "layers.csv"
    path.write_text(f"name,m,n,k\n{line}\n")
    wrong = describe(
        capsys, "bits", "--layers", str(path), "--device", "t4", "--formats", "int8,fp16", code=BAD_INPUT
    ).err
    assert "layer 1" in wrong or "row 2" in wrong
    assert words in wrong


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--device", "b200", "--formats", "bf16,fp8"), "--model, --checkpoint and --layers: all missing"),
        (("--model", "llama-3.2-1b", "--formats", "bf16,fp8"), "device: is missing"),
        (("--model", "llama-3.2-1b", "--device", "b200", "--formats", "bf16"), "write two or more"),
        (("--model", "llama-3.2-1b", "--device", "b200", "--formats", "bf16,fp88"), "no format 'fp88'"),
        (("--layers", "nowhere.csv", "--device", "b200", "--formats", "bf16,fp8"), "There is no file 'nowhere.csv'"),
        (("--checkpoint", "nowhere", "--device", "b200", "--formats", "bf16,fp8"), "nowhere: is no .safetensors file"),
    ],
)
def test_bits_says_what_is_wrong(capsys, arguments, words):
    assert words in describe(capsys, "bits", *arguments, code=BAD_INPUT).err


def test_a_sensitivity_of_no_layer_is_refused(capsys, tmp_path):
    path = tmp_path / "weights.csv"
    path.write_text("name,weight\nelsewhere,2\n")
    assert "no layer 'elsewhere'" in describe(capsys, *BITS, "--sensitivity", str(path), code=BAD_INPUT).err


def test_a_question_is_saved_and_asked_again(capsys, tmp_path):
    path = tmp_path / "bits.toml"
    first = answer(capsys, *BITS, "--size-ratio", "0.5", "--save-scenario", str(path))
    again = answer(capsys, "bits", "--scenario", str(path))
    assert first == again
    assert read_asked(BitsQuestion, {"size_ratio": "0.5"}, BITS_BY_NAME).size_ratio == 0.5


@pytest.mark.parametrize(("question", "settings"), [(BitsQuestion, BITS_SETTINGS), (ScalingQuestion, SCALING_SETTINGS)])
def test_every_flag_is_a_setting_of_the_question(question, settings):
    assert [s.name for s in settings] == list(question.model_fields)


@pytest.mark.parametrize("command", ["bits", "scaling"])
def test_help_imports_nothing_heavy(command):
    program = (
        f"import sys; from orrery.cli.{command} import command; command.get_help(command.make_context('x', [], "
        "resilient_parsing=True)); print([m for m in ('numpy', 'pydantic', 'rich', 'highspy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
