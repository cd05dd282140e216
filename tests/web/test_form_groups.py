"""Every setting of a command is in its page's form, and a value means the same there as on the command line."""

import json
import re
from html import unescape
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as budget
from hypothesis import strategies as st
from starlette.testclient import TestClient

from orrery.base.errors import OrreryError
from orrery.scenario.ask import estimate
from orrery.scenario.fields import BY_NAME, SETTINGS
from orrery.scenario.setting import count, grouped, switch
from orrery.scenario.show import Table
from orrery.scenario.train import train
from orrery.web.app import application
from orrery.web.design.techniques import technique_tables
from orrery.web.facts_table import facts_tables
from orrery.web.form_groups import LEFT_OUT, SEARCH_ONLY, groups
from orrery.web.forms import fields, label_of
from orrery.web.place import place_at

PAGES = {
    "estimate": "/design?model=llama-3.1-8b&device=h100-sxm&input_tokens=100&output_tokens=10&concurrency=1",
    "plan": "/plan",
    "simulate": "/runs/new?kind=simulate",
    "train": "/training?model=llama-3.1-8b&device=h100-sxm&devices=8&tp=8&global_batch=8&micro_batch=1&seq_len=512"
    "&precision=bf16",
}
OTHERWISE = {
    "estimate": {"load_kind": ("concurrency", "batch", "rate", "users")},
    "plan": {"ttft": ("slo",)},
    "simulate": {"ttft_ms": ("slo",)},
    "train": {},
}
"""Fields that stand for several settings."""

SERVED = {
    "model": "deepseek-v2-lite",
    "device": "h100-sxm",
    "dp": "4",
    "ep": "4",
    "input_tokens": "1024",
    "output_tokens": "64",
    "concurrency": "16",
}
SERVING_TECHNIQUES = (
    {"clock_frac": "0.8"},
    {"draft": "tree", "acceptance": "0.7"},
    {"draft_tokens": "4", "acceptance": "0.5"},
    {"expert_loads": "zipf:0.5+affinity:0.3", "expert_placement": "exflow"},
    {"ep": "1", "dp": "1", "expert_offload": "host", "expert_cached": "0.25", "expert_cache": "score"},
    {"model": "llama-3.1-8b", "ep": "", "dp": "2", "kv_selection": "snapkv", "kv_budget_tokens": "512"},
    {"kv_kept_tokens": "0.5"},
    {"lend_cache": "true"},
    {"overlap": "token-split"},
    {"policy": "chunked-prefill", "knob": "policy.chunk_tokens=512"},
    {"prefix_caching": "false", "max_num_seqs": "64"},
    {"reasoning": "best-of-n", "samples": "1,4", "success": "0.3", "budget_usd": "0.01", "kv_limit_bytes": "2e10"},
)
"""With what they need beside them."""

