"""The pages about runs, on results that were made beforehand."""

import csv
import io
import json
import re
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from orrery.scenario.simulate import SimulatedAnswer, simulate
from orrery.web.app import application
from orrery.web.place import place_at
from orrery.web.work.run import Run
from orrery.web.work.serving_run import closed_form, packed, parts_of
from orrery.web.work.store import Store

TINY = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "rate": "20",
    "input_tokens": "64",
    "output_tokens": "8",
    "num_requests": "40",
    "seed": "1",
    "replicas": "2",
    "slo": ["ttft:500", "p99_tpot:30"],
}

HTMX = {"hx-request": "true"}


def body(page: str) -> str:
    """A page without its head, whose styles name what pages may hold."""
    return page.partition("</head>")[2]


@pytest.fixture(scope="module")
def parts() -> dict[str, bytes]:
    """One small run, made here."""
    answer = simulate(
        model="llama-3.1-8b",
        device="h100-sxm",
        rate=20.0,
        input_tokens=64,
        output_tokens=8,
        num_requests=40,
        seed=1,
        replicas=2,
        slo=["ttft:500", "p99_tpot:30"],
        window=(0.0, 1.0),
    )
    assert isinstance(answer, SimulatedAnswer)
    return parts_of(answer, answer.to_json(), (0.0, 1.0))


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    """The file of the server's runs, seen from another process."""
    found = Store(place_at(tmp_path).work_file)
    yield found
    found.close()


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    """A browser; without the server's life around it, runs are asked for and none is begun."""
    return TestClient(application(place_at(tmp_path)), base_url="http://127.0.0.1", follow_redirects=False)


def _add(store: Store, kind: str = "simulate", state: str = "done", parts: dict[str, bytes] | None = None) -> str:
    id = f"{len(store.newest(99)):016x}"
    store.add(Run(id=id, kind=kind, settings=TINY, options={}, created_s=time.time()))
    if state != "queued":
        store.start(id)
    if state not in ("queued", "running"):
        store.end(id, state, "", parts)  # pyright: ignore[reportArgumentType]
    return id


def test_a_form_starts_a_run_that_every_tab_sees(client: TestClient, tmp_path: Path) -> None:
    answer = client.post("/runs", data={**TINY, "kind": "simulate", "window": "0:5", "slo": "", "ttft_ms": "500"})
    assert answer.status_code == 303
    address = answer.headers["location"]
    assert re.fullmatch(r"/runs/[0-9a-f]{16}", address)
    other = TestClient(application(place_at(tmp_path)), base_url="http://127.0.0.1", follow_redirects=False)
    for tab in (client, other):
        text = tab.get(address).text
        assert "waiting for its turn" in text
        assert 'hx-trigger="every 1s"' in text
        assert '<meta http-equiv="refresh"' in text, "without script the page renews itself"
        assert "40 requests, ttft:500" in tab.get("/runs").text
    assert other.post(f"{address}/cancel").headers["location"] == address
    text = client.get(address, headers=HTMX).text
    assert "cancelled" in text
    assert "every 1s" not in text, "what has ended is not asked for again"
    assert "<html" not in text, "htmx gets the part"


def test_two_tabs_do_not_disturb_each_other(client: TestClient) -> None:
    addresses = [
        client.post("/runs", data={**TINY, "slo": "", "kind": "simulate", "rate": rate}).headers["location"]
        for rate in ("11", "22")
    ]
    client.post(f"{addresses[0]}/cancel")
    client.post(f"{addresses[0]}/forget")
    assert client.get(addresses[0]).status_code == 404
    text = client.get(addresses[1]).text
    assert "22 requests/s" in text
    assert "waits" in text


def test_a_mistake_keeps_what_was_typed(client: TestClient) -> None:
    answer = client.post("/runs", data={**TINY, "slo": "", "kind": "simulate", "model": "lama-3.1-8b", "rate": "17"})
    assert answer.status_code == 422
    assert "meta-llama/Llama-3.1-8B" in answer.text, "the nearest known name"
    assert 'value="17"' in answer.text
    assert body(client.get("/runs").text).count("badge") == 0


def test_the_form_is_filled_from_the_address(client: TestClient) -> None:
    text = client.get("/runs/new?kind=sweep&model=qwen3-32b&sweep=tp%3D1,2&slo=tpot:40&batch=4").text
    for part in ('value="qwen3-32b"', 'value="tp=1,2"', 'value="40"', "does not read it: batch"):
        assert part in text
    assert "<h1>New run: simulated plans</h1>" in client.get("/runs/new?kind=plan").text


