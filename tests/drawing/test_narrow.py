"""Charts on a phone's sheet: as wide as asked, text at its own size and inside the sheet, names above their rows."""

import pytest

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
from orrery.drawing.paper import WIDTH_PX, drawn_at
from orrery.drawing.words import width_px

PHONE_PX = 330.0
NAME = "a name that is far too long for a column of names on a phone"
S, X = Axis("Time", "s"), Axis("Load", "requests")

CHARTS = {
    "lines": lambda: lines([Series(NAME, (1, 2, 9), (1, 4, 2)), Series("b", (1, 9), (3, 3))], X, S, title=NAME),
    "scatter": lambda: scatter([Point(n, 9.0 - n, NAME, is_front=True) for n in range(9)], X, S, title=NAME),
    "stacked": lambda: stacked([Bar(NAME, [Part(NAME, 3.0), Part("rest", 1.0)], 5.0, "limit")], S, title=NAME),
    "intervals": lambda: intervals([Reading(NAME, 3.0, 2.0, 4.0, 3.5)], S, title=NAME),
    "tornado": lambda: tornado([SensitivityBar(NAME, 2.0, 4.0, "1", "9")], 3.0, S, title=NAME),
    "timeline": lambda: timeline([Track(NAME, [Span(0.0, 2.0, "busy")])], title=NAME),
    "roofline": lambda: roofline(
        [Slope("memory", 3e12)], [Roof("fp8", 2e15), Roof("bf16", 1e15)], [Op("qkv", 9.0, 1e13, 1.0)], title=NAME
    ),
    "parity": lambda: parity([Pairs(NAME, (1.0, 2.0), (1.1, 2.3), "s"), Pairs("b", (1.0,), (1.0,), "s")], title=NAME),
}


@pytest.mark.parametrize("draw", CHARTS.values(), ids=CHARTS)
def test_a_narrow_chart_keeps_its_text_inside(draw, read):
    with drawn_at(PHONE_PX):
        drawing = read(draw())
    assert drawing.root.get("viewBox").split()[2] == "330"
    for one in drawing.all("text"):
        if "transform" in one.attrib:  # turned along a slope
            continue
        kinds, x = one.get("class", "").split(), float(one.get("x"))
        wide = width_px("".join(one.itertext()) if len(one) == 0 else one.text, 15 if "orr-h" in kinds else 12)
        start = x - wide if "orr-e" in kinds else x - wide / 2 if "orr-m" in kinds else x
        assert start >= -12, one.text  # tick labels at an end hang over by half
        assert start + wide <= PHONE_PX + 12, one.text


@pytest.mark.parametrize("name", ["stacked", "intervals", "tornado", "timeline"])
def test_names_of_rows_stand_above_them(name, read):
    with drawn_at(PHONE_PX):
        narrow = read(CHARTS[name]())
    wide = read(CHARTS[name]())
    begin = "a name that is far too long for"
    assert len([text for text in narrow.words if text.startswith(begin)]) >= 2  # the title and the row
    assert [text for text in wide.words if text.startswith("a name that is") and text.endswith("…")]  # cut beside it


def test_short_names_stay_beside_their_rows(read):
    with drawn_at(PHONE_PX):
        drawing = read(stacked([Bar("A", [Part("weights", 3.0)])], S, title="Memory"))
    assert "orr-e" in next(one for one in drawing.all("text") if one.text == "A").get("class")


def test_a_sheet_is_as_wide_as_before_once_the_narrow_one_is_done():
    before = CHARTS["lines"]()
    with pytest.raises(ZeroDivisionError), drawn_at(PHONE_PX):
        raise ZeroDivisionError
    assert CHARTS["lines"]() == before
    assert f'viewBox="0 0 {WIDTH_PX:g} ' in before
