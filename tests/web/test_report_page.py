"""A report of any view."""

import pytest

ASKED = "model=llama-3.1-8b&device=h100-sxm&input_tokens=1000&output_tokens=200&concurrency=16"


def test_a_design_is_reported_on_as_the_command_line_does(reader):
    found = reader.get(f"/report?as=estimate&{ASKED}")
    assert found.status_code == 200
    assert "orrery estimate" in found.text
    assert "<script" not in found.text
    assert reader.get(f"/design?{ASKED}&format=json").json()["bound_by"] in found.text


def test_it_comes_as_a_file_too(reader):
    found = reader.get(f"/report?as=estimate&{ASKED}&download=1")
    assert found.headers["content-disposition"] == 'attachment; filename="orrery-estimate.html"'


@pytest.mark.parametrize(("address", "status"), [("as=love", 404), ("as=estimate&model=nobody&device=h100", 422)])
def test_what_cannot_be_reported_on_is_said(reader, address, status):
    assert reader.get(f"/report?{address}").status_code == status