def test_hostile_names_stay_text(client: TestClient) -> None:
    evil = '"><script>alert(1)</script>'
    for text in (
        client.get("/runs/new", params={"model": evil, "sweep": evil, "kind": evil}).text,
        client.post("/runs", data={"kind": "sweep", "model": evil, "sweep": evil, "ttft_ms": evil}).text,
        client.get("/runs", params={"text": evil, "kind": evil}).text,
    ):
        assert "<script>alert" not in text
    assert client.get("/runs/..%2f..%2fetc").status_code == 404
    assert client.post("/runs", headers={"origin": "http://evil.example"}).status_code == 403


def test_the_result_of_a_simulation(client: TestClient, store: Store, parts: dict[str, bytes]) -> None:
    id = _add(store, parts=parts)
    text = client.get(f"/runs/{id}").text
    answer = json.loads(parts["answer"])
    assert "every 1s" not in text
    for head in ("P90", "P95", "P99", "std. dev."):
        assert f">{head}</th>" in text
    assert "<dd>40<small>0 refused" in text
    assert f"{answer['p99_ttft_ms']:.3g} ms" in text
    assert body(text).count("at-desk") == 2 + 5 + 1, "latencies and goodput, what happened over time, the steps"
    assert "replica 2" in text
    assert "2 taken together" in text, "the closed form is of one replica"
    assert '<span class="badge good">met</span>' in text
    later = client.get(f"/runs/{id}?from=0.5&to=0.9").text
    assert 'value="0.5"' in later
    assert later != text


def test_files_of_a_result(client: TestClient, store: Store, parts: dict[str, bytes]) -> None:
    id = _add(store, parts=parts)
    found = client.get(f"/runs/{id}?format=json")
    assert found.headers["content-disposition"].startswith('attachment; filename="simulate-llama-3.1-8b')
    assert found.json()["completed"] == 40
    assert len(found.json()["ttfts"]) == 40
    rows = list(csv.DictReader(io.StringIO(client.get(f"/runs/{id}?format=csv").text)))
    assert len(rows) == 40
    assert float(rows[0]["latencies"]) >= float(rows[0]["ttfts"]) > 0
    assert client.get(f"/runs/{id}?format=svg&chart=power").text.startswith("<svg")
    events = client.get(f"/runs/{id}?format=trace").json()["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C"}
    for wrong in ("format=html", "format=svg&chart=rates", "format=svg&chart=nope", "format=exe"):
        assert client.get(f"/runs/{id}?{wrong}").status_code == 404


def test_what_ended_otherwise_says_so(client: TestClient, store: Store) -> None:
    infeasible = {"what": "weights", "need": 9.0, "have": 8.0, "unit": "bytes", "smallest_change": "tp = 2 fits."}
    ids = [_add(store, state=state) for state in ("failed", "running")]
    store.interrupt()
    cannot = _add(store, parts={"answer": packed({"infeasible": infeasible, "notes": []})})
    assert "It failed" in client.get(f"/runs/{ids[0]}").text
    text = client.get(f"/runs/{ids[1]}").text
    assert "It was interrupted" in text
    assert "tp = 2 fits." in client.get(f"/runs/{cannot}").text
    again = client.post(f"/runs/{ids[1]}/again").headers["location"]
    assert again != f"/runs/{ids[1]}"
    assert "waiting for its turn" in client.get(again).text
    assert client.post(f"{again}/forget").status_code == 422, "what waits is cancelled first"
    assert client.post(f"/runs/{ids[0]}/report").status_code == 422, "there is nothing to report on"


def test_the_list_is_filtered_and_polls_only_while_something_goes_on(client: TestClient, store: Store) -> None:
    _add(store, "sweep", "failed")
    _add(store, "simulate", "cancelled")
    assert "every 1s" not in client.get("/runs").text
    assert body(client.get("/runs?kind=sweep").text).count('scope="row"') == 1
    assert body(client.get("/runs?text=llama+SWEEP").text).count('scope="row"') == 1
    assert body(client.get("/runs?text=qwen").text).count('scope="row"') == 0
    _add(store, "capacity", "running")
    text = client.get("/runs").text
    assert "every 1s" in text
    assert re.findall(r'<a href="/runs/\d+">(\w+)', text) == ["Capacity", "Simulation", "Sweep"], "newest first"


def test_the_closed_form_is_of_one_replica(parts: dict[str, bytes]) -> None:
    from orrery.scenario.ask import Answer, estimate
    from orrery.scenario.schema import read_scenario

    settings = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 64, "output_tokens": 8}
    alone = estimate(read_scenario(settings | {"rate": 10}))
    assert isinstance(alone, Answer)
    found = closed_form(read_scenario(settings | {"rate": 20, "replicas": 2, "arrivals": "poisson"}))
    assert found["ttft_s"] == alone.estimate.ttft_s
    assert (found["replicas"], found["unread"]) == (2, ["arrivals"])
