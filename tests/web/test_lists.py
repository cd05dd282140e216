"""Named lists in a browser, without scripts: forms, feeds, files, and what is refused."""

import re
from xml.etree import ElementTree

import pytest
from starlette.testclient import TestClient

from orrery.web.app import application
from orrery.web.place import place_at


@pytest.fixture
def client(tmp_path):
    place = place_at(tmp_path, tmp_path / "library.sqlite")
    return TestClient(application(place), base_url="http://127.0.0.1")


def post(client, **fields):
    return client.post("/papers/lists", data=fields)


def test_a_paper_goes_on_a_list_and_off_it(client):
    assert "No list yet" in client.get("/papers/lists").text
    page = post(client, what="create", name="to read", key="distserve")
    assert page.url.query == b"key=distserve"
    assert "✓ On to read" in page.text
    post(client, what="create", name="moe")
    assert "✓ On moe" in post(client, what="add", name="moe", key="distserve").text
    assert "+ Add to moe" in post(client, what="remove", name="moe", key="distserve").text
    page = client.get("/papers/lists/to%20read").text
    assert "1 paper<" in page
    assert "DistServe" in page
    renamed = post(client, what="rename", name="to read", new="<b>later</b>".replace("/", ""))
    assert "<b>later<b>" not in renamed.text
    assert "&lt;b&gt;later&lt;b&gt;" in renamed.text
    assert "<b>later" not in post(client, what="delete", name="<b>later<b>").text
    assert re.findall(r'/papers/lists/(\w+)"', client.get("/papers/lists").text) == ["moe"]


def test_a_list_has_both_feeds_and_files_that_come_back(client, tmp_path):
    post(client, what="create", name="later", key="distserve")
    for form, kind in (("rss", "application/rss+xml"), ("atom", "application/atom+xml")):
        feed = client.get("/papers/lists/later", params={"form": form})
        assert feed.headers["content-type"].startswith(kind)
        assert "https://arxiv.org/abs/2401.09670" in feed.text
        assert "http://127.0.0.1/papers/lists/later" in feed.text
        ElementTree.fromstring(feed.text)
        assert f'href="/papers/lists/later?form={form}"' in client.get("/papers/lists/later").text
    other = TestClient(
        application(place_at(tmp_path / "other", tmp_path / "other.sqlite")), base_url="http://127.0.0.1"
    )
    for form, name in (("json", "lists.json"), ("bibtex", "lists.bib")):
        text = client.get("/papers/lists", params={"form": form}).content
        page = other.post("/papers/lists", data={"what": "import"}, files={"file": (name, text)})
        assert page.status_code == 200
        assert "1 paper<" in other.get("/papers/lists/later").text
        post(other, what="delete", name="later")


def test_a_paper_that_the_library_does_not_have_can_be_taken_off(client):
    text = b'{"lists": {"moe": {"9912.99999": "2026-01-01"}}}'
    client.post("/papers/lists", data={"what": "import"}, files={"file": ("x.json", text)})
    assert "9912.99999" in client.get("/papers/lists/moe").text
    page = post(client, what="remove", name="moe", key="9912.99999", back="list")
    assert page.url.path == "/papers/lists/moe"
    assert "0 papers" in page.text


def test_a_paper_is_taken_off_on_the_page_of_its_list(client):
    post(client, what="create", name="later", key="distserve")
    page = client.get("/papers/lists/later").text
    [key] = re.findall(r'name="key" value="([^"]+)"><button aria-label="Remove DistServe', page)
    page = post(client, what="remove", name="later", key=key, back="list")
    assert page.url.path == "/papers/lists/later"
    assert "0 papers" in page.text


def test_a_name_that_is_refused_stays_where_it_was_typed(client):
    page = post(client, what="create", name="../etc").text
    assert 'name="name" value="../etc"' in page


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"what": "explode"}, "is none of create"),
        ({"what": "create", "name": "../etc"}, "write 1 to 80 letters"),
        ({"what": "add", "name": "moe", "key": "no-such-paper"}, "There is no paper"),
        ({"what": "delete", "name": "moe"}, "there is no"),
        ({"what": "import"}, "none was sent"),
    ],
)
def test_what_cannot_be_done_is_said(client, fields, says):
    page = post(client, **fields)
    assert page.status_code == 422
    assert says in page.text


def test_another_site_changes_nothing_and_a_list_that_is_not_there_is_not_found(client):
    headers = {"sec-fetch-site": "cross-site"}
    assert client.post("/papers/lists", data={"what": "create", "name": "x"}, headers=headers).status_code == 403
    assert client.get("/papers/lists/x").status_code == 404
    assert client.get("/papers/lists", params={"key": "no-such-paper"}).status_code == 422
