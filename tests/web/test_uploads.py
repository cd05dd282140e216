"""Uploads: what is taken, under which names, what is refused, and how soon."""

import asyncio
import gzip
import html
import io
import json
import re
import time
import zipfile
from functools import cache
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from orrery.base.errors import OrreryError, ScenarioError
from orrery.catalog.devices import template
from orrery.web.app import application
from orrery.web.named import NAME
from orrery.web.pages import uploads as page
from orrery.web.place import place_at
from orrery.web.uploads import stored_files
from orrery.web.uploads.apart import checked_apart
from orrery.web.uploads.check import checked
from orrery.web.uploads.refused import MAX_LINES, text_of
from orrery.web.uploads.stored_files import name_for

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
TRACE = "arrival_s,input_tokens,output_tokens\n0,10,20\n2,30,40\n"


@pytest.fixture
def client(tmp_path, monkeypatch):
    async def here(file, uploads):  # the same check, without the seconds that a process takes to start
        found = checked(file, uploads)
        return found | {"about": [line.replace(f"{file.parent}/", "") for line in found["about"]]}

    monkeypatch.setattr(page, "checked_apart", here)
    made = TestClient(application(place_at(tmp_path)), base_url="http://127.0.0.1")
    made.folder = tmp_path / "uploads"
    return made


def sent(client, name, content, called=""):
    return client.post("/uploads", files={"file": (name, content)}, data={"name": called}, follow_redirects=False)


def message(answer) -> str:
    return html.unescape(re.search(r'class="message">(.*?)</p>', answer.text, re.S)[1])


def names(client) -> list[str]:
    return [path.name for path in client.folder.iterdir() if NAME.fullmatch(path.name)]


def test_a_model_is_kept_listed_used_and_deleted(client):
    assert sent(client, "config.json", json.dumps(LLAMA), called="My model").status_code == 303
    [name] = names(client)
    assert re.fullmatch(r"My-model-[0-9a-f]{8}\.json", name)
    shown = client.get("/uploads").text
    assert "8.03 G parameters" in shown
    assert f"upload:{name}" in shown
    used = client.get(
        f"/compare?model=upload:{name}&device=h100-sxm&input_tokens=99&output_tokens=9&concurrency=2&format=json"
    )
    assert used.json()["a"]["tpot_s"] > 0
    assert str(client.folder) not in used.text
    assert sent(client, "again.json", json.dumps(LLAMA), called="My model").status_code == 303
    assert names(client) == [name]
    assert client.post("/uploads/delete", data={"name": name}, follow_redirects=False).status_code == 303
    assert list(client.folder.iterdir()) == []


def test_traces_devices_and_scenarios(client):
    assert sent(client, "t.csv", TRACE).status_code == 303
    assert sent(client, "d.toml", template()).status_code == 303
    scenario = 'model = "llama-3.1-8b"\ndevice = "h100-sxm"\nrate = 2\ninput_tokens = 9\noutput_tokens = 9\n'
    assert sent(client, "s.toml", scenario).status_code == 303
    assert sent(client, "p.toml", scenario + 'slo = ["tpot:50"]\n').status_code == 303
    shown = client.get("/uploads").text
    assert "2 requests" in shown
    assert "My accelerator by Me" in shown
    assert 'href="/design?model=llama-3.1-8b&amp;device=h100-sxm' in shown
    assert 'href="/plans?model=' in shown


def test_sessions_and_measured_runs_open_their_own_pages(client):
    sessions = "session,t_s,input_tokens,output_tokens,shared_prefix_tokens\na,0,100,10,0\na,5,150,10,100\n"
    runs = "kind,model,device,mode,batch_size,input_tokens,output_tokens,tpot_s\n"
    assert sent(client, "s.csv", sessions).status_code == 303
    assert sent(client, "r.csv", f"{runs}serving,llama-3.1-8b,h100-sxm,static,1,512,128,0.01\n").status_code == 303
    bench = {"model_id": "llama-3.1-8b", "completed": 10, "duration": 2.0, "mean_ttft_ms": 20.0, "mean_tpot_ms": 9.0}
    bench |= {
        "total_input_tokens": 5120,
        "total_output_tokens": 1280,
        "max_concurrency": 1,
        "backend": "vllm",
        "request_throughput": 5.0,
    }
    assert sent(client, "bench.json", json.dumps(bench)).status_code == 303
    shown = client.get("/uploads").text
    assert "2 requests of 1 sessions" in shown
    assert "Measured runs (a measured table)" in shown
    assert 'href="/cache-size?model=' in shown
    assert shown.count('href="/diagnose?files=upload%3A') == 2


