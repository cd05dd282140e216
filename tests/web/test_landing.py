"""The landing page: its shipped charts are what is computed now, and every choice stands in the address."""

import json
import re
import time
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image, ImageColor
from starlette.testclient import TestClient

from landing_runs import runs_of
from landing_version import version
from orrery.catalog.api_prices import get_api_price
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.scenario.ask import Answer, estimate
from orrery.scenario.jobs import JOBS
from orrery.web.address import query_of
from orrery.web.app import application
from orrery.web.cards.drawn import BARS_PX, FIGURE_PX, LEFT_PX, MAX_ROWS, STEP_PX, TOP_PX
from orrery.web.cards.pen import ACCENT, BAND, HEIGHT_PX, WIDTH_PX
from orrery.web.landing import shipped
from orrery.web.landing.best import Limits, best_row, front_of
from orrery.web.landing.card import card
from orrery.web.landing.chart import BOTTOM_PX, apart, chart
from orrery.web.landing.choices import DEVICES, ENGINES, MODELS, TRAFFIC, formats_on, keys_of
from orrery.web.landing.points import COLUMNS, points_of
from orrery.web.landing.view import Choice, best_of, chart_data, summary
from orrery.web.pages.best import _built
from orrery.web.place import place_at
from orrery.web.question.jobs import jobs

ROOT = Path(__file__).resolve().parents[2]
LENGTHS = TRAFFIC["1k/1k"]
SAMPLE = (("llama-3.1-70b", "h100-sxm", "8"), ("deepseek-r1", "b200", "4"), ("gpt-oss-20b", "l40s", "4"))
STALE = "the charts were computed from other constants or mechanisms: run tools/landing.py"


@pytest.fixture
def client(tmp_path):
    return TestClient(application(place_at(tmp_path)), base_url="http://127.0.0.1")


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


@pytest.mark.parametrize("model", [m.key for m in MODELS])
def test_every_popular_model_is_computed_ahead(model):
    get_model(model)
    for engine in ENGINES:
        rows = shipped.shipped(model, engine)
        assert set(rows) == set(keys_of(engine))
        assert any(points for found in rows.values() for points in found.values())
        assert all(len(row) == len(COLUMNS) for found in rows.values() for points in found.values() for row in points)


def settings_of_row(model, device, engine, lengths, bits, row):
    """The settings of a row, as the page of its estimate takes them."""
    weights, cache = formats_on(model, device)[bits]
    degrees = {way: int(row[way]) for way in ("tp", "pp", "dp", "ep") if row[way] > 1 or way == "tp"}
    return {
        "model": model,
        "device": device,
        **degrees,
        **({"weights": weights} if weights else {}),
        "kv": cache,
        "engine": engine,
        "input_tokens": lengths[0],
        "output_tokens": lengths[1],
        "concurrency": int(row["concurrency"]),
    }


@pytest.mark.parametrize(("model", "device", "bits"), SAMPLE)
def test_a_shipped_point_is_the_estimate_that_it_links_to(model, device, bits):
    if shipped.version_of(model) != version():
        pytest.skip(STALE)
    rows = shipped.shipped(model, "vllm")[device][bits]
    for row in (rows[0], rows[-1]):
        named = dict(zip(COLUMNS, row, strict=True))
        found = estimate(**settings_of_row(model, device, "vllm", LENGTHS, bits, named))
        assert isinstance(found, Answer)
        e = found.estimate
        assert named["ttft_ms"] == pytest.approx(e.ttft_s * 1e3, rel=6e-3)
        assert named["tpot_ms"] == pytest.approx(e.tpot_s * 1e3, rel=6e-3)
        assert named["rate"] == pytest.approx(e.output_tokens_per_s / e.num_devices, rel=6e-3)
        high = e.intervals["tpot_s"].high_80 / e.tpot_s
        assert named["tpot_high"] == pytest.approx(100 * high, abs=0.51)


def test_what_is_computed_now_is_what_is_shipped():
    if shipped.version_of("llama-3.1-8b") != version():
        pytest.skip(STALE)
    assert points_of("llama-3.1-8b", "h100-sxm", "vllm", LENGTHS) == shipped.shipped("llama-3.1-8b", "vllm")["h100-sxm"]


