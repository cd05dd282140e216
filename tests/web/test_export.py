"""Files that pages hand out."""

import csv
import io
import json

import pytest

from orrery.base.cost import Interval
from orrery.web.export import as_csv, as_html, as_json, as_svg, file_name


def rows(answer) -> list[list[str]]:
    return list(csv.reader(io.StringIO(answer.body.decode())))


@pytest.mark.parametrize("text", ["=1+2", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\n=1", "\0=1"])
def test_a_text_cell_is_no_formula(text):
    [_, [cell]] = rows(as_csv("t", ["x"], [[text]]))
    assert cell.startswith("'")


def test_a_header_is_no_formula_either():
    assert rows(as_csv("t", ["=cmd|' /C calc'!A0"], []))[0][0].startswith("'=")


def test_numbers_stay_numbers_and_what_is_none_is_blank():
    [_, row] = rows(as_csv("t", list("abcdef"), [[-1.5, 3, None, float("nan"), True, 'a "b", c']]))
    assert row == ["-1.5", "3", "", "", "true", 'a "b", c']


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("sweep tp", "sweep-tp.csv"),
        ("../../etc/passwd", "etc-passwd.csv"),
        ('a"; b\r\nc: d', "a-b-c-d.csv"),
        (".hidden", "hidden.csv"),
        ("", "orrery.csv"),
        ("日本", "orrery.csv"),
        ("x" * 500, "x" * 80 + ".csv"),
        ("a\0b", "a-b.csv"),
        ("meta-llama/Llama-3.1-8B", "meta-llama-Llama-3.1-8B.csv"),
    ],
)
def test_a_files_name_is_harmless(name, file):
    assert file_name(name, "csv") == file
    assert as_csv(name, [], []).headers["content-disposition"] == f'attachment; filename="{file}"'


def test_json_is_what_the_commands_write():
    around = Interval(low_80=1.0, high_80=2.0, low_95=0.5, high_95=float("inf"))
    assert json.loads(as_json("a", {"x": around}).body)["x"] == {
        "low_80": 1.0,
        "high_80": 2.0,
        "low_95": 0.5,
        "high_95": None,
        "because": "",
    }


def test_kinds():
    for answer, kind, name in (
        (as_svg("a", "<svg/>"), "image/svg+xml", "a.svg"),
        (as_html("a", "<p>"), "text/html; charset=utf-8", "a.html"),
        (as_json("a", {}), "application/json", "a.json"),
        (as_csv("a", [], []), "text/csv; charset=utf-8", "a.csv"),
    ):
        assert answer.headers["content-type"] == kind
        assert name in answer.headers["content-disposition"]
