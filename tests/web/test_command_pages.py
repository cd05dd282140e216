"""Pages of what-if, kernel and plan --disaggregate: the numbers of the command line, asked by a form."""

import json
import re
from html.parser import HTMLParser

import pytest
from starlette.testclient import TestClient

from orrery.base.units import percent
from orrery.calibrate.compare.compare import compare_runs
from orrery.calibrate.kernel import kernel
from orrery.catalog.own_device import own_device
from orrery.scenario.cache_size import cache_size
from orrery.scenario.compare import compare
from orrery.scenario.disaggregate import plan_disaggregated
from orrery.scenario.estimates import estimate
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.jobs import AGENTS, DAY, OWN_DEVICE, SLOW
from orrery.scenario.search.ask import search
from orrery.scenario.split import split
from orrery.scenario.what_if import what_if
from orrery.web.app import application
from orrery.web.command_pages import designs as designs_page
from orrery.web.command_pages import disaggregate
from orrery.web.command_pages import kernel as kernel_page
from orrery.web.command_pages import pictures as pictures_page
from orrery.web.command_pages import search as search_page
from orrery.web.command_pages import split as split_page
from orrery.web.command_pages import what_if as what_if_page
from orrery.web.place import place_at

LOOP = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": "1024",
    "output_tokens": "256",
    "concurrency": "32",
}
POOLS = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "max_devices": "2",
    "input_tokens": "2000",
    "output_tokens": "50",
    "num_requests": "60",
    "slo": ["ttft:2000", "tpot:20"],
}
GEMM = {"op": "gemm", "device": "h100-sxm", "m": "64", "n": "4096", "k": "4096"}
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    app = application(place_at(tmp_path_factory.mktemp("pages")))
    with TestClient(app, base_url="http://127.0.0.1") as found:
        yield found


def answer_of(client, path, settings):
    found = client.get(path, params={**settings, "file": "json"})
    assert found.status_code == 200, found.text
    return json.loads(found.text)


def plain(answer):
    return json.loads(json.dumps(answer.to_json()))


def test_what_if_has_the_numbers_of_the_command(client):
    numbers = {k: int(v) if v.isdecimal() else v for k, v in LOOP.items()}
    expected = plain(what_if(["fp8-weights"], **numbers))
    assert answer_of(client, "/what-if", {"technique": "fp8-weights", **LOOP}) == expected
    page = client.get("/what-if", params={"technique": "fp8-weights", **LOOP, "whole": "1"}).text
    d = expected["results"][0]["difference"]["tpot_s"]
    assert f"{100 * d['frac']:+.1f} %" in page
    assert "orrery what-if fp8-weights --model llama-3.1-8b" in page


def test_every_technique_is_ranked(client):
    page = client.get("/what-if", params={**LOOP, "metric": "tpot", "whole": "1"}).text
    assert "Ranked by Time per output token" in page
    assert "Without effect or not tried" in page


def test_kernel_has_the_numbers_of_the_command(client):
    expected = plain(kernel(op="gemm", device="h100-sxm", m=64, n=4096, k=4096))
    assert answer_of(client, "/kernel", GEMM) == expected
    csv = client.get("/kernel", params={**GEMM, "file": "csv"}).text.splitlines()
    assert len(csv) == 1 + len(expected["results"])
    assert f"{expected['results'][0]['time_s']}" in csv[1]
    assert ">1 row</caption>" in client.get("/kernel", params={**GEMM, "whole": "1"}).text


def test_a_sweep_of_a_kernel_is_drawn(client):
    settings = {"op": "gemm", "device": "h100-sxm", "n": "4096", "k": "4096", "sweep": "m=1,64,4096", "whole": "1"}
    page = client.get("/kernel", params=settings).text
    assert page.count('<th scope="row">h100-sxm</th>') == 3
    assert "gemm over m" in page


def test_disaggregate_has_the_numbers_of_the_command(client):
    numbers = {k: int(v) if isinstance(v, str) and v.isdecimal() else v for k, v in POOLS.items()}
    expected = plain(plan_disaggregated(**numbers))
    assert answer_of(client, "/disaggregate", POOLS) == expected
    page = client.get("/disaggregate", params={**POOLS, "whole": "1"}).text
    assert expected["conclusion"].split(":")[0] in page