def test_more_devices_and_speed_for_one_user_cost_rate_per_device():
    rows = shipped.shipped("llama-3.1-70b", "vllm")["h200-sxm"]["8"]
    named = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    for size in {p["tp"] for p in named}:
        front = [p for p in named if p["tp"] == size]
        assert [p["tpot_ms"] for p in front] == sorted(p["tpot_ms"] for p in front)
        assert [p["rate"] for p in front] == sorted(p["rate"] for p in front)


def test_formats_follow_the_checkpoint_and_the_device():
    assert formats_on("llama-3.1-70b", "h100-sxm") == {"16": ("bf16", "bf16"), "8": ("fp8", "fp8")}
    assert formats_on("llama-3.1-70b", "a100-sxm-80gb") == {"16": ("bf16", "bf16"), "8": ("int8", "bf16")}
    assert formats_on("deepseek-r1", "b200") == {"8": ("", "fp8"), "4": ("nvfp4", "fp8")}
    assert formats_on("deepseek-r1", "mi355x") == {"8": ("", "fp8"), "4": ("mxfp4", "fp8")}
    assert formats_on("gpt-oss-120b", "h100-sxm") == {"4": ("", "fp8")}


def test_published_runs_have_sources_and_rates_that_follow_from_their_latencies():
    runs = runs_of("gpt-oss-120b")
    assert runs
    assert all(run["source"] and run["device"] in {d.key for d in DEVICES} for run in runs)
    one = next(r for r in runs if r["devices"] == 4 and r["traffic"] == "1k/1k")
    lasts_s = (one["ttft_ms"] + (one["output_tokens"] - 1) * one["tpot_ms"]) / 1e3
    assert one["rate"] == pytest.approx(one["concurrency"] * one["output_tokens"] / lasts_s / 4, rel=0.02)
    assert one["predicted_rate"] > 0


def test_runs_with_separate_pools_are_drawn_without_a_prediction():
    runs = runs_of("deepseek-r1")
    assert any(run["devices"] > 8 and "predicted_rate" not in run for run in runs)


def test_the_page_holds_its_data_and_its_answer(client):
    page = client.get("/").text
    data = data_of(page)
    assert data["isComputed"]
    assert data["model"] == MODELS[0].key
    assert len(data["rows"]) == len(DEVICES)
    assert data["published"]
    assert "per M output tokens" in page
    assert '<meta property="og:image"' in page
    for job in jobs():
        assert job.question in page


