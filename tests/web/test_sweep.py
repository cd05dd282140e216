"""Sweeps: what is asked, curves, where they end, and the page with its slider."""

import csv
import io
import json
import re
import time

import pytest
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient

from orrery.base.errors import ScenarioError
from orrery.scenario.ask import estimate
from orrery.web.app import application
from orrery.web.place import place_at
from orrery.web.sweep.curves import Curve, SweepPoint, Swept, swept
from orrery.web.sweep.ends import crossings, gaps
from orrery.web.sweep.inputs import asked_of
from orrery.web.sweep.metrics import BY_KEY, Value
from orrery.web.sweep.parameter import PARAMETERS, spread
from orrery.web.sweep.pictures import chart

BASE = "model=llama-3.1-8b&device=h100-sxm&input_tokens=1024&output_tokens=128&"


def requested(text=""):
    return asked_of(QueryParams(text))


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    return TestClient(application(place_at(tmp_path_factory.mktemp("web"))), base_url="http://127.0.0.1")


def test_counts_are_whole_and_stand_once():
    assert spread(PARAMETERS["concurrency"], 1, 8, 20, is_log=True) == ("1", "2", "3", "4", "5", "6", "7", "8")
    assert spread(PARAMETERS["usd_per_hour"], 1, 3, 3, is_log=False) == ("1", "2", "3")


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("from=0", "from"),
        ("from=nan", "from"),
        ("to=1e99", "to"),
        ("points=1e30", "points"),
        ("points=1", "points"),
        ("from=9&to=3", "below"),
        ("scale=cubic", "scale"),
        ("vary=seed", "vary"),
        ("by=concurrency", "by"),
        ("by=rate", "by"),
        ("values=a,b", "concurrency"),
        ("values=" + ",".join(map(str, range(1, 80))), "at most 60"),
        ("points=60&to=4000&by=tp&lines=1,2,3,4,5,6", "240"),
        ("by=tp&lines=1,2,3,4,5,6,7", "at most 6"),
        ("vary=electricity&scale=log&from=0", "above 0"),
        ("at=x", "at"),
    ],
)
def test_what_cannot_be_asked(query, word):
    with pytest.raises(ScenarioError, match=word):
        requested(query)


def test_the_swept_setting_puts_others_aside():
    found = requested(BASE + "vary=rate&concurrency=8&devices=4&by=tp")
    point = found.at_point("2", "4")
    assert point["rate"] == "2"
    assert point["tp"] == "4"
    assert "concurrency" not in point
    assert "devices" not in point


def test_another_setting_does_not_inherit_the_range_of_the_last():
    found = requested(BASE + "vary=input_tokens&was=concurrency&from=1&to=64&points=20&at=19")
    assert found.controls["from"] == "128"
    assert found.at == len(found.values) // 2
    assert requested(BASE + "by=tp&was_by=weights&lines=bf16,fp8").lines == ("1", "2", "4", "8")


def test_the_address_asks_the_same_again():
    found = requested(BASE + "vary=rate&from=1&to=9&points=5&by=tp&lines=1,2&slo=tpot:20&at=3")
    again = requested(found.query())
    assert (again.settings, again.values, again.lines, again.at) == (found.settings, found.values, found.lines, 3)


def test_points_are_estimates(tmp_path):
    found = swept(requested(BASE + "values=1,16&by=tp&lines=1,2"), tmp_path)
    settings = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 1024, "output_tokens": 128}
    answer = estimate(**settings, concurrency=16, tp=2)
    figure = found.curves[1].points[1].figures["tpot_s"]
    around = answer.estimate.intervals["tpot_s"]
    assert figure == Value(answer.estimate.tpot_s, around.low_80, around.high_80)
    assert [c.name for c in found.curves] == ["tp 1", "tp 2"]


def test_a_curve_ends_where_no_more_can_leave_and_says_why(tmp_path):
    question = requested(BASE + "vary=rate&values=1,1000,2000")
    [gap] = gaps(swept(question, tmp_path))
    assert (gap.first, gap.last, gap.count) == ("1000", "2000", 2)
    assert "needs 1,000 requests/s" in gap.why or "needs 1000" in gap.why


def test_one_mistake_everywhere_is_a_mistake_and_some_are_gaps(tmp_path):
    with pytest.raises(ScenarioError, match="path"):
        swept(requested("model=/etc/passwd&device=h100-sxm&input_tokens=9&output_tokens=9"), tmp_path)
    [gap] = gaps(swept(requested(BASE + "vary=tp&values=1,3"), tmp_path))
    assert gap.first == "3"
    assert "heads" in gap.why


