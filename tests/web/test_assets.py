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


@pytest.mark.parametrize("name", ["style.css", "page.js", assets.TERMS])
def test_what_is_asked_for_by_version_is_kept(client, name):
    kept = client.get(f"/static/{name}?{assets.version()}")
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    for other in ("", "?0000000000"):
        again = client.get(f"/static/{name}{other}")
        assert again.headers["cache-control"] == "no-cache"
        assert again.text == kept.text
    assert f"{name}?{assets.version()}" in client.get("/plan").text


def test_the_version_follows_the_files(tmp_path, monkeypatch):
    (tmp_path / "page.js").write_text("1")
    monkeypatch.setattr(assets, "STATIC", tmp_path)
    first = assets.version.__wrapped__()
    (tmp_path / "page.js").write_text("2")
    assert assets.version.__wrapped__() != first


def test_definitions_are_a_script(client):
    text = client.get(f"/static/{assets.TERMS}").text
    found = json.loads(text.removeprefix("const TERMS = ").removesuffix(";\n"))
    assert found["time to first token"] == found["ttft"] == get_term("ttft").definition
    assert client.post(f"/static/{assets.TERMS}").status_code == 405
    assert client.get("/static/nothing.js").status_code == 404
