"""A report of any view."""

import pytest
from starlette.testclient import TestClient

from orrery.web.app import application
from orrery.web.place import place_at

ASKED = "model=llama-3.1-8b&device=h100-sxm&input_tokens=1000&output_tokens=200&concurrency=16"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    app = application(place_at(tmp_path_factory.mktemp("web")))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield client


def test_a_design_is_reported_on_as_the_command_line_does(client):
    found = client.get(f"/report?as=estimate&{ASKED}")
    assert found.status_code == 200
    assert "orrery estimate" in found.text
    assert "<script" not in found.text
    assert client.get(f"/design?{ASKED}&format=json").json()["bound_by"] in found.text


def test_it_comes_as_a_file_too(client):
    found = client.get(f"/report?as=estimate&{ASKED}&download=1")
    assert found.headers["content-disposition"] == 'attachment; filename="orrery-estimate.html"'


@pytest.mark.parametrize(("address", "status"), [("as=love", 404), ("as=estimate&model=nobody&device=h100", 422)])
def test_what_cannot_be_reported_on_is_said(client, address, status):
    assert client.get(f"/report?{address}").status_code == status