def line(*values, key="tpot_s"):
    return Curve(name="x", points=tuple(SweepPoint(value=str(x), figures={key: Value(y)}) for x, y in values))


def test_crossings_lie_between_the_points_around_them():
    question = requested(BASE + "values=1,4,16&slo=tpot:20")
    found = Swept(curves=(line((1, 0.010), (4, 0.015), (16, 0.025)),), limits_s={"tpot": 0.020})
    [crossing] = crossings(found, question)
    assert crossing.at == pytest.approx(8.0)
    assert crossing.is_met_below
    assert "within 20 ms up to about 8 requests" in crossing.describe("requests")
    below = Swept(curves=(line((1, 0.010), (4, 0.015)),), limits_s={"tpot": 0.020})
    assert "within 20 ms everywhere" in next(iter(crossings(below, question))).describe("")


def test_the_mark_carries_the_scale_that_a_script_moves_it_by(tmp_path):
    question = requested(BASE + "values=1,10,100&at=1")
    drawing = chart(swept(question, tmp_path), question, BY_KEY["tpot_s"])
    at, scale = re.search(r'data-at="([\d.]+)" data-scale="([^"]+)"', drawing).groups()
    description = json.loads(scale.replace("&quot;", '"'))
    assert description["log"]
    assert description["low"] < 1
    assert description["high"] > 100
    assert description["start"] < float(at) < description["end"]
    assert float(at) == pytest.approx((description["start"] + description["end"]) / 2, abs=0.2)


def test_words_are_rows(tmp_path):
    question = requested(BASE + "concurrency=4&vary=weights&values=bf16,fp8")
    drawing = chart(swept(question, tmp_path), question, BY_KEY["tpot_s"])
    assert "fp8" in drawing
    assert "data-scale" not in drawing


def test_the_page_and_its_part(client):
    whole = client.get("/sweep?" + BASE + "values=1,8,64&slo=tpot:12")
    assert whole.status_code == 200
    assert whole.text.count("<h1") == 1
    assert whole.text.count('<figure id="sweep-') == 7
    assert 'aria-valuetext="8 requests"' in whole.text
    assert 'hx-trigger="move"' in whole.text
    assert "within 12 ms up to about" in whole.text
    part = client.get("/sweep?" + BASE + "values=1,8,64", headers={"hx-request": "true"})
    assert "<html" not in part.text
    assert 'hx-swap-oob="true"' in part.text
    assert whole.text.count('id="sweep-controls"') == 1


def test_a_mistake_keeps_what_was_typed(client):
    answer = client.get("/sweep?" + BASE + "from=7&to=3")
    assert answer.status_code == 422
    assert 'value="7"' in answer.text
    assert "not below" in answer.text
    nothing = client.get("/sweep?model=%3Cscript%3E&device=h100-sxm&input_tokens=1&output_tokens=1")
    assert nothing.status_code == 422
    assert "<script>" not in nothing.text.replace('<script src="', "")


def test_the_slider_computes_nothing(client, monkeypatch):
    address = BASE + "values=1,2,4,8,16,32"
    client.get("/sweep?" + address)
    monkeypatch.setattr("orrery.web.sweep.curves.estimate", None)
    started = time.process_time()
    found = [client.get(f"/sweep/point?{address}&at={at}", headers={"hx-request": "true"}).text for at in range(6)]
    assert (time.process_time() - started) / 6 < 0.05
    assert all(f"Concurrency: {value} " in text for value, text in zip((1, 2, 4, 8, 16, 32), found, strict=True))


def test_files(client):
    address = "/sweep?" + BASE + "vary=rate&values=1,1000&format="
    [head, first, last] = csv.reader(io.StringIO(client.get(address + "csv").text))
    row = dict(zip(head, first, strict=True))
    assert row["status"] == "done"
    assert float(row["tpot_s_low_80"]) < float(row["tpot_s"]) < float(row["tpot_s_high_80"])
    assert last[4] == "infeasible"
    assert "needs" in last[5]
    assert client.get(address + "json").json()["curves"][0]["points"][0]["figures"]["tpot_s"]["value"] == float(
        row["tpot_s"]
    )
    drawing = client.get(address + "svg&show=ttft_s")
    assert drawing.headers["content-disposition"].endswith('"sweep-rate-ttft_s.svg"')
    assert drawing.text.startswith("<svg")
    assert client.get(address + "svg&show=../x").status_code == 422
    assert client.get(address + "exe").status_code == 422
