"""One training job as a page."""

import csv
import io
import json
from html import unescape

import pytest
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient

from orrery.scenario.train import train
from orrery.web.app import application
from orrery.web.place import place_at
from orrery.web.training.inputs import training_settings

SETTINGS = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "devices": "16",
    "global_batch": "64",
    "micro_batch": "1",
    "seq_len": "4096",
    "precision": "bf16",
    "tp": "2",
    "pp": "2",
    "sharding": "zero1",
}
QUERY = "&".join(f"{k}={v}" for k, v in SETTINGS.items())


@pytest.fixture
def client(tmp_path):
    return TestClient(application(place_at(tmp_path)), base_url="http://127.0.0.1", follow_redirects=False)


def test_the_address_is_made_whole(client):
    assert client.get("/training").headers["location"].endswith("tp=2&sharding=zero1")
    assert training_settings(QueryParams("devices=64&rate=4")) == {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "devices": "64",
        "global_batch": "64",
        "micro_batch": "1",
        "seq_len": "4096",
        "precision": "bf16",
    }


def test_the_page_says_what_the_answer_says(client):
    page = unescape(client.get(f"/training?{QUERY}").text)
    assert "orrery train --model llama-3.1-8b" in page
    assert page.count("<figure") >= 3, "the step, memory and the pipeline"
    assert f"/runs/new?kind=train-plan&{QUERY}" in page
    found = client.get(f"/training?{QUERY}&pp=1", headers={"hx-request": "true"})
    assert "<html" not in found.text
    assert found.headers["hx-push-url"] == f"/training?{QUERY.replace('pp=2', 'pp=1')}"


def test_what_does_not_fit_and_what_makes_no_sense(client):
    page = unescape(client.get(f"/training?{QUERY.replace('8b', '405b')}").text)
    assert "Infeasible configuration" in page
    assert "What is missing" in page
    assert client.get(f"/training?{QUERY.replace('tp=2', 'tp=3')}").status_code == 422


def test_files(client):
    answer = train(**SETTINGS)
    rows = list(csv.reader(io.StringIO(client.get(f"/training?{QUERY}&format=csv").text)))
    assert sum(float(time_s) for _, time_s in rows[1:]) == pytest.approx(answer.step_time_s)
    assert json.loads(client.get(f"/training?{QUERY}&format=json").text)["step_time_s"] == answer.step_time_s
    assert client.get(f"/training?{QUERY}&format=svg&drawing=0").headers["content-type"] == "image/svg+xml"
    assert client.get(f"/training?{QUERY}&format=svg&drawing=99").status_code == 422
