"""What holds for every chart: it parses, speaks, keeps its style to itself, escapes names, and takes any number."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.drawing import (
    Axis,
    Bar,
    Op,
    Pairs,
    Part,
    Point,
    Reading,
    Roof,
    SensitivityBar,
    Series,
    Slope,
    Span,
    Track,
    intervals,
    lines,
    parity,
    roofline,
    scatter,
    stacked,
    timeline,
    tornado,
)
from orrery.drawing.palette import DARK, LIGHT, ON_HUE
from orrery.drawing.words import clean

X, Y, LOG = Axis("Load", "requests"), Axis("Time", "s"), Axis("Time", "s", is_log=True)
HOSTILE = "<script>alert('x')</script>\"&]]>\x00\u202e"


def of_lines(values, name, says=""):
    return lines([Series(name, range(len(values)), values)], X, Y, title=name, says=says)


def of_lines_log(values, name, says=""):
    band = [v * 0.5 for v in values]
    return lines([Series(name, values, values, band, values)], LOG, LOG, title=name, says=says, mark=(3.0, name))


def of_scatter(values, name, says=""):
    points = [Point(v, n, name, f"/{name}", name, n % 2 == 0, name, name) for n, v in enumerate(values)]
    return scatter(points, Y, X, title=name, says=says)


def of_stacked(values, name, says=""):
    bars = [Bar(name, [Part(name, v), Part("rest", abs(v), name)], v, name) for v in values]
    return stacked(bars, Y, title=name, says=says)


def of_roofline(values, name, says=""):
    ops = [Op(name, v, v, v, name, f"/{name}") for v in values]
    return roofline([Slope(name, v) for v in values], [Roof(name, v, True) for v in values], ops, title=name, says=says)


def of_tornado(values, name, says=""):
    return tornado([SensitivityBar(name, v, 2.0, name, name) for v in values], 3.0, Y, title=name, says=says)


def of_timeline(values, name, says=""):
    spans = [Span(v, v + abs(v), name, name) for v in values]
    return timeline([Track(name, spans), Track("idle", [])], title=name, says=says)


def of_intervals(values, name, says=""):
    return intervals([Reading(name, v, v, 4.0, v) for v in values], Y, title=name, says=says)


def of_parity(values, name, says=""):
    caption = [name] * len(values)
    panels = [Pairs(name, values, values, "s"), Pairs(name, values, values, "s", caption, [True] * len(values))]
    return parity(panels, title=name, says=says)


CHARTS = [of_lines, of_lines_log, of_scatter, of_stacked, of_roofline, of_tornado, of_timeline, of_intervals, of_parity]
INTERACTIVE = {of_scatter, of_roofline}
every_chart = pytest.mark.parametrize("chart", CHARTS, ids=lambda c: c.__name__)


@every_chart
def test_it_parses_and_speaks(chart, read):
    drawing = read(chart([1.0, 2.0, 5.0], "tensor = 4", "It takes longer."))
    assert drawing.root.tag == "svg"
    assert drawing.root.get("role") == ("group" if chart in INTERACTIVE else "img")
    assert drawing.root.get("width") == "100%"
    assert drawing.root.get("viewBox").startswith("0 0 ")
    assert [e.tag for e in drawing.root][:3] == ["title", "desc", "style"]
    assert drawing.root[0].text == "tensor = 4"
    assert drawing.desc.startswith("It takes longer. ")
    assert len(drawing.desc) > 40
    assert "tensor = 4" in drawing.words


@every_chart
def test_the_same_input_gives_the_same_text(chart):
    assert chart([1.0, 3.0], "a") == chart([1.0, 3.0], "a")


@every_chart
def test_hostile_names_stay_text(chart, read):
    text = chart([1.0, 2.0], HOSTILE)
    drawing = read(text)
    assert not drawing.all("script")
    assert "<script" not in text
    assert "\x00" not in text
    assert drawing.root[0].text == clean(HOSTILE)
    assert not [e for e in drawing.root.iter() for key in e.attrib if key.startswith("on")]
    assert all(not e.get("href", "").lower().startswith("javascript") for e in drawing.root.iter())


@every_chart
def test_style_and_ids_are_its_own(chart, read):
    first, second = read(chart([1.0, 2.0], "a")), read(chart([1.0, 3.0], "a"))
    scopes = [re.search(r"^\.(orr-[0-9a-f]{8})\{", d.all("style")[0].text)[1] for d in (first, second)]
    assert scopes[0] != scopes[1]
    for drawing, scope in zip((first, second), scopes, strict=True):
        style = re.sub(r"@media\([^)]*\)\{(.*?\})\}", r"\1", drawing.all("style")[0].text)
        selectors = [one for rule in style.split("}") if rule for one in rule.split("{")[0].split(",")]
        assert all(f".{scope}" in one for one in selectors), selectors
        assert all(e.get("id").startswith(scope) for e in drawing.root.iter() if e.get("id"))
        used = {word for e in drawing.root.iter() for word in e.get("class", "").split()}
        assert all(word.startswith("orr-") for word in used)


@every_chart
@pytest.mark.parametrize("values", [[], [math.nan], [math.inf, -math.inf]], ids=["none", "not a number", "infinite"])
def test_a_chart_of_nothing_says_so(chart, values, read):
    drawing = read(chart(values, "empty"))
    assert any("othing to draw" in words for words in drawing.words)
    assert "Nothing to draw." in drawing.desc
    assert ("left out" in drawing.desc) == bool(values)


@every_chart
def test_what_has_no_place_is_left_out_and_counted(chart, read):
    drawing = read(chart([1.0, math.nan, 2.0, math.inf], "a"))
    assert re.search(r"\d+ values are left out", drawing.desc)
    assert "nan" not in re.sub("<style>.*</style>", "", drawing.text)
    assert not re.search(r'"[^"]*\b(nan|inf)\b', drawing.text)


@every_chart
@settings(max_examples=25)
@given(values=st.lists(st.floats(), max_size=6))
def test_any_numbers_are_drawn_inside_the_sheet(chart, values, read):
    drawing = read(chart(values, "a"))
    _, _, width, height = map(float, drawing.root.get("viewBox").split())
    for e in drawing.root.iter():
        for key, most in (("x", width), ("cx", width), ("y", height), ("cy", height)):
            if e.get(key) is not None and e.tag != "pattern":
                assert -10 <= float(e.get(key)) <= most + 10, (e.tag, e.attrib)
        for key in ("width", "height", "r"):
            if e.tag != "svg" and e.get(key) is not None:
                assert float(e.get(key)) >= 0


@every_chart
def test_text_is_cut_to_its_room_and_whole_where_it_is_pointed_at(chart, read):
    name = "a very long name of a deployment " * 8
    drawing = read(chart([1.0, 2.0], name))
    assert max(map(len, drawing.words)) < 130
    assert any(word.endswith("…") for word in drawing.words)
    assert clean(name) in drawing.root[0].text


@every_chart
def test_two_hundred_values_stay_small_and_ten_thousand_too(chart):
    assert len(chart([1.0 + n % 37 + n / 200 for n in range(200)], "tp4 pp2")) < 40_000
    assert len(chart([1.0 + n % 37 + n / 10_000 for n in range(10_000)], "tp4 pp2")) < 80_000


def luminance(colour):
    parts = colour.removeprefix("#")
    parts = "".join(2 * c for c in parts) if len(parts) == 3 else parts
    linear = [int(parts[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in linear]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("colours", "on"), [(LIGHT, ON_HUE["light"]), (DARK, ON_HUE["dark"])], ids=["light", "dark"])
def test_text_and_marks_stand_out(colours, on):
    paper = colours["paper"]
    assert all(contrast(colours[name], paper) >= 4.5 for name in ("ink", "muted"))
    hues = [colours[str(n)] for n in range(1, 9)]
    assert all(contrast(hue, paper) >= 3 for hue in hues)
    assert all(contrast(hue, ink) >= 4.5 for hue, ink in zip(hues, on, strict=True))