def test_other_answers_of_a_fleet_are_tables_and_no_file_of_the_server_is_opened(client, tmp_path):
    fleet = {"model": "llama-3.1-8b", "device": "h100-sxm", "rate": "5", "input_tokens": "100", "output_tokens": "20"}
    steady = client.get("/fleet", params={**fleet, "days": "0.2", "steady": "true", "whole": "1"})
    assert steady.status_code == 200
    assert "Num replicas" in steady.text or "num replicas" in steady.text
    mixed = client.get("/fleet", params={**fleet, "days": "0.002", "mix": "true", "slo": "tpot:100", "whole": "1"})
    assert mixed.status_code == 200
    assert "usd per hour" in mixed.text
    (tmp_path / "secret.csv").write_text("usd_per_kwh\n1\n")
    for name in ("hours", "graph"):
        found = client.get(
            "/fleet", params={**fleet, "days": "0.002", name: str(tmp_path / "secret.csv"), "whole": "1"}
        )
        assert "is a path" in found.text
        assert found.status_code == 422


def test_fleet_has_the_numbers_of_the_command(client):
    numbers = {**DAY, "days": 0.01, "cold_start_s": 30}
    expected = plain(simulate_fleet(**numbers))
    found = answer_of(client, "/fleet", {k: v if isinstance(v, list) else str(v) for k, v in numbers.items()})
    assert {k: v for k, v in found.items() if k not in ("seconds", "settings")} == {
        k: v for k, v in expected.items() if k not in ("seconds", "settings")
    }
    page = client.get("/fleet", params={**numbers, "whole": "1"}).text
    assert f"{percent(expected['attained_frac'], 2)} of the requests" in page
    assert "orrery fleet --model llama-3.1-8b" in page


def test_a_fleet_in_regions_has_its_tables_and_its_picture(client):
    fleet = {"model": "llama-3.1-8b", "device": "h100-sxm", "rate": "5", "input_tokens": "100", "output_tokens": "20"}
    places = {"regions": "westeurope,eastus", "origins": "uksouth=0.5,centralus=0.5"}
    page = client.get("/fleet", params={**fleet, **places, "days": "0.002", "whole": "1"}).text
    assert "0.0 % of the requests were not served in their nearest region (nearest)" in page
    assert "What each region served" in page
    assert "Requests/s by region over the run" in page
    assert "uksouth" in page
    lost = client.get("/fleet", params={**fleet, "regions": "atlantis", "days": "0.002", "whole": "1"})
    assert "atlantis" in lost.text
    steady = client.get("/fleet", params={**fleet, **places, "days": "0.1", "steady": "true", "whole": "1"}).text
    assert "rent usd" in steady


def test_split_has_the_numbers_of_the_command(client):
    asked = {**split_page.START, "round_trip_s": "0.01"}
    assert answer_of(client, "/split", asked) == plain(split(**asked))
    page = client.get("/split", params={**asked, "whole": "1"}).text
    assert "At the link rates" in page
    for wrong in ({"server": "/etc/x.toml"}, {"server": "x/y.toml"}, {"device": "../x.toml"}, {"model": "/etc/x"}):
        assert client.get("/split", params={**asked, **wrong, "whole": "1"}).status_code == 422, wrong


def test_pictures_have_the_numbers_of_the_command(client):
    asked = {**pictures_page.START, "ring_degree": "2", "guidance": "false"}
    plainly = {**asked, "guidance": False}
    assert answer_of(client, "/pictures", asked) == plain(estimate(**plainly))
    page = client.get("/pictures", params={**asked, "whole": "1"}).text
    assert "limited by host" in page
    assert "--no-guidance" in page
    small = client.get("/pictures", params={**asked, "device": "rtx-4090", "whole": "1"}).text
    assert "It does not fit" in small
    for wrong in ({"model": "/etc/x.toml"}, {"device": "../x.toml"}, {"guidance": "maybe"}, {"ulysses_degree": "7"}):
        assert client.get("/pictures", params={**asked, **wrong, "whole": "1"}).status_code == 422, wrong


def test_designs_have_the_numbers_of_the_command(client):
    asked = designs_page.START
    base = {name: value for name, value in asked.items() if name != "with"}
    others = [base | {"device": "h200-sxm"}, base | {"weights": "fp8", "kv": "fp8"}, base | {"tp": "8"}]
    assert answer_of(client, "/designs", asked) == plain(compare([base, *others]))
    page = client.get("/designs", params={**asked, "whole": "1"}).text
    assert "weights fp8, kv fp8" in page
    assert " % lower (80 %: " in page
    for wrong in ("device=/etc/x.toml", "trace=/etc/passwd", "model=../x", "tp", "x=1"):
        assert client.get("/designs", params={**asked, "with": wrong, "whole": "1"}).status_code == 422, wrong