NAMES = (
    "../../../etc/cron.d/x.json",
    "..\\..\\x.json",
    "/etc/passwd.json",
    "a\0b.json",
    ".json.json",
    "<img src=x onerror=alert(1)>.json",
    "con.json",
    "x" * 300 + ".json",
    "日本.json",
    "-rf.json",
)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_made_by_us(name, tmp_path):
    made = name_for(name, b"1")
    assert NAME.fullmatch(made)
    assert Path(made).name == made
    assert made.endswith(".json")
    assert len(made) < 60


def test_a_hostile_name_stays_in_the_folder_and_is_text_on_the_page(client):
    sent(client, "../../<script>alert(1)<!--.json", json.dumps(LLAMA))
    [name] = names(client)
    assert name.startswith("script-alert-1")
    assert "<script>alert" not in client.get("/uploads").text


def test_a_hostile_family_is_refused_and_repeated_as_text(client):
    answer = sent(client, "a.json", json.dumps(LLAMA | {"model_type": "<script>alert(2)</script>"}))
    assert names(client) == []
    assert "<script>alert" not in answer.text
    assert "got '<script>alert(2)</script>', which is no known family" in message(answer)


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("config.json", " " * 1_000_000)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.csv", gzip.compress(b"0" * 10**6), "packed (gzip)"),
        ("a.json", zipped(), "packed (zip)"),
        ("a.csv", b"PAR1....", "Parquet"),
        ("a.csv.gz", b"x", "ends in .gz"),
        ("a.yaml", b"a: &a [*a]", "YAML"),
        ("a.yml", b"x", "YAML"),
        ("a", b"x", "ends in nothing"),
        ("a.exe", b"MZ", "ends in .exe"),
        ("a.json", b"", "empty"),
        ("a.json", b" \n ", "empty"),
        ("a.csv", b"a\0b", "NUL"),
        ("a.json", b'{"a": "\xff\xfe"}', "not UTF-8"),
        ("a.json", '{"model_type": "llama"}'.encode("utf-16-le"), "NUL"),
        ("a.toml", b"#" * 200_001, "too many"),
        ("a.csv", b"1\n" * (MAX_LINES + 1), "lines are too many"),
    ],
)
def test_refused_unread(name, content, word):
    with pytest.raises(ScenarioError, match=re.escape(word)):
        text_of(name, content)


@cache
def hostile() -> dict[str, str]:
    nan = float("nan")
    changed = {
        "layers": {"num_hidden_layers": 1e30},
        "experts": {"model_type": "mixtral", "num_local_experts": 10**9},
        "negative": {"hidden_size": -1},
        "nan": {"hidden_size": nan},
        "infinite": {"hidden_size": float("inf")},
        "heads": {"num_attention_heads": 10**9, "head_dim": 128},
        "vocab": {"vocab_size": 10**9},
        "type": {"model_type": "x" * 3_000_000},
        "wide": {"hidden_size": "y" * 3_000_000},
        "list": {"model_type": ["z" * 10**6]},
        "pattern": {"model_type": "nemotron_h", "hybrid_override_pattern": "M*-" * 10**6},
        "nested": {"hidden_size": json.loads("[" * 900 + "]" * 900)},
    }
    files = {f"{name}.json": json.dumps(LLAMA | change) for name, change in changed.items()}
    return files | {
        "deep.json": '{"a":' * 100_000,
        "array.json": "[" * 100_000,
        "number.json": '{"hidden_size": ' + "9" * 10**6 + "}",
        "twice.json": '{"model_type": "llama", "model_type": "opt"}',
        "word.json": '"llama"',
        "text.json": "hello",
        "surrogate.json": '{"model_type": "\\ud800"}',
        "columns.csv": "input_tokens,output_tokens" + ",c" * 10**6 + "\n" + "1,1\n" * 10_000,
        "hidden.csv": '"a\nb",input_tokens,output_tokens' + ",c" * 10**6 + "\n" + "1,1\n" * 10_000,
        "field.csv": 'input_tokens,output_tokens\n"' + "1" * 10**6,
        "nan.csv": "input_tokens,output_tokens\nnan,1\n",
        "huge.csv": "input_tokens,output_tokens\n1e308,1\n",
        "returns.csv": "input_tokens,output_tokens\r" + "1,1\r" * 10**5,
        "deep.jsonl": '{"a":' * 90_000,
        "short.jsonl": "{}\n" * 1000,
        "deep.toml": "a = " + "[" * 90_000,
        "keys.toml": ".".join("a" * 90_000) + " = 1",
        "number.toml": "tp = " + "9" * 10**5,
        "tables.toml": "".join(f"[a{n}]\n" for n in range(4_000)),
        "path.toml": 'model = "/etc/passwd"',
        "home.toml": 'model = "~/.ssh/id_rsa.json"',
        "device.toml": 'model = "llama-3.1-8b"\ndevice = "/etc/x.toml"',
        "facts.toml": "facts = 3",
        "bare.toml": "[facts]\nx = 1",
    }