def test_pages_and_scripts_travel_compressed(client):
    for address, most in (("/", 40_000), ("/static/style.css", 12_000), ("/static/best-chart.js", 12_000)):
        with client.stream("GET", address, headers={"accept-encoding": "gzip"}) as answer:
            assert answer.headers["content-encoding"] == "gzip"
            sent = sum(len(part) for part in answer.iter_raw())
        plain = client.get(address, headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert sent < min(most, len(plain.content) / 2), address


def test_the_best_is_within_the_slo_and_a_looser_one_costs_no_more():
    tight, loose = best_of(Choice(tpot_s=0.025)), best_of(Choice(tpot_s=0.08, ttft_s=5))
    assert all(b.row["tpot_ms"] <= 25 and b.row["ttft_ms"] <= 1000 for b in tight)
    cost = {b.device.key: b.usd_per_million for b in loose}
    assert all(b.usd_per_million >= cost[b.device.key] for b in tight if b.usd_per_million)
    assert best_of(Choice(tpot_s=1e-5)) == ()
    assert "$" in summary(Choice())


ONE = {
    **dict.fromkeys(COLUMNS, 1.0),
    "tp": 4,
    "concurrency": 10,
    "ttft_ms": 100,
    "tpot_ms": 10,
    "rate": 100,
    "watts": 400,
}


def test_the_best_point_lies_between_two_computed_ones_where_the_slo_is_just_met():
    after = {**ONE, "concurrency": 1000, "tpot_ms": 40, "rate": 400, "watts": 1600}
    found = best_row([ONE, after], Limits(ttft_s=1, tpot_s=0.02))  # half of the way on logarithms
    assert (found["tpot_ms"], found["concurrency"]) == (pytest.approx(20), pytest.approx(100, abs=1))
    assert (found["rate"], found["watts"], found["ttft_ms"]) == pytest.approx((200, 800, 100))
    assert best_row([ONE, after], Limits(ttft_s=1, tpot_s=0.04)) == after  # nothing is interpolated
    assert best_row([ONE, {**after, "tp": 8}], Limits(ttft_s=1, tpot_s=0.02)) == ONE  # another layout
    assert best_row([ONE, after], Limits(ttft_s=1, tpot_s=0.009)) is None


def test_the_front_rises_in_rate_as_one_user_waits_longer():
    slow, worse = {**ONE, "tpot_ms": 20, "rate": 300}, {**ONE, "tpot_ms": 30, "rate": 250}
    assert front_of([worse, slow, ONE]) == [ONE, slow]


def test_the_chart_stands_in_the_page_without_a_script(client):
    for address, unit in (("/", "output tokens/s/device"), ("/?y=usd", "$ per M output tokens")):
        page = client.get(address).text
        drawn = re.search(r'<svg id="chart"[^>]*>(.*?)</svg>', page, re.S)[1]
        ElementTree.fromstring(f"<svg>{drawn}</svg>")
        assert unit in drawn
        assert "SLO: TPOT 50 ms, TTFT 1000 ms" in drawn
        names = re.findall(r'class="name[^>]*>([^<]+)<', drawn)
        assert set(names) <= {d.title for d in DEVICES}
        assert len(names) > 10
    assert "Computing" in chart(Choice(model="qwen2.5-7b"))


def test_names_are_moved_apart_and_stay_within_the_plot():
    assert apart([50.0, 52.0, 200.0], 16) == [50, 66, 200]
    assert apart([BOTTOM_PX - 5.0, BOTTOM_PX - 4.0], 16) == [BOTTOM_PX - 16, BOTTOM_PX]


def test_the_page_is_built_once_and_asks_for_little(client):
    page = client.get("/").text
    head = page.partition("</head>")[0]
    assert 'rel="stylesheet"' not in head  # nothing is waited for before the first paint
    assert all("defer" in tag for tag in re.findall(r"<script src[^>]*>", page))
    assert len(re.findall(r"<script src", page)) == 2
    began_s = time.thread_time()
    _built(Choice(), False, "http://127.0.0.1/", client.app.state.menu)
    built_s = time.thread_time() - began_s
    began_s = time.thread_time()
    for _ in range(100):
        _built(Choice(), False, "http://127.0.0.1/", client.app.state.menu)
    assert built_s < 0.1
    assert time.thread_time() - began_s < 0.01  # kept: 0.1 ms each at most


def test_dollars_are_the_price_over_the_rate():
    data = chart_data(Choice())
    price = next(d["usdPerHour"] for d in data["devices"] if d["key"] == "h100-sxm")
    best = next(b for b in best_of(Choice()) if b.device.key == "h100-sxm")
    assert best.usd_per_million == pytest.approx(price / 3600 / best.row["rate"] * 1e6, rel=1e-3)


def test_public_api_prices_count_the_input_that_an_output_takes():
    one = next(a for a in chart_data(Choice(model="llama-3.1-8b"))["apis"] if a["name"] == "deepinfra")
    price = get_api_price("deepinfra/llama-3.1-8b").price
    assert one["usd"] == pytest.approx(1e6 * (price.output_usd_per_tokens + price.input_usd_per_tokens), abs=1e-4)
    more = next(
        a for a in chart_data(Choice(model="llama-3.1-8b", traffic="8k/1k"))["apis"] if a["name"] == "deepinfra"
    )
    assert more["usd"] == pytest.approx(1e6 * (price.output_usd_per_tokens + 8 * price.input_usd_per_tokens), abs=1e-4)
    assert chart_data(Choice(model="gemma-4-26b-a4b", traffic="8k/1k"))["rows"] == {}


def test_a_spelling_leads_to_the_popular_model_and_others_are_computed(client):
    to = client.get("/best/model", params={"name": "Meta-Llama-3.1-70B-Instruct"}, follow_redirects=False)
    assert to.headers["location"] == "/?model=llama-3.1-70b"
    data = data_of(client.get("/", params={"model": "qwen2.5-7b"}).text)
    assert not data["isComputed"]
    assert not data["rows"]


def test_one_accelerator_is_computed_on_demand(reader):
    choice = {"model": "llama-3.1-8b", "device": "h100-sxm", "engine": "vllm", "traffic": "1k/1k"}
    found = reader.get("/best/points", params=choice).json()
    assert found["rows"] == points_of("llama-3.1-8b", "h100-sxm", "vllm", LENGTHS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "no-such-model"},
        {"model": "/etc/passwd"},
        {"engine": "<script>"},
        {"traffic": "9k"},
        {"bits": "7"},
        {"ttft": "nan"},
        {"tpot": "-1"},
    ],
)
def test_what_is_not_known_is_refused_in_words(client, wrong):
    found = client.get("/", params=wrong)
    assert found.status_code == 422
    assert "Invalid input" in found.text
    assert "<script>alert" not in found.text
    assert client.get("/best/points", params={"device": "h100-sxm", **wrong}).status_code == 422
    assert client.get("/best/points", params={"device": "../x"}).status_code == 422