def test_the_size_of_a_cache_has_the_numbers_of_the_command(client, tmp_path):
    assert answer_of(client, "/cache-size", AGENTS) == plain(cache_size(**AGENTS))
    page = client.get("/cache-size", params={**AGENTS, "whole": "1"}).text
    assert "of KV cache: 95 % of the turns find all that they share" in page
    assert "orrery cache-size --model qwen3-32b" in page
    assert len(client.get("/cache-size", params={**AGENTS, "file": "csv"}).text.splitlines()) == 13
    (tmp_path / "x.csv").write_text("session,t_s,input_tokens,output_tokens,shared_prefix_tokens\n")
    for wrong in ({"sessions": str(tmp_path / "x.csv")}, {"sessions": "nobody"}, {"cache_hit": "2"}, {"device": EVIL}):
        assert client.get("/cache-size", params={**AGENTS, **wrong, "whole": "1"}).status_code == 422, wrong


def test_diagnosis_has_the_numbers_of_the_command(client, tmp_path):
    (tmp_path / "runs.csv").write_text(SLOW["runs"])
    said = {name: value for name, value in SLOW.items() if name != "runs"}
    expected = plain(compare_runs([tmp_path / "runs.csv"], said))
    assert expected["suspects"][0]["cause"] == "slow-memory"
    assert answer_of(client, "/diagnose", SLOW) == expected
    page = client.get("/diagnose", params={**SLOW, "whole": "1"}).text
    assert "memory at 0.44 of its bandwidth" in page
    assert "&gt; runs.csv\norrery calibrate compare runs.csv" in page
    table = "kind,mode,batch_size,input_tokens,output_tokens,tpot_s,model\nserving,static,1,512,128,0.01377,"
    for wrong in (
        {"runs": "a,b\n1,2"},
        {"runs": f"{table}/etc/passwd", "model": ""},
        {"runs": f"{table}../x.json", "model": ""},
        {"runs": "", "files": "/etc/passwd"},
        {"runs": "", "files": "upload:nothing.csv"},
        {"model": "/etc/passwd"},
    ):
        asked = {name: value for name, value in {**SLOW, **wrong}.items() if value}
        found = client.get("/diagnose", params={**asked, "whole": "1"})
        assert found.status_code == 422, wrong
        assert "root:" not in found.text


def test_a_device_of_ones_own_has_the_numbers_of_the_command(client, tmp_path):
    facts = {name: OWN_DEVICE[name] for name in OWN_DEVICE if name.endswith(("_s", "_bytes"))}
    text = own_device(OWN_DEVICE["like"], facts, OWN_DEVICE["title"])
    (tmp_path / "my-device.toml").write_text(text)
    stated = {**facts, "like": OWN_DEVICE["like"], "title": OWN_DEVICE["title"]}
    load = {name: OWN_DEVICE[name] for name in ("model", "input_tokens", "output_tokens", "concurrency")}
    expected = plain(estimate(**load, device=str(tmp_path / "my-device.toml")))
    found = answer_of(client, "/my-device", OWN_DEVICE)
    assert found["file"] == text == client.get("/my-device/file", params=stated).text
    assert {**found["estimate"], "settings": {}} == {**expected, "settings": {}}
    page = client.get("/my-device", params={**OWN_DEVICE, "whole": "1"}).text
    assert f"{1 / expected['tpot_s']:,.3g} tokens/s/user" in page
    assert "orrery show device rtx-4090 --as-file my-device.toml" in page
    for wrong in ({"like": "/etc/x.toml"}, {"like": "x"}, {"memory_capacity_bytes": "32"}, {"model": "/etc/passwd"}):
        assert client.get("/my-device", params={**OWN_DEVICE, **wrong, "whole": "1"}).status_code == 422, wrong
        assert client.get("/my-device/file", params=wrong).status_code == 422, wrong


def test_a_device_of_ones_own_is_kept_and_planned_with(client):
    to = client.post("/my-device/keep", data=OWN_DEVICE, follow_redirects=False)
    assert to.status_code == 303
    assert to.headers["location"].startswith("/plan?model=llama-3.1-8b")
    form = client.get(to.headers["location"]).text
    assert 'name="device" value="upload:My-GPU-' in form
    assert client.post("/my-device/keep", data={"like": EVIL}).status_code == 422


def test_search_has_the_numbers_of_the_command(client):
    asked = {"space": "cells", "device": "t4,l4", "memory_ratio": "0.5", "objective": "score,memory"}
    assert answer_of(client, "/search", asked) == plain(search(**asked))
    page = client.get("/search", params={**asked, "whole": "1"}).text
    assert "On the other devices" in page
    for label in (">Latency (s)<", ">Energy (J)<", ">Memory (bytes)<"):
        assert label in page
    assert 'placeholder="8e10"' in page
    assert "Front on l4" in page
    assert "Infeasible" in client.get("/search", params={**asked, "latency_s": "1e-9", "whole": "1"}).text
    for wrong in ({"space": "/etc/passwd"}, {"scores": "x.csv"}, {"method": "luck"}):
        assert client.get("/search", params={**asked, **wrong, "whole": "1"}).status_code == 422, wrong


