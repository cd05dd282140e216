"""The question: a form whose address is the question."""

import time
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient

from orrery.scenario.schema import read_scenario
from orrery.web.address import settings_of, without_groups
from orrery.web.app import application
from orrery.web.assets import STATIC
from orrery.web.named import grounded
from orrery.web.place import place_at
from orrery.web.question.examples import EXAMPLES
from orrery.web.question.inputs import describe, form_values, is_from_form, plan_settings


@pytest.fixture
def place(tmp_path):
    return place_at(tmp_path)


@pytest.fixture
def client(place):
    return TestClient(application(place), base_url="http://127.0.0.1")


def test_the_first_page_is_small_and_quick(client):
    client.get("/")
    started_s = time.perf_counter()
    found = client.get("/")
    assert found.status_code == 200
    assert time.perf_counter() - started_s < 1.5  # 0.01 on a machine with nothing else to do
    beside = (
        "style.css",
        "page.js",
        "define.js",
        "best.css",
        "best.js",
        "best-chart.js",
        "best-points.js",
        "third_party/htmx-2.0.11.min.js",
        "icon.svg",
    )
    assert len(found.content) + sum((STATIC / name).stat().st_size for name in beside) < 300_000


def test_every_field_has_a_label_and_the_form_leads_to_plans(client):
    page = client.get("/plan").text
    for name in (
        "model",
        "device",
        "max_devices",
        "trace",
        "rate",
        "input_tokens",
        "output_tokens",
        "ttft",
        "tpot",
        "e2el",
    ):
        assert f'<label for="f-{name}">' in page
        assert f'id="f-{name}" name="{name}"' in page
    assert '<form action="/plans" method="get"' in page
    assert '<option value="meta-llama/Llama-3.1-70B">' in page


def test_the_form_holds_what_the_address_asks(client):
    page = client.get("/plan", params={"model": "qwen3-32b", "device": "l40s", "slo": "tpot:40", "weights": "fp8"}).text
    assert 'name="model" value="qwen3-32b"' in page
    assert 'name="tpot" value="40"' in page
    assert "<details open>" in page, "what is set is not folded away"


def test_uploads_are_offered(client, place):
    (place.uploads / "mine.json").write_text("{}")
    assert '<option value="upload:mine.json">' in client.get("/plan").text


def test_latencies_of_the_form_become_objectives():
    query = QueryParams("model=m&device=d&ttft=1000&tpot=&e2el=9000&rate=&slo=tpot:30")
    assert plan_settings(query) == {"model": "m", "device": "d", "slo": ["tpot:30", "ttft:1000", "e2el:9000"]}
    assert is_from_form(query)
    assert not is_from_form(QueryParams("model=m&slo=tpot:30"))
    assert form_values(plan_settings(query))["e2el"] == "9000"


def test_the_question_in_a_line():
    settings = {"model": "m", "device": "d", "trace": "chat", "slo": ["ttft:1000"], "max_devices": "8"}
    assert describe(settings) == "m on d: chat traffic, TTFT within 1000 ms, at most 8 devices"
    assert describe({"model": "m", "device": "d"}) == "m on d"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.name)
def test_examples_are_questions_that_make_sense(example, place, client):
    address = urlsplit(example.href)
    query = QueryParams(parse_qsl(address.query))
    inputs = read_scenario(grounded(plan_settings(query), place.uploads))
    assert inputs.model
    assert address.path in ("/plans", "/design")
    assert example.name in client.get("/plan").text


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("1,024", "1024"),
        ("1_024", "1024"),
        ("1,234,567.5", "1234567.5"),
        ("1,5", "1,5"),
        ("1,0244", "1,0244"),
        ("-", "-"),
    ],
)
def test_thousands_may_be_parted_and_a_decimal_comma_is_no_number(typed, read, client):
    assert without_groups(typed) == read
    assert settings_of(QueryParams({"input_tokens": typed}))["input_tokens"] == read


def test_a_decimal_comma_is_refused_where_it_stands(client):
    asked = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": "1,5", "output_tokens": "9", "batch": "1"}
    page = client.get("/design", params=asked)
    assert page.status_code == 422
    assert "input_tokens: got &#39;1,5&#39;" in page.text
    assert 'value="1,5"' in page.text
