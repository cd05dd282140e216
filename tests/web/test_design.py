"""One design as a page: whole addresses, figures, drawings, reasons, changes, files."""

import csv
import io
import json
import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.datastructures import QueryParams
from starlette.testclient import TestClient

from orrery.reports import roofs
from orrery.reports.ops import STEPS, ops_of
from orrery.scenario.ask import estimate
from orrery.scenario.schema import read_scenario
from orrery.web.address import settings_of
from orrery.web.app import application
from orrery.web.command import command
from orrery.web.design import capacity, cost, request_timeline, times
from orrery.web.design.changes import changes
from orrery.web.design.figures import figures
from orrery.web.design.inputs import design_settings, load_of
from orrery.web.design.tree import level
from orrery.web.place import place_at

SETTINGS = {
    "model": "llama-3.1-70b",
    "device": "h100-sxm",
    "tp": "2",
    "pp": "2",
    "input_tokens": "1024",
    "output_tokens": "256",
    "concurrency": "32",
}
QUERY = "&".join(f"{k}={v}" for k, v in SETTINGS.items())


@pytest.fixture(scope="module")
def answer():
    return estimate(**SETTINGS)


@pytest.fixture
def client(tmp_path):
    return TestClient(application(place_at(tmp_path)), base_url="http://127.0.0.1", follow_redirects=False)


def part(client, query):
    return client.get(f"/design?{query}", headers={"hx-request": "true"})


def test_the_address_is_made_whole(client):
    found = client.get("/design?model=qwen3-32b&tp=")
    assert found.status_code == 303
    query = QueryParams(urlsplit(found.headers["location"]).query)
    assert dict(query) == {
        "model": "qwen3-32b",
        "device": "h100-sxm",
        "input_tokens": "1024",
        "output_tokens": "256",
        "concurrency": "32",
    }
    assert client.get(found.headers["location"]).status_code == 200


def test_the_load_is_one_of_three():
    inputs = design_settings(QueryParams(f"{QUERY}&load_kind=rate&load=2.5"))
    assert (inputs["rate"], "concurrency" in inputs) == ("2.5", False)
    assert load_of(inputs) == ("rate", "2.5")
    assert load_of(design_settings(QueryParams("trace=chat"))) == ("", "")
    assert "input_tokens" not in design_settings(QueryParams("trace=chat"))


def test_the_page_and_its_part(client):
    page = unescape(client.get(f"/design?{QUERY}").text)
    for heading in (
        "Time",
        "Why",
        "Rooflines",
        "Memory",
        "Timeline",
        "Energy and cost",
        "Assumptions (defaults used)",
    ):
        assert re.search(rf"<h2[^>]*>{re.escape(heading)}(: \d+)?</h2>", page)
    assert 'name="tp" value="2"' in page
    found = part(client, f"{QUERY}&load_kind=batch&load=8")
    assert "<html" not in found.text
    assert found.headers["hx-push-url"] == f"/design?{QUERY.replace('concurrency=32', 'batch=8')}"
    assert float(re.search(r"dur=([\d.]+)", found.headers["server-timing"])[1]) > 0


def test_every_headline_figure_has_an_interval_around_it(answer):
    found = {f.path: f for f in figures(answer)}
    assert all(f.between for f in found.values())
    around, e = answer.intervals(), answer.estimate
    energy, rate = around["energy_j_per_token"], around["output_tokens_per_s"]
    assert energy.low_95 < energy.low_80 < e.energy_j_per_token < energy.high_80 < energy.high_95
    assert energy.high_80 / e.energy_j_per_token > e.output_tokens_per_s / rate.low_80, "wider than the rate alone"


def test_operations_add_up_to_the_step(answer):
    e = answer.estimate
    assert sum(op.time_s for op in ops_of(e, "decode")) == pytest.approx(e.cost.time_s)
    assert sum(op.time_s for op in ops_of(e, "prompts")) == pytest.approx(e.prefill_cost.time_s)
    for step in STEPS:
        rows = times.rows(e, step)
        assert sum(float(row.share.removesuffix(" %")) for row in rows) == pytest.approx(100, abs=0.5)
    assert "gate_up" in times.drawn(e)


