"""``--report FILE`` of every command whose answer is a deployment or a comparison."""

import pytest

from orrery.reports import estimate, make, plan, train, train_plan

SERVED = ["--model", "llama-3.1-8b", "--device", "h100-sxm", "--input-tokens", "256", "--output-tokens", "64"]
LOOP = [*SERVED, "--concurrency", "4"]
JOB = ["--model", "llama-3.1-8b", "--device", "h100-sxm", "--devices", "8", "--global-batch", "64"]
JOB += ["--seq-len", "2048", "--tp", "8"]
RUN = [*SERVED, "--rate", "2", "--num-requests", "20"]

ANSWERS = {
    "estimate": ["estimate", *LOOP],
    "simulate": ["simulate", *RUN],
    "sweep": ["simulate", *RUN, "--sweep", "tp=1,2"],
    "plan": ["plan", *SERVED, "--max-devices", "1", "--slo", "tpot:50"],
    "train": ["train", *JOB],
    "compare": ["compare", *LOOP, "--with", "weights=fp8"],
    "what-if": ["what-if", "fp8-weights", *LOOP],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_is_also_a_page(name, describe, tmp_path):
    file = tmp_path / "report.html"
    code, out, err = describe(*ANSWERS[name], "--report", str(file))
    assert code == 0, (out, err)
    text = file.read_text()
    for heading in ("The answer", "Risk", "How to check it"):
        assert heading in text
    assert "llama-3.1-8b" in text.casefold()
    assert "<script" not in text


@pytest.mark.parametrize(
    ("arguments", "module", "function"),
    [
        (ANSWERS["estimate"], estimate, "estimate"),
        (ANSWERS["plan"], plan, "plan_scenario"),
        (ANSWERS["train"], train, "train"),
        ([*ANSWERS["train"], "--plan"], train_plan, "train_plan"),
    ],
)
def test_the_answer_is_not_worked_out_again_for_its_report(
    arguments, module, function, describe, tmp_path, monkeypatch
):
    sources, asked, answer = [], [], getattr(module, function)
    report_of = make.report_of
    monkeypatch.setattr(make, "report_of", lambda source: sources.append(source) or report_of(source))
    monkeypatch.setattr(module, function, lambda scenario: asked.append(scenario.written()) or answer(scenario))
    code, out, err = describe(*arguments, "--report", str(tmp_path / "report.html"))
    assert code == 0, (out, err)
    assert sources[0].scenario.written() not in asked  # only what could be otherwise is


def test_a_no_is_reported_too(describe, tmp_path):
    file = tmp_path / "report.html"
    code, *_ = describe("estimate", "--report", str(file), *LOOP, "--model", "llama-3.1-70b")
    assert code == 3
    assert "No. " in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["estimate", *LOOP, "--report", "a.txt"], "report: 'a.txt' is nothing that a report is written as"),
        (["estimate", *LOOP, "--report", "nowhere/a.html"], "report: there is no folder nowhere"),
        (["estimate", "--model", "flux.1-dev", "--device", "h100-sxm", "--report", "a.html"], "report: is of text"),
        (["plan", *SERVED, "--slo", "tpot:50", "--disaggregate", "--report", "a.html"], "report: is of plans"),
        (["train", *JOB, "--rl", "--report", "a.html"], "report: is of a training job of one model"),
    ],
)
def test_what_cannot_be_reported_is_refused_before_anything_is_printed(arguments, message, describe):
    code, out, err = describe(*arguments)
    assert code == 2
    assert message in err
    assert out == ""
