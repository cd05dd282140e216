"""What a paper would do to the reader's own deployment, asked of a worker and held against the command."""

import json

import pytest
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient

from orrery.base.errors import OrreryError
from orrery.cli.main import run
from orrery.evidence.understanding.meaning import DeploymentEffect
from orrery.evidence.understanding.paper_lookup import named, understood_paper
from orrery.web.app import application
from orrery.web.papers.meaning import deployment_of, form_of, question, shown
from orrery.web.papers.yours import answer as answer_beside

HTMX = {"hx-request": "true"}


def test_the_form_is_of_the_paper_s_own_job(place):
    def names(key, query=""):
        form = form_of(QueryParams(query), place, understood_paper(named(key)))
        return form.is_training, {field.name: field.value for field in form.fields}

    is_training, fields = names("zero-offload")
    assert is_training
    assert fields["global_batch"] == "128"
    assert names("sarathi-serve")[0] is False
    assert names("sarathi-serve", "job=train")[0] is True
    assert names("sarathi-serve", "model=opt-13b")[1]["input_tokens"] == ""  # nothing is put in the reader's mouth


def test_a_deployment_comes_from_the_address_and_from_an_uploaded_file(place):
    (place.uploads / "mine-01234567.toml").write_text('model = "opt-13b"\ndevice = "a100-sxm-80gb"\nconcurrency = 8\n')
    found = deployment_of(QueryParams("scenario=upload:mine-01234567.toml&concurrency=16&job=serve"), place)
    assert found == {"model": "opt-13b", "device": "a100-sxm-80gb", "concurrency": "16"}
    assert deployment_of(QueryParams(""), place) is None


@pytest.mark.parametrize("line", ['model = "/etc/passwd"', 'draft-model = "/etc/passwd"', 'trace = "../../x.csv"'])
def test_a_file_cannot_name_paths_of_this_machine(place, line):
    (place.uploads / "bad.toml").write_text(line)
    for query in (
        "scenario=upload:bad.toml",
        "scenario=upload:../bad.toml",
        "scenario=/etc/passwd",
        "model=/etc/passwd",
    ):
        with pytest.raises(OrreryError, match=r"path|nothing was uploaded"):
            deployment_of(QueryParams(query), place)


class Answering:
    """A worker that knows its answer."""

    async def answer(self, name, settings, asker=None):
        self.inputs = name, settings
        description = {
            "technique": "chunked-prefill",
            "confidence_frac": 0.9,
            "metric": "ttft_s",
            "before": 0.2,
            "after": 0.1,
            "ratio": 0.5,
            "because": "policy = chunked-prefill: switched on (simulated).",
        }
        return {"meanings": [description]}


def test_what_a_paper_would_do_is_asked_of_a_worker_and_shown_with_both_numbers(place):
    app = application(place)
    app.state.work = work = Answering()
    client = TestClient(app, base_url="http://127.0.0.1")
    part = client.get("/papers/sarathi-serve?model=opt-13b&device=h100-sxm&concurrency=8", headers=HTMX).text
    assert "200 ms → 100 ms" in part
    assert "better, 0.50 times" in part
    assert "<html" not in part
    assert work.inputs[1]["deployment"] == {"model": "opt-13b", "device": "h100-sxm", "concurrency": "8"}
    assert ["chunked-prefill", 1.0] in work.inputs[1]["techniques"]
    wrong = client.get("/papers/sarathi-serve?model=/etc/passwd", headers=HTMX)
    assert wrong.status_code == 422
    assert "is a path" in wrong.text
    assert 'value="/etc/passwd"' in wrong.text


def test_less_time_is_better_and_more_tokens_are():
    def effect(metric, before, after):
        meaning = {"technique": "x", "confidence_frac": 1.0, "metric": metric, "before": before, "after": after}
        return shown({"meanings": [meaning]})[0].effect

    assert effect("ttft_s", 1.0, 2.0) == "worse"
    assert effect("output_tokens_per_s", 1.0, 2.0) == "better"
    assert effect("step_time_s", 1.0, 1.0) == "the same"
    assert shown({"meanings": [{"technique": "x", "confidence_frac": 1.0, "because": "no setting"}]})[0].effect == ""


class Behind:
    """Answers behind the pages: not known when first asked, then what the worker computes."""

    def __init__(self):
        self.asked = []

    def known(self, name, settings):
        self.asked.append((name, settings))
        return answer_beside(settings) if len(self.asked) > 1 else None


MINE = """model = "llama-3.1-8b"
device = "h100-sxm"
tp = 2
input_tokens = 512
output_tokens = 64
concurrency = 16
"""


def test_each_claim_stands_beside_the_saved_deployment_with_the_number_of_the_command(place, capsys, tmp_path):
    app = application(place)
    client = TestClient(app, base_url="http://127.0.0.1")
    assert "Once a deployment is saved" in client.get("/papers/ladder-residual").text
    assert client.post("/uploads", files={"file": ("mine.toml", MINE)}, follow_redirects=False).status_code == 303
    app.state.work = work = Behind()
    page = client.get("/papers/ladder-residual").text
    assert "computing…" in page
    assert 'hx-get="/papers/beside/ladder-residual"' in page
    assert work.asked[0][1]["technique"] == "ladder-residual"
    part = client.get("/papers/beside/ladder-residual", headers=HTMX).text
    assert "llama-3.1-8b on h100-sxm, tp 2, concurrency 16" in part
    assert 'hx-get="' not in part, "what is known is not asked for again"
    (tmp_path / "mine.toml").write_text(MINE)
    assert run(["what-if", "ladder-residual", "--scenario", str(tmp_path / "mine.toml"), "--json"]) == 0
    (by_command,) = json.loads(capsys.readouterr().out)["results"]
    times = 1.0 + by_command["difference"]["output_tokens_per_s"]["frac"]
    assert f"{times:.2f}x (80 %:" in part
    whole = client.get("/papers/ladder-residual").text
    assert f"{times:.2f}x (80 %:" in whole
    assert 'hx-trigger="load delay' not in whole
    short = client.get("/papers/beside/ladder-residual?short=1", headers=HTMX).text
    assert "your deployment: <strong>" in short
    given = client.get("/papers/beside/ladder-residual?model=/etc/passwd", headers=HTMX)
    assert "is a path" in given.text


def test_a_paper_that_no_command_takes_says_so_and_computes_nothing(place):
    app = application(place)
    client = TestClient(app, base_url="http://127.0.0.1")
    (place.uploads / "mine-01234567.toml").write_text(MINE)
    app.state.work = work = Behind()
    assert "On your deployment: not computed." in client.get("/papers/bipolar-int-apmm").text
    assert work.asked == []


@pytest.mark.slow
def test_the_worker_computes_what_the_command_says():
    from orrery.web.work.questions import PAPER, answered

    deployment = {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "input_tokens": 1024,
        "output_tokens": 64,
        "concurrency": 16,
        "num_requests": 10**7,
    }
    description = understood_paper(named("sarathi-serve"))
    found = [DeploymentEffect(**m) for m in answered(PAPER, question(deployment, description))["meanings"]]
    chunked = next(m for m in found if m.technique == "chunked-prefill")
    assert chunked.before is not None
    assert chunked.after is not None
    assert chunked.ratio == pytest.approx(chunked.after / chunked.before)
