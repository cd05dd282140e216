"""Plans as a page: at once, then the front, the table, what was rejected, and files."""

import csv
import io
import json
import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient

from orrery.scenario.ask import estimate, plan
from orrery.web.app import application
from orrery.web.design.inputs import design_settings
from orrery.web.place import place_at
from orrery.web.plans import front, rejected, table
from orrery.web.plans.candidate import design, named

QUERY = "model=llama-3.1-8b&device=h100-sxm&max_devices=2&rate=4&input_tokens=1024&output_tokens=256&slo=tpot:40"
SETTINGS = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "max_devices": 2,
    "rate": 4.0,
    "input_tokens": 1024,
    "output_tokens": 256,
    "slo": ["tpot:40"],
    "weights": "fp8",
    "tp": 1,
}
LARGE = {**SETTINGS, "model": "llama-3.1-405b", "tp": 2}


@pytest.fixture(scope="module")
def answer():
    return plan(**SETTINGS).to_json()


@pytest.fixture(scope="module")
def none():
    return plan(**LARGE).to_json()


class Answers:
    """In the place of the processes: gives one answer, and counts."""

    def __init__(self, answer):
        self.answer_, self.inputs = answer, []

    async def answer(self, question, settings, asker=None):
        self.inputs.append((question, settings))
        return self.answer_


@pytest.fixture
def work(answer):
    return Answers(answer)


@pytest.fixture
def client(tmp_path, work):
    app = application(place_at(tmp_path))
    app.state.work = work
    return TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)


def part(client, query=QUERY):
    return client.get(f"/plans?{query}", headers={"hx-request": "true"})


def test_the_page_comes_before_the_answer(client, work):
    page = client.get(f"/plans?{QUERY}").text
    assert work.inputs == []
    assert f'hx-get="/plans?{QUERY}" hx-trigger="load"' in unescape(page)
    assert "&whole=1" in unescape(re.search(r"<noscript>.*?</noscript>", page, re.S)[0])
    assert "<html" in client.get(f"/plans?{QUERY}&whole=1").text
    assert work.inputs[0][0] == "plan"


def test_a_forms_address_is_made_short(client):
    found = client.get("/plans?model=a&device=&rate=&ttft=500")
    assert (found.status_code, found.headers["location"]) == (303, "/plans?model=a&slo=ttft%3A500")
    assert client.get("/plans").status_code == 303


def test_the_answer_has_front_table_launch_and_command(client, answer):
    page = unescape(part(client).text)
    assert "<html" not in page
    for plan_ in answer["plans"]:
        assert named(plan_) in page
    assert answer["plans"][0]["launch"]["vllm"].splitlines()[0] in page
    assert "orrery plan --model llama-3.1-8b" in page
    assert 'data-id="f1"' in page
    assert 'data-id="p1"' in page
    assert f"{answer['num_plans']} plans that work" in page


def test_a_plans_link_is_the_design_that_it_is(answer):
    for one in answer["plans"]:
        settings = design_settings(QueryParams(parse_qsl(urlsplit(design(answer, one)).query)))
        found = estimate(**settings).estimate
        assert found.tpot_s == pytest.approx(one["tpot_s"], rel=0.02)
        assert found.num_devices * one["replicas"] == one["num_devices"]


def test_a_points_link_has_the_points_load(answer):
    point = answer["front"][0]
    settings = design_settings(QueryParams(parse_qsl(urlsplit(design(answer, point)).query)))
    assert int(settings["concurrency"]) == max(1, round(point["concurrency"]))
    assert settings["tp"] == str(point["layout"]["tp"])


def test_a_column_sorts_up_then_down_then_not_at_all(answer):
    numbers = [r.number for r in table.rows(answer, "energy_j_per_token")]
    energy = [answer["plans"][n - 1]["energy_j_per_token"] for n in numbers]
    assert energy == sorted(energy)
    assert [r.number for r in table.rows(answer, "-energy_j_per_token")] == sorted(
        numbers, key=lambda n: -answer["plans"][n - 1]["energy_j_per_token"]
    )
    assert [r.number for r in table.rows(answer, "nothing")] == [r.number for r in table.rows(answer, "")]
    assert [table.next_sort(s, "ttft_s") for s in ("", "ttft_s", "-ttft_s")] == ["ttft_s", "-ttft_s", ""]