TRAINED = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "devices": "32",
    "global_batch": "64",
    "micro_batch": "1",
    "seq_len": "4096",
    "precision": "bf16",
    "tp": "2",
    "pp": "2",
    "sharding": "zero1",
}
RUN = {"train_tokens": "1e12", "node_mtbf_s": "2e8"}
TRAINING_TECHNIQUES = (
    {"sharding": "", "local_updates": "diloco", "local_steps": "12", "exchange_bits": "8"},
    {"sharding": "", "pp": "1", "tp": "1", "partition": "zero-plus-plus"},
    RUN | {"detection": "collective"},
    RUN | {"recovery": "redundant"},
    RUN | {"checkpoint": "in-memory", "parity_nodes": "1"},
    {"pp": "", "seq_lengths": "lognormal:1500:2", "sequence_balancing": "true"},
    {"nic_groups": "ib:2:1e11,roce:2:5e10", "nic_group_link_bytes_per_s": "3.125e9", "nic_placement": "grouped"},
    {"placement": "searched"},
    {"weight_sampling": "gaussian"},
    {"sequence_parallel": "false", "recompute": "full"},
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    place = place_at(tmp_path_factory.mktemp("web"))
    return TestClient(application(place), base_url="http://127.0.0.1", follow_redirects=False)


@pytest.mark.parametrize("command", PAGES)
def test_every_setting_is_in_the_form_or_left_out_with_a_reason(client, command):
    page = client.get(PAGES[command])
    assert page.status_code == 200
    visible = re.findall(r'<(?:input|select)(?![^>]*type="hidden")[^>]* name="([^"]+)"', page.text)
    assert len(visible) == len(set(visible)), "no setting stands twice"
    found = {name for field in visible for name in OTHERWISE[command].get(field, (field,))}
    read = {s.name for s in SETTINGS if command in s.commands}
    missing = read - found
    allowed = LEFT_OUT.keys() | (SEARCH_ONLY.keys() if command == "train" else set())
    assert missing <= allowed, f"{missing - allowed} need a place in the form or a reason"
    assert not found & LEFT_OUT.keys()


def test_exceptions_are_few_known_and_have_reasons(client):
    assert all(len(reason.split()) > 5 for reason in (*LEFT_OUT.values(), *SEARCH_ONLY.values()))
    assert LEFT_OUT.keys() | SEARCH_ONLY.keys() <= BY_NAME.keys()
    assert {name for name in LEFT_OUT if "train" not in BY_NAME[name].commands} == {"attention_map"}
    assert 'name="against"' in client.get("/runs/new?kind=train-plan").text


def test_a_setting_has_the_heading_before_it():
    one, two, three = count("a", "A.", 1), switch("b", "B."), count("c", "C.", 1)
    found = grouped("First", one, *grouped("Its own", two), "Second", three)
    assert [(s.name, s.group) for s in found] == [("a", "First"), ("b", "Its own"), ("c", "Second")]
    assert all(s.group for s in SETTINGS if s.commands & PAGES.keys())


def test_groups_stay_folded_until_one_of_their_settings_is_given(client):
    bare = client.get(PAGES["train"]).text
    assert '<details class="rest">' in bare
    assert '<details class="group" open>' not in bare
    asked = client.get(f"{PAGES['train']}&local_steps=12").text
    assert '<details class="rest" open>' in asked
    assert re.search(r'<details class="group" open><summary>Local updates and sites <span class="badge">1 set', asked)


def test_a_group_has_help_bounds_and_choices():
    [group] = [g for g in groups({"exchange_bits": "8"}, "train", ()) if g.title == "Local updates and sites"]
    by_name = {field.name: field for field in group.fields}
    assert group.num_set == 1
    assert (by_name["exchange_bits"].value, by_name["exchange_bits"].bounds) == ("8", "a whole number from 1 to 32")
    assert by_name["exchange_bits"].help == BY_NAME["exchange_bits"].help
    of = {
        name: field.choices for name, [field] in ((n, fields({}, [n])) for n in ("lend_cache", "preemption", "trace"))
    }
    assert of == {"lend_cache": ("true", "false"), "preemption": ("recompute", "swap"), "trace": ()}
    assert [f.value for f in fields({"lend_cache": True}, ["lend_cache"])] == ["true"]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("site_link_bytes_per_s", "Site link (bytes/s)"),
        ("kv_budget_tokens", "KV budget tokens"),
        ("people_usd_per_month", "People ($/month)"),
        ("tp", "Tensor parallel"),
        ("repair_s", "Repair (s)"),
    ],
)
def test_labels(name, label):
    assert label_of(name) == label


def drawn(base, techniques):
    """A job with up to two techniques; a blank leaves a setting out."""
    chosen = st.lists(st.sampled_from(techniques), max_size=2)
    return chosen.map(lambda found: {k: v for one in (base, *found) for k, v in one.items()})


def same(client, path, ask, asked):
    """Hold the web's numbers against those of the question itself; return whether there are any, or both refuse."""
    asked = {name: value for name, value in asked.items() if value}
    got = client.get(f"{path}?{urlencode(asked)}&format=json")
    try:
        answer = ask(**{name: [v] if BY_NAME[name].kind == "words" else v for name, v in asked.items()})
    except OrreryError:
        assert got.status_code == 422
        return False
    wanted, found = json.loads(json.dumps(answer.to_json())), got.json()
    assert found.keys() == wanted.keys()
    assert {k: v for k, v in found.items() if k != "settings"} == {k: v for k, v in wanted.items() if k != "settings"}
    return True