def test_matrix_work_lies_under_its_roof(answer):
    e = answer.estimate
    device = e.deployment.cluster.device
    for step in STEPS:
        ops = [op for op in ops_of(e, step) if op.flops > 0 and op.bytes > 0]
        [used] = [r for r in roofs.roofs(device, ops) if not r.is_dashed]
        assert (used.name, used.ops_per_s) == ("bf16", device.dense_flops_per_s["bf16"])
        assert all(op.flops / op.time_s <= used.ops_per_s for op in ops)
        assert any(
            r.name.startswith("fp8") and r.name.endswith("not used") and r.is_dashed for r in roofs.roofs(device, ops)
        )
        assert STEPS[step] in roofs.drawn(e, step)


def test_narrow_weights_alone_compute_at_the_wide_rate():
    e = estimate(**{**SETTINGS, "weights": "int4_weight_only"}).estimate
    assert [r.name for r in roofs.roofs(e.deployment.cluster.device, list(ops_of(e, "decode"))) if not r.is_dashed] == [
        "bf16"
    ]


def test_memory_says_what_is_left(answer):
    left = dict(capacity.left(answer))
    assert left["Longest context"].startswith("131,072 tokens, all that the model takes")
    small = dict(
        capacity.left(estimate(model="llama-3.1-8b", device="rtx-4090", input_tokens=100, output_tokens=100, batch=1))
    )
    assert "all that there is room for" in small["Longest context"]
    assert "KV cache" in capacity.figure(answer).svg


def test_stages_never_do_two_batches_at_once(answer):
    drawing = request_timeline.stages(answer)
    assert "stage 2" in drawing
    assert "batch 2, token 2" in drawing
    assert request_timeline.stages(estimate(**{**SETTINGS, "tp": "4", "pp": "1"})) == "", (
        "the same devices without stages"
    )


def test_layers_show_what_is_sent(answer):
    assert "all-reduce" in request_timeline.layers(answer)
    assert request_timeline.layers(estimate(**{**SETTINGS, "tp": "1", "pp": "4"})) == "", (
        "nothing is sent inside a layer"
    )


def test_a_request_begins_with_its_first_token(answer):
    assert "front end" in request_timeline.life(answer)
    assert "a token 2" in request_timeline.life(answer)


def test_the_bill(answer):
    lines = dict(cost.cost_rows(answer))
    assert lines["All devices, an hour"] == f"${4 * answer.tariff.usd_per_hour:.2f}"
    assert lines["Electricity in that"].startswith("inside")
    apart = estimate(**SETTINGS, electricity=0.2)
    own = apart.estimate.power_w * 0.2 / 1000
    assert f"${own:.3g} an hour" in dict(cost.cost_rows(apart))["Electricity in that"]


def test_a_number_unfolds_level_by_level(answer):
    top = level(answer, "tpot_s")
    assert [p.name for p in top.parts] == ["decode step", "host, and steps that carry prompts"]
    step = level(answer, "tpot_s", "0")
    assert step.parts[0].at == "0.0"
    leaf = level(answer, "tpot_s", "0.0.0")
    assert any("memory_bandwidth_bytes_per_s" in fact for fact in leaf.facts)


def test_work_of_a_step_is_told_with_prefixes(answer):
    step = level(answer, "tpot_s").parts[0]
    assert re.search(r"bound by memory, [\d.]+ [GT]FLOP, [\d.]+ GB", step.rule)


