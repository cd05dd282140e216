"""Scripts and styles: kept by browsers as long as they do not change; definitions as a script."""

import json

import pytest
from starlette.testclient import TestClient

from orrery.catalog.terms import get_term
from orrery.web import assets
from orrery.web.app import application
from orrery.web.place import place_at


@pytest.fixture
def client(tmp_path):
    return TestClient(application(place_at(tmp_path)), base_url="http://127.0.0.1")


@pytest.mark.parametrize(("name", "page"), [("landing.js", "/"), ("base.js", "/plan")])
def test_what_is_asked_for_by_version_is_kept(client, name, page):
    kept = client.get(f"/static/{name}?{assets.version()}")
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    for other in ("", "?0000000000"):
        again = client.get(f"/static/{name}{other}")
        assert again.headers["cache-control"] == "no-cache"
        assert again.text == kept.text
    assert f"{name}?{assets.version()}" in client.get(page).text


def test_the_version_follows_the_files(tmp_path, monkeypatch):
    (tmp_path / "page.js").write_text("1")
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    first = assets.version.__wrapped__()
    (tmp_path / "page.js").write_text("2")
    assert assets.version.__wrapped__() != first


def test_definitions_are_a_script(client):
    text = assets.terms_script()
    assert text in client.get("/static/base.js").text
    found = json.loads(text.removeprefix("const TERMS = ").removesuffix(";\n"))
    assert found["time to first token"] == found["ttft"] == get_term("ttft").definition
    assert client.get("/static/nothing.js").status_code == 404


@pytest.mark.parametrize("name", assets.BUNDLES)
def test_a_bundle_holds_its_parts_and_travels_compressed(client, name):
    plain = client.get(f"/static/{name}", headers={"accept-encoding": "identity"})
    packed = client.get(f"/static/{name}", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-type"].startswith("text/javascript")
    assert packed.content == plain.content == assets.script(name)
    for part in set(assets.BUNDLES[name]) - {assets.TERMS}:
        assert client.get(f"/static/{part}").text in plain.text
    assert client.post(f"/static/{name}").status_code == 405


def test_styles_stand_in_a_page_whole():
    text = assets.styles("style.css", "best.css")
    assert all((assets.STATIC / name).read_text() in text for name in ("style.css", "best.css"))
    assert "</style" not in text


def test_an_address_without_a_page_is_named_and_its_markup_is_not_run(client):
    found = client.get("/estimates")
    assert found.status_code == 404
    assert "No page is at /estimates" in found.text
    assert "<script>alert" not in client.get("/<script>alert(1)</script>").text


def test_a_command_leads_to_its_page_with_all_that_was_asked(client):
    found = client.get("/estimate?model=llama-3.1-8b&device=h100-sxm", follow_redirects=False)
    assert (found.status_code, found.headers["location"]) == (307, "/design?model=llama-3.1-8b&device=h100-sxm")
    for name, title in (("estimate", "Estimate"), ("train", "Train"), ("simulate", "Simulate")):
        shown = client.get(f"/{name}")
        assert shown.status_code == 200, name
        assert title in shown.text
