"""Two designs side by side."""

import csv
import io
import re

import pytest
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient

from orrery.web.app import application
from orrery.web.compare.figures import Compared, Measure, compared
from orrery.web.compare.sides import differences, settings_of_both, side_of
from orrery.web.place import place_at

LOAD = "input_tokens=512&output_tokens=64&concurrency=8"
TWO = f"a.model=llama-3.1-8b&a.device=h100-sxm&b.model=llama-3.1-70b&b.device=h100-sxm&b.tp=4&{LOAD}"
RATE = Measure(path="output_tokens_per_s", name="Throughput", unit="tokens_per_s", less="slower", more="faster")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    return TestClient(application(place_at(tmp_path_factory.mktemp("web"))), base_url="http://127.0.0.1")


@pytest.fixture
def sides(tmp_path):
    place = place_at(tmp_path)
    return tuple(side_of(x, s, place) for x, s in zip("AB", settings_of_both(QueryParams(TWO)), strict=True))


def pair(a_80, b_80, a=10.0, b=20.0):
    return Compared(measure=RATE, a=a, b=b, a_80=a_80, b_80=b_80)


def test_likely_only_where_intervals_are_apart():
    assert pair((9, 11), (18, 22)).verdict == "B likely faster"
    assert pair((9, 18), (18, 22)).verdict == "within the 80 % intervals"
    assert pair((9, 11), (1, 2), b=1.5).verdict == "B likely slower"
    assert pair(None, (18, 22)).verdict == "no interval is known"
    assert not pair(None, (18, 22)).is_sure
    assert pair((9, 11), (9, 11), b=10.0).verdict == "the same"
    assert pair((9, 11), (18, 22)).ratio == 2.0


def test_a_change_has_the_interval_of_the_ratio():
    both = Compared(measure=RATE, a=10.0, b=12.0, a_80=(8, 13), b_80=(10, 15), ratio_80=(1.1, 1.3))
    assert both.change == "20 % higher (80 %: 10 to 30)"
    unsure = Compared(measure=RATE, a=10.0, b=9.0, a_80=(8, 13), b_80=(8, 11), ratio_80=(0.8, 1.05))
    assert unsure.change == "10 % lower, within the interval (80 %: -20 % to +5 %)"
    assert pair((9, 11), (18, 22)).change == "B likely faster"  # no interval of the ratio: the verdict


def test_settings_of_one_side_both_and_none():
    a, b = settings_of_both(QueryParams(TWO))
    assert a["model"] == "llama-3.1-8b"
    assert b["tp"] == "4"
    assert a["concurrency"] == b["concurrency"] == "8"
    only = settings_of_both(QueryParams("a.model=x&a.tp=2"))
    assert only[0] == only[1] == {"model": "x", "tp": "2"}
    example = settings_of_both(QueryParams(""))
    assert {k for k in example[0] if example[0][k] != example[1][k]} == {"device"}


def test_what_differs_is_marked(sides):
    found = {row.name: row for row in differences(*sides)}
    assert found["model"].differs
    assert not found["device"].differs
    assert (found["tp"].a, found["tp"].b) == ("-", "4")
    assert found["layout"].b == "tp4"
    assert found["layout"].is_taken


def test_a_small_model_is_likely_faster_a_token(sides):
    found = {row.measure.path: row for row in compared(*sides)}
    assert found["tpot_s"].verdict == "B likely slower"
    assert found["tpot_s"].ratio == pytest.approx(sides[1].answer.estimate.tpot_s / sides[0].answer.estimate.tpot_s)
    assert found["memory.weights_bytes"].a == sides[0].answer.estimate.memory.weights_bytes


def test_the_page(client):
    page = client.get("/compare?" + TWO)
    assert page.status_code == 200
    assert page.text.count('class="at-desk') == 5
    assert "B likely slower" in page.text
    swapped = re.search(r'href="/compare\?([^"]+)">Swap', page.text)[1].replace("&amp;", "&")
    again = client.get("/compare?" + swapped)
    assert "B likely faster" in again.text
    assert 'name="a.tp" value="4"' in again.text
    copied = re.search(r'href="/compare\?([^"]+)">Copy', page.text)[1].replace("&amp;", "&")
    assert "likely" not in client.get("/compare?" + copied, headers={"hx-request": "true"}).text.replace("“likely”", "")
    part = client.get("/compare?" + TWO, headers={"hx-request": "true"})
    assert "<form" not in part.text
    blank = client.get("/compare?" + TWO + "&a.pp=&b.ep=", headers={"hx-request": "true"})
    assert "=&" not in blank.headers["hx-push-url"]
    assert client.get(blank.headers["hx-push-url"]).text.count("B likely slower") == page.text.count("B likely slower")
    assert "<html" not in part.text


def test_a_side_that_cannot_be_stands_beside_one_that_can(client):
    page = client.get(f"/compare?a.model=llama-3.1-70b&b.model=llama-3.1-8b&device=h100-sxm&weights=bf16&{LOAD}")
    assert page.status_code == 200
    assert "A: infeasible configuration" in page.text
    assert "needs 1" in page.text
    page = client.get(f"/compare?a.model=/etc/passwd&b.model=llama-3.1-8b&device=h100-sxm&{LOAD}")
    assert "A cannot be answered" in page.text
    assert "is a path" in page.text
    assert page.text.count('class="at-desk') == 5


def test_names_are_text(client):
    page = client.get(f"/compare?a.model=%3Cimg+src=x%3E&b.model=llama-3.1-8b&device=h100-sxm&{LOAD}")
    assert "<img src=x>" not in page.text
    assert "&lt;img src=x&gt;" in page.text


def test_files(client):
    rows = list(csv.DictReader(io.StringIO(client.get(f"/compare?{TWO}&format=csv").text)))
    row = next(r for r in rows if r["figure"] == "tpot_s")
    assert float(row["ratio"]) == pytest.approx(float(row["b"]) / float(row["a"]))
    assert row["verdict"] == "B likely slower"
    description = client.get(f"/compare?{TWO}&format=json").json()
    assert description["a"]["tpot_s"] == float(row["a"])
    assert description["b"]["settings"]["tp"] == "4"
    assert client.get(f"/compare?{TWO}&format=svg&show=memory").text.startswith("<svg")
    assert client.get(f"/compare?{TWO}&format=svg&show=../x").status_code == 422