@pytest.mark.parametrize("name", list(hostile()))
def test_a_hostile_file_is_a_short_mistake_within_a_second(name, tmp_path):
    file = tmp_path / name
    file.write_text(hostile()[name], newline="")
    started = time.process_time()
    text_of(name, file.read_bytes())
    with pytest.raises(OrreryError) as error:
        checked(file, tmp_path)
    assert time.process_time() - started < 1.0
    assert len(str(error.value)) < 40_000


def test_mistakes_say_the_name_that_was_sent_and_no_place(client):
    answer = sent(client, "x.json", json.dumps(LLAMA | {"num_hidden_layers": 1e30}))
    assert answer.status_code == 422
    assert "num_hidden_layers: got 1000000000000000019884624838656" in message(answer)
    assert list(client.folder.iterdir()) == []


def test_room_is_bounded_and_nothing_is_deleted_unasked(client, monkeypatch):
    monkeypatch.setattr(stored_files, "MAX_FILES", 2)
    assert [sent(client, "t.csv", TRACE + f"{n},1,1\n").status_code for n in (3, 4, 5)] == [303, 303, 422]
    assert len(names(client)) == 2
    monkeypatch.setattr(stored_files, "MAX_FILES", 50)
    monkeypatch.setattr(stored_files, "MAX_BYTES", 150)
    assert "Delete some first" in message(sent(client, "t.csv", TRACE + "9,9,9\n"))


def test_requests_that_are_refused(client):
    assert client.post("/uploads", content=b"x" * 4_100_000, headers={"content-type": "text/plain"}).status_code == 413
    packed = client.post("/uploads", content=b"x", headers={"content-encoding": "gzip"})
    assert packed.status_code == 415
    assert sent(client, "t.csv", TRACE).status_code == 303
    other = client.post("/uploads/delete", data={"name": names(client)[0]}, headers={"sec-fetch-site": "cross-site"})
    assert other.status_code == 403
    assert len(names(client)) == 1
    assert "choose one" in message(client.post("/uploads", data={"name": "x"}))
    two = client.post("/uploads", files=[("file", ("a.csv", TRACE)), ("file", ("b.csv", TRACE))])
    assert two.status_code == 400
    assert client.post(
        "/uploads", content=b"--x\r\n", headers={"content-type": "multipart/form-data; boundary=x"}
    ).status_code in (400, 422)
    for name in ("../runs.sqlite", ".x.about", "", "nothing.json", "a\0.json"):
        assert client.post("/uploads/delete", data={"name": name}).status_code == 422


def test_the_part_says_what_happened(client):
    answer = client.post("/uploads", files={"file": ("t.csv", TRACE)}, headers={"hx-request": "true"})
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert 'data-say="t.csv is kept as t-' in answer.text


def test_a_check_that_takes_too_long_is_ended(tmp_path):
    (tmp_path / "t-1.csv").write_text(TRACE)
    with pytest.raises(ScenarioError, match="takes too long"):
        asyncio.run(checked_apart(tmp_path / "t-1.csv", tmp_path, wait_s=0.01))


@pytest.mark.slow
def test_a_check_in_its_own_process(tmp_path):
    file = tmp_path / "t-1.csv"
    file.write_text(TRACE)
    found = asyncio.run(checked_apart(file, tmp_path))
    assert found["kind"] == "trace"
    assert found["about"][0].startswith("2 requests")
    file.write_text("nothing")
    with pytest.raises(ScenarioError) as error:
        asyncio.run(checked_apart(file, tmp_path))
    assert str(error.value).startswith("t-1.csv: ")


OPENS = (
    ("rate = 2", "/design?"),
    ('rate = 2\nslo = ["tpot:50"]', "/plans?"),
    ("global_batch = 8\nseq_len = 4096", "/training?"),
)


@pytest.mark.parametrize(("more", "page"), OPENS)
def test_a_scenario_opens_where_it_is_asked(more, page, tmp_path):
    file = tmp_path / "s.toml"
    file.write_text(f'model = "llama-3.1-8b"\ndevice = "h100-sxm"\n{more}\n')
    assert checked(file, tmp_path)["opens"].startswith(f"{page}model=llama-3.1-8b&device=h100-sxm")