def test_reasons_as_a_part_and_as_a_page(client):
    found = client.get(f"/design/why?{QUERY}&path=tpot_s&at=0", headers={"hx-request": "true"})
    assert "<html" not in found.text
    assert "at=0.0" in found.text
    page = client.get(f"/design/why?{QUERY}&path=memory.weights_bytes")
    assert "<h1>Why Weights per device is" in page.text
    assert client.get(f"/design/why?{QUERY}&path=tpot_s&at=7").status_code == 422
    assert client.get(f"/design/why?{QUERY}&path=tpot_s&at=-1").status_code == 422
    assert client.get(f"/design/why?{QUERY}&path=nothing").status_code == 422


def test_what_does_not_fit_says_what_is_missing_and_what_would_do(client):
    page = unescape(part(client, "model=llama-3.1-405b&device=h100-sxm&tp=4").text)
    assert "Infeasible configuration" in page
    assert "What is missing" in page
    hrefs = re.findall(r'<li><a href="(/design\?[^"]+)"', page)
    assert hrefs
    for href in hrefs[:2]:
        found = client.get(href).text
        assert "Infeasible configuration" not in found
        assert "<h2>Rooflines</h2>" in found


def test_changes_are_tried_and_work():
    inputs = read_scenario({**SETTINGS, "model": "llama-3.1-405b", "tp": "4", "pp": "1"})
    infeasible = estimate(inputs).infeasible
    for change in changes(inputs, inputs.written(), infeasible):
        again = design_settings(QueryParams(parse_qsl(urlsplit(change.href).query)))
        assert hasattr(estimate(**again), "estimate"), change.description


def test_too_many_arrivals_are_told_the_rate_that_works():
    inputs = read_scenario({k: v for k, v in SETTINGS.items() if k != "concurrency"} | {"rate": "10000"})
    infeasible = estimate(inputs).infeasible
    assert any(c.description.startswith("rate = ") for c in changes(inputs, inputs.written(), infeasible))


def test_files(client, answer):
    rows = list(csv.reader(io.StringIO(client.get(f"/design?{QUERY}&format=csv").text)))
    decode = [float(row[rows[0].index("time_s")]) for row in rows if row[0] == "decode"]
    assert sum(decode) == pytest.approx(answer.estimate.cost.time_s)
    assert json.loads(client.get(f"/design?{QUERY}&format=json").text)["tpot_s"] == answer.estimate.tpot_s
    assert client.get(f"/design?{QUERY}&format=svg&drawing=pipeline").headers["content-type"] == "image/svg+xml"
    assert client.get(f"/design?{QUERY}&format=svg&drawing=nothing").status_code == 422
    assert client.get("/design?model=llama-3.1-405b&device=h100-sxm&format=csv").status_code == 422


def test_links_carry_the_settings(client):
    page = unescape(client.get(f"/design?{QUERY}").text)
    compare = QueryParams(re.search(r'href="/compare\?([^"]+)"', page)[1])
    assert settings_of(compare, "a.") == settings_of(compare, "b.") == SETTINGS
    for path in ("/sweep", "/runs/new", "/report"):
        assert settings_of(QueryParams(re.search(rf'href="{path}\?([^"]+)"', page)[1])) == SETTINGS
    assert "orrery estimate --model llama-3.1-70b" in page


def test_the_command_is_what_a_terminal_takes():
    assert command("estimate", {"model": "upload:a b.json", "device": "h100-sxm", "slo": ["ttft:1"]}) == (
        "orrery estimate --model 'a b.json' --device h100-sxm"
    )


def test_a_mistake_keeps_what_was_typed(client):
    found = client.get("/design?model=%3Cscript%3Ex&device=h100-sxm&input_tokens=1&output_tokens=1&batch=1")
    assert found.status_code == 422
    assert 'value="&lt;script&gt;x"' in found.text
    assert "<script>x" not in found.text
    assert "There is no model" in found.text
    assert part(client, f"{QUERY}&tp=7").status_code == 422


def test_many_calls_for_an_answer(client):
    page = unescape(part(client, f"{QUERY}&reasoning=best-of-n&samples=1,4&success=0.3").text)
    assert "best-of-n: 2 calls for an answer: " in page
    assert "best-of-n: 8 calls for an answer: " in page