def test_intervals_stand_below_figures(client, answer):
    around = answer["plans"][0]["intervals"]["ttft_s"]
    assert table.between(around, "s") in unescape(part(client).text)


@pytest.mark.parametrize("x", front.X_AXES, ids=lambda s: s.key)
@pytest.mark.parametrize("y", front.Y_AXES, ids=lambda s: s.key)
def test_the_front_follows_the_axes(answer, x, y):
    drawing = front.drawn(answer, x, y)
    assert drawing.count('data-id="f') == len(answer["front"])
    assert drawing.count('data-id="p') == len(answer["plans"])


def test_what_is_less_is_better_where_it_is(answer):
    best = front._best(
        [(1.0, 5.0), (2.0, 6.0), (3.0, 4.0)], front.X_AXES[1], front.Y_AXES[1]
    )  # time and dollars: less is better
    assert best == {0, 2}
    assert front._best([(1.0, 5.0), (2.0, 6.0), (3.0, 4.0)], front.X_AXES[0], front.Y_AXES[0]) == {1, 2}


def test_dollars_of_a_point_are_those_of_its_devices(answer):
    point = answer["front"][0]
    usd = answer["prices"]["h100-sxm"]["usd_per_hour"] / 3600 / point["output_tokens_per_s_per_device"] * 1e6
    assert front.Y_AXES[1].of(answer, point) == pytest.approx(usd)


def test_files(client, answer):
    rows = list(csv.reader(io.StringIO(client.get(f"/plans?{QUERY}&format=csv").text)))
    assert len(rows) == 1 + len(answer["plans"])
    assert float(rows[1][rows[0].index("tpot_s")]) == answer["plans"][0]["tpot_s"]
    assert json.loads(client.get(f"/plans?{QUERY}&format=json").text)["num_plans"] == answer["num_plans"]
    found = client.get(f"/plans?{QUERY}&format=svg&y=usd")
    assert "Cost ($/1M output tokens)" in found.text
    assert found.headers["content-type"] == "image/svg+xml"


def test_no_plan_is_an_answer(client, work, none):
    work.answer_ = none
    page = unescape(part(client).text)
    assert "No plan works" in page
    assert none["infeasible"]["smallest_change"] in page
    assert rejected.shortfall(none["rejected"][0]) in page
    assert rejected.kinds(none)[0].name.endswith("do not fit into memory")


def test_why_not_fewer_devices(answer):
    one = {**answer["plans"][0], "num_devices": 2, "replicas": 2, "highest_requests_per_s": 10.0}
    said = rejected.fewer({**answer, "plans": [one]})
    assert said == "1 replica of it carries 5 requests/s, less than the arrival rate."
    assert rejected.fewer({**answer, "plans": []}) == ""
    assert "1 device" in rejected.fewer(answer)


@pytest.mark.parametrize(
    ("query", "description"),
    [
        ("model=<script>alert(1)</script>&device=h100-sxm", "There is no model"),
        ("model=llama-3.1-8b&device=../x", "is a path"),
        ("model=llama-3.1-8b&device=h100-sxm&rate=-1", "rate: got"),
    ],
)
def test_a_mistake_is_said_above_the_form(client, query, description):
    found = client.get(f"/plans?{query}")
    assert found.status_code == 422
    assert description in found.text
    assert "<script>alert" not in found.text
    assert 'id="f-model"' in found.text


def test_numbers_do_not_depend_on_an_uploads_path(client, work, tmp_path):
    (tmp_path / "uploads" / "mine.json").write_text("{}")
    page = part(client, "model=upload:mine.json&device=h100-sxm&rate=4&input_tokens=9&output_tokens=9").text
    assert str(tmp_path) not in page
    assert work.inputs[0][1]["model"] == str(tmp_path / "uploads" / "mine.json")
    assert "model=upload%3Amine.json" in page