def test_the_card_is_a_picture_of_the_answer(client):
    drawn = Image.open(BytesIO(card(Choice())))
    assert drawn.format == "PNG"
    picture = drawn.convert("RGB")
    assert picture.size == (WIDTH_PX, HEIGHT_PX)
    marks = [n for n in range(MAX_ROWS) if _has(picture, TOP_PX + n * STEP_PX + 12, ACCENT)]
    assert marks == list(range(MAX_ROWS))  # five accelerators, each with its figure
    rows = [TOP_PX + n * STEP_PX - 6 for n in range(MAX_ROWS)]
    bands = [_width(picture, y, BAND) + _width(picture, y, ACCENT) for y in rows]  # the mark covers some of its band
    cheapest, *_, dearest = [b for b in best_of(Choice()) if b.usd_per_million][:MAX_ROWS]
    assert bands[-1] / bands[0] == pytest.approx(_spread(dearest) / _spread(cheapest), rel=0.1)
    assert card(Choice()) != card(Choice(model="deepseek-r1"))
    answer = client.get("/best/card.png", params={"model": "deepseek-r1"})
    assert answer.headers["content-type"] == "image/png"
    assert answer.content.startswith(b"\x89PNG")
    page = client.get("/", headers={"host": "127.0.0.1:8080"}).text
    assert 'property="og:image" content="http://127.0.0.1:8080/best/card.png?model=' in page


def _width(picture, y, colour):
    """Pixels of a row in that colour, in the plot."""
    found = ImageColor.getrgb(colour)
    return sum(picture.getpixel((x, y)) == found for x in range(BARS_PX, WIDTH_PX - LEFT_PX - FIGURE_PX))


def _has(picture, y, colour):
    return 0 < _width(picture, y, colour) < 10


def _spread(best):
    """How far the ends of the interval are apart; they stand as shares of the rate."""
    return best.usd_per_million * (1 / best.row["rate_low"] - 1 / best.row["rate_high"])


def test_accelerators_are_in_the_catalogue():
    assert len({d.key for d in DEVICES}) == len(DEVICES)
    assert all(get_device(d.key).name == d.key for d in DEVICES)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.question)
def test_a_job_opens_its_form_and_has_its_page(job, client):
    link = next(j for j in jobs() if j.question == job.question)
    assert (ROOT / "docs" / job.page).is_file()
    assert client.get(link.href).status_code == 200
    address = f"/docs/{job.page.removesuffix('.md')}"
    assert f'href="{address}"' in client.get("/").text
    assert client.get(address).status_code == 200


ANSWERS = {"/plan": "/plans", "/runs/new": "/runs/new"}
"""Where a form leads whose answer is not on its own page; a simulation is a run of its own."""


@pytest.mark.slow
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.question)
def test_the_example_of_a_job_is_answered(job, tmp_path):
    with TestClient(application(place_at(tmp_path)), base_url="http://127.0.0.1") as asked:
        path = ANSWERS.get(job.path, job.path)
        found = asked.get(f"{path}?{query_of(job.example)}&whole=1")
        assert found.status_code == 200, found.text
        assert "Invalid input" not in found.text