@pytest.mark.parametrize(
    "path",
    ["/what-if", "/kernel", "/disaggregate", "/fleet", "/split", "/search", "/designs", "/pictures", "/cache-size"],
)
def test_a_form_opens_filled_and_its_blanks_leave_the_address(client, path):
    page = client.get(path).text
    assert "<details><summary>More settings" in page or "<details open><summary>More settings" in page
    own = {"/split": split_page.START, "/search": search_page.START}.get(path, {"device": "h100-sxm"})
    device = own["device"]
    assert f'name="device" value="{device}' in page
    to = client.get(f"{path}?device=h100-sxm&model=", follow_redirects=False)
    assert to.status_code == 303
    assert to.headers["location"] == f"{path}?device=h100-sxm"


def test_sizes_of_an_operator_are_its_fields():
    assert kernel_page.sizes_of("gemm") == ("m", "n", "k", "batch")
    assert kernel_page.sizes_of("norm") == ("tokens", "width")
    assert kernel_page.sizes_of("no-such") == ()


@pytest.mark.parametrize(("path", "field"), [("/kernel", "op"), ("/split", "model"), ("/pictures", "model")])
def test_what_is_not_among_the_choices_stays_typed(client, path, field):
    asked = {"device": "rtx-4090", field: "no such thing", "whole": "1"}
    asked |= {"server": "h100-sxm", "link_rates": "5"} if path == "/split" else {}
    page = client.get(path, params=asked)
    assert page.status_code == 422
    assert "<option selected>no such thing</option>" in page.text
    assert "no such thing" in page.text[page.text.index('class="message"') :]


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.bad = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "script" and not dict(attrs).get("src", "").startswith("/static/"):
            self.bad.append(tag)


@pytest.mark.parametrize(
    ("path", "settings"),
    [
        ("/what-if", {"technique": EVIL, **LOOP}),
        ("/what-if", {"technique": "fp8-weights", "metric": EVIL, **LOOP}),
        ("/what-if", {"technique": "fp8-weights", **LOOP, "model": "/etc/passwd"}),
        ("/kernel", {**GEMM, "op": EVIL}),
        ("/kernel", {**GEMM, "device": "/etc/x.toml"}),
        ("/kernel", {**GEMM, "sweep": EVIL}),
        ("/kernel", {"op": "chain", "device": "h100-sxm", "chain": "/etc/passwd.txt"}),
        ("/disaggregate", {**POOLS, "device": EVIL}),
        ("/disaggregate", {**POOLS, "prefill_device": "../x.toml"}),
    ],
)
def test_what_is_wrong_is_said_in_words(client, path, settings):
    found = client.get(path, params={**settings, "whole": "1"})
    assert found.status_code == 422
    assert "Invalid input" in found.text
    assert not Tags(found.text).bad
    assert not re.search("root:", found.text)


def test_what_would_run_or_read_here_is_not_taken():
    from starlette.datastructures import QueryParams

    assert kernel_page.settings(QueryParams("op=gemm&measure=true&tensors=/etc/x.npy")) == {"op": "gemm"}
    assert "slo" in disaggregate.settings(QueryParams("ttft=1000"))
    assert what_if_page.settings(QueryParams("technique=a,b&nonsense=1")) == {"technique": "a,b"}


def test_what_makes_it_fit_stands_alone_where_nothing_else_can_be_had(client):
    job = {"model": "llama-3.1-8b", "device": "h100-sxm", "devices": "64", "tp": "2", "global_batch": "256"}
    names = "optimizer-sharding,fully-sharded,1f1b,co2,domino,gpipe,fp8-training"
    query = {"technique": names, **job, "seq_len": "4096", "whole": "1"}
    page = client.get("/what-if", params=query).text
    assert "with these it does" in page
    assert page.index("optimizer-sharding</") < page.index("fully-sharded</")
    assert "No technique changes" not in page


def test_a_ranking_names_what_is_in_use(client):
    page = client.get("/what-if", params={**LOOP, "weights": "fp8", "whole": "1"}).text
    assert "In use here; without is with it off: fp8-weights." in page
    assert "In use by default; without is with it off: cuda-graphs, chunked-prefill, asynchronous-attention." in page