FEW = budget(
    max_examples=budget.default.max_examples // 25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FEW
@given(asked=drawn(SERVED, SERVING_TECHNIQUES))
def test_an_estimate_is_the_same_in_web_and_command(client, asked):
    same(client, "/design", estimate, asked)


@FEW
@given(asked=drawn(TRAINED, TRAINING_TECHNIQUES))
def test_a_training_job_is_the_same_in_web_and_command(client, asked):
    same(client, "/training", train, asked)


@pytest.mark.parametrize("asked", SERVING_TECHNIQUES)
def test_every_drawn_technique_of_serving_has_numbers(client, asked):
    assert same(client, "/design", estimate, SERVED | asked)


@pytest.mark.parametrize("asked", TRAINING_TECHNIQUES)
def test_every_drawn_technique_of_training_has_numbers(client, asked):
    assert same(client, "/training", train, TRAINED | asked)


@pytest.mark.parametrize(
    ("path", "asked", "title"),
    [
        (
            "/design",
            SERVED | {"expert_placement": "exflow", "expert_loads": "zipf:0.5+affinity:0.5"},
            "Where experts lie",
        ),
        ("/design", SERVED | {"draft": "tree", "acceptance": "0.7"}, "Trees that were tried"),
        ("/design", SERVED | {"reasoning": "best-of-n", "samples": "1,4", "success": "0.3"}, "One answer by best-of-n"),
        ("/training", TRAINED | {"sharding": "none", "local_updates": "diloco", "local_steps": "12"}, ""),
        ("/training", TRAINED | {"placement": "searched"}, ""),
    ],
)
def test_pages_have_the_tables_of_techniques(client, path, asked, title):
    page = unescape(client.get(f"{path}?{urlencode(asked)}").text)
    assert "<h2>What the techniques do</h2>" in page
    if title:
        assert f"<h3>{title}</h3>" in page
        return
    tables = train(**asked).tables
    assert tables
    for table in tables:
        assert f"<h3>{table.title}</h3>" in page


def test_no_technique_no_table(client):
    assert technique_tables(estimate(**SERVED)) == ()
    assert "What the techniques do" not in client.get(f"/design?{urlencode(SERVED)}").text


def test_columns_of_a_table_of_facts():
    rows = ({"name": "a", "step_s": 2e-3, "none": None}, {"name": "b", "step_s": None, "none": None})
    [found] = facts_tables([Table(kind="x", title="X", rows=rows), Table(kind="y", title="Y", rows=())])
    assert (found.columns, found.is_number) == (("name", "step"), (False, True))
    assert found.rows == (("a", "2 ms"), ("b", ""))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("expert_loads", "tests/web/../../LICENSE"),
        ("expert_loads", "loads.csv"),
        ("expert_loads", "data"),
        ("attention_map", "maps.npz"),
        ("acceptance_by_position", "shares.csv"),
    ],
)
def test_a_file_setting_opens_no_file_of_the_server(client, name, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in ("loads.csv", "data", "maps.npz", "shares.csv"):
        (tmp_path / file).write_text("0.5\n")
    got = client.get(f"/design?{urlencode(SERVED | {name: value})}")
    assert got.status_code == 422
    assert "a file is uploaded" in got.text


@pytest.mark.parametrize("value", ["balanced", "zipf:0.5", "zipf:0.5+affinity:0.3"])
def test_laws_are_no_files(client, value):
    assert client.get(f"/design?{urlencode(SERVED | {'expert_loads': value})}").status_code == 200


def test_an_uploaded_table_of_numbers_is_used(client):
    rows = "1.0,1.0,1.5,1.0,1.0,1.0,1.0,1.0\n1.0,1.2,1.0,1.0,1.0,1.0,1.0,1.0\n"
    sent = client.post(
        "/uploads", files={"file": ("times.csv", rows)}, headers={"origin": "http://127.0.0.1", "hx-request": "true"}
    )
    assert "worker_times" in sent.text
    name = re.search(r"<code>upload:([^<]+)</code>", sent.text)[1]
    asked = TRAINED | {"sharding": "none", "worker_times": f"upload:{name}", "straggler_coding": "gradient"}
    page = client.get(f"/training?{urlencode(asked)}")
    assert page.status_code == 200
    assert "What the techniques do" in page.text
    assert f'name="worker_times" value="upload:{name}"' in page.text
