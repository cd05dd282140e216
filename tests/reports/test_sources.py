"""What a report is made from: told apart, repeated, and refused where it says nothing."""

import json
import shlex
from pathlib import Path

import pytest
import tomli_w

from orrery.base.errors import ScenarioError
from orrery.cli.main import run
from orrery.reports.source import read_source
from orrery.scenario.schema import read_scenario

SERVED = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 64}
TRAINED = {"model": "llama-3.1-8b", "device": "h100-sxm", "devices": 8, "global_batch": 64, "seq_len": 2048}


def written(tmp_path: Path, settings: dict[str, object], name: str = "q.toml") -> Path:
    path = tmp_path / name
    path.write_text(tomli_w.dumps(settings))
    return path


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        (SERVED | {"rate": 1.0, "max_devices": 4}, "plan"),
        (SERVED | {"batch": 4}, "estimate"),
        (SERVED | {"rate": 1.0, "num_requests": 50, "arrivals": "gamma"}, "simulate"),
    ],
)
def test_a_scenario_that_one_command_reads_is_its_question(
    tmp_path: Path, settings: dict[str, object], kind: str
) -> None:
    assert read_source(written(tmp_path, settings)).kind == kind


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (SERVED | {"concurrency": 4}, "estimate|simulate"),
        (TRAINED, "train|train-plan"),
        (SERVED | {"global_batch": 4, "slo": ["ttft:1"]}, "no one command"),
    ],
)
def test_an_open_question_asks_which(tmp_path: Path, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ScenarioError, match="--as") as error:
        read_source(written(tmp_path, settings))
    assert message in str(error.value)


def test_the_command_asks_the_same(tmp_path: Path) -> None:
    settings = SERVED | {"rate": 2.5, "slo": ["ttft:500", "tpot:50"], "prefix_caching": False, "knob": ["policy.a=1"]}
    source = read_source(written(tmp_path, settings | {"model": "it's"}), "simulate")
    words = shlex.split(source.command)
    assert words[:4] == ["orrery", "simulate", "--model", "it's"]
    assert words.count("--slo") == 2
    assert "--no-prefix-caching" in words
    assert read_source(written(tmp_path, TRAINED), "train-plan").command.startswith("orrery train --plan --model")
    assert read_source(written(tmp_path, SERVED), over=["tp=1,2"]).command.endswith("--sweep tp=1,2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = ", "not valid|neither"),
        ('{"a": ', "not valid JSON"),
        ("[1, 2]", "holds a list|neither"),
        ("{}", "names its question"),
        ('{"request_throughput": 3}', "names its question"),
        ('{"error": {"message": "so it was"}}', "so it was"),
        ('{"settings": {"modle": "x"}, "ttft_s": 1}', "names its"),
        ('{"settings": {"modle": "x"}, "infeasible": {}}', "modle"),
        ("{" * 5, "not valid JSON"),
    ],
)
def test_wrong_input_is_one_message(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=message):
        read_source(path)


def test_bytes_and_missing_files_are_said(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="no UTF-8 text"):
        read_source(tmp_path / "b")
    with pytest.raises(ScenarioError, match="There is no file"):
        read_source(tmp_path / "nowhere")


def test_kinds_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, SERVED)
    with pytest.raises(ScenarioError, match="write one of plan, estimate"):
        read_source(path, "guess")
    with pytest.raises(ScenarioError, match="nothing varies"):
        read_source(path, "sweep")
    with pytest.raises(ScenarioError, match="leave one of them out"):
        read_source(path, "estimate", ["tp=1,2"])
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps({"settings": SERVED, "ttft_s": 1, "tpot_s": 1, "deployment": {}}))
    assert read_source(answer).kind == "estimate"
    assert read_source(answer).scenario == read_scenario(SERVED)
    with pytest.raises(ScenarioError, match="leave --as out"):
        read_source(answer, "plan")
    with pytest.raises(ScenarioError, match="is an answer already"):
        read_source(answer, over=["tp=1"])


@pytest.mark.parametrize(
    ("out", "message"),
    [("r.doc", "end it in .html or .pdf"), ("none/r.html", "no folder"), ("q.toml/../d.html", ""), ("", "missing")],
)
def test_the_command_checks_where_it_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], out: str, message: str
) -> None:
    path = written(tmp_path, SERVED | {"batch": 2})
    (tmp_path / "d.html").mkdir()
    arguments = ["report", str(path), *(["--out", str(tmp_path / out.removeprefix("q.toml/../"))] if out else [])]
    assert run(arguments) == 2
    assert (message or "is a folder") in capsys.readouterr().err


def test_the_source_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, SERVED | {"batch": 2}, "q.html")
    assert run(["report", str(path), "--out", str(path)]) == 2
    assert "the source itself" in capsys.readouterr().err
    assert "llama" in path.read_text()


def test_infeasible_is_a_report_that_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(
        tmp_path, {"model": "llama-3.1-405b", "device": "l40s", "batch": 1, "input_tokens": 99, "output_tokens": 9}
    )
    assert run(["report", str(path), "--out", str(tmp_path / "r.html"), "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["headline"].startswith("No. ")
    assert found["infeasible"]["need"] > found["infeasible"]["have"] > 0
    assert found["infeasible"]["smallest_change"] in " ".join(found["summary"])
    assert found["headline"].partition(":")[0] in (tmp_path / "r.html").read_text()
