"""What each chart shows: places, order, sizes, and what it says of them."""

import math
import re
from itertools import pairwise

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
from orrery.drawing.hatch import as_lines

X, Y = Axis("Load", "requests"), Axis("Time", "s")


def test_a_curve_rises_on_the_sheet_where_its_values_rise(read):
    drawing = read(lines([Series("a", [1, 2, 4], [0.01, 0.02, 0.05])], X, Y, title="Curve", mark=(2, "today")))
    (corners,) = drawing.places("orr-l")
    (x0, y0), (x1, y1), (x2, y2) = corners
    assert (x2 - x1) == pytest.approx(2 * (x1 - x0), abs=0.2)
    assert (y1 - y2) == pytest.approx(3 * (y0 - y1), abs=0.3)
    assert "a rises from 10 ms to 50 ms." in drawing.desc
    assert "Marked at 2 requests: today." in drawing.desc
    assert {"a", "today", "Load (requests)", "Time"} <= set(drawing.words)


def test_a_band_is_as_wide_as_the_interval(read):
    drawing = read(lines([Series("a", [0, 1], [2, 2], [1, 1], [4, 4])], X, Y, title="Band"))
    (band,), (line,) = drawing.places("orr-b"), drawing.places("orr-l")
    above, below = line[0][1] - band[0][1], band[-1][1] - line[0][1]
    assert above == pytest.approx(2 * below, abs=0.2)


def test_a_forecast_is_dashed(read):
    series = [Series("seen", [1, 2], [1, 2]), Series("foreseen", [1, 2], [2, 3], is_dashed=True)]
    drawing = read(lines(series, X, Y, title="Both"))
    assert len(drawing.all("path", "orr-d")) == 1
    assert drawing.all("circle")
    assert len(drawing.all("g", "orr-k2")) == 2  # the curve and the key of its name


def test_names_at_the_ends_of_curves_do_not_meet(read):
    series = [Series(f"curve {n}", [0, 1], [1, 1 + n / 1000]) for n in range(8)]
    drawing = read(lines(series, X, Y, title="Many"))
    places = sorted(float(e.get("y")) for e in drawing.all("text") if (e.text or "").startswith("curve"))
    assert len(places) == 8
    assert min(b - a for a, b in pairwise(places)) >= 13


def test_a_long_curve_keeps_its_peak(read):
    ys = [1.0] * 5000
    ys[3210] = 50.0
    drawing = read(lines([Series("a", range(5000), ys)], X, Y, title="Peak"))
    (corners,) = drawing.places("orr-l")
    assert len(corners) < 700
    assert "highest 50 s at 3.21 k requests" in drawing.desc
    foot = max(y for _, y in corners)
    assert foot - min(y for _, y in corners) > 250


PLANS = [
    Point(10, 100, "a", "/plan/a", "H100", True, "4 devices", "pa"),
    Point(20, 80, "b", "/plan/b", "H100", True),
    Point(30, 20, "c", "", "H200", True),
    Point(12, 50, "d", "javascript:alert(1)", "H200", id="pd"),
]


def test_every_point_can_be_reached_and_read(read):
    drawing = read(scatter(PLANS, X, Y, title="Plans"))
    links = drawing.all("a")
    assert [(e.get("href"), e.get("aria-label"), e.get("data-id")) for e in links] == [
        ("/plan/a", "a", "pa"),
        ("/plan/b", "b", None),
    ]
    assert links[0].find("title").text == "a: 10 requests, 100 s; 4 devices"
    stops = [e for e in drawing.all("g") if e.get("tabindex") == "0"]
    assert sorted(e.get("aria-label") for e in stops) == ["c", "d"]
    assert drawing.root.get("role") == "group"  # as an image it would hide its links
    assert "3 points are on the front: a (10 requests, 100 s), b (20 requests, 80 s) and c" in drawing.desc


def test_the_front_goes_down_in_steps_and_the_others_stand_back(read):
    drawing = read(scatter(PLANS, X, Y, title="Plans"))
    (steps,) = [e.get("d") for e in drawing.all("path", "orr-a") if "V" in e.get("d") and "v4" not in e.get("d")]
    assert [letter for letter in steps if letter.isalpha()] == list("MVHVH")
    (dim,) = drawing.all("g", "orr-z")
    assert [e.get("aria-label") for e in dim] == ["d"]


def test_a_front_of_small_costs_steps_the_other_way(read):
    points = [Point(1, 9, "a", is_front=True), Point(9, 1, "b", is_front=True), Point(9, 9, "c")]
    steps = [e.get("d") for e in read(scatter(points, X, Y, title="Costs")).all("path", "orr-a")]
    assert any([letter for letter in d if letter.isalpha()] == list("MHV") for d in steps)


def test_kinds_differ_in_shape(read):
    drawing = read(scatter([Point(n, n, str(n), kind=str(n)) for n in range(1, 5)], X, Y, title="Kinds"))
    marks = drawing.all("a") + [e for e in drawing.all("g") if e.get("tabindex")]
    shapes = {"".join(c for c in e[1].get("d", "circle") if c.isalpha()) for e in marks}
    assert len(shapes) == 4


def test_many_points_are_thinned_but_none_of_the_front(read):
    points = [Point(n % 97, n % 89, f"p{n}") for n in range(5000)] + [Point(99, 99, "best", is_front=True)]
    drawing = read(scatter(points, X, Y, title="Many"))
    labels = [e.get("aria-label") for e in drawing.all("g") if e.get("tabindex")]
    assert "best" in labels
    assert len(labels) <= 251
    assert f"{5001 - len(labels):,} of 5,001 points" in drawing.desc


MEMORY = Axis("Memory", "B")


def test_parts_are_as_wide_as_they_are_large_and_never_vanish(read):
    bars = [Bar("tp2", [Part("weights", 60e9), Part("cache", 15e9), Part("buffers", 1e6)], 80e9, "capacity")]
    drawing = read(stacked(bars, MEMORY, title="Memory"))
    rects = {e[0].text.split(":")[0]: e for e in drawing.all("rect") if len(e)}
    wide = {name: float(e.get("width")) for name, e in rects.items()}
    assert wide["tp2, weights"] + 1 == pytest.approx(4 * (wide["tp2, cache"] + 1), abs=0.5)
    assert wide["tp2, buffers"] >= 2
    assert rects["tp2, cache"][0].text == "tp2, cache: 15 GB, 20.0 % of 75 GB"
    assert "tp2: 75 GB in all, capacity 80 GB: weights 60 GB, cache 15 GB and buffers 1 MB." in drawing.desc
    assert {"capacity 80 GB", "75 GB of 80 GB", "weights", "cache"} <= set(drawing.words)
    mark = float(drawing.all("path", "orr-v")[0].get("d")[1:].split(" ")[0])
    end = float(rects["tp2, buffers"].get("x")) + wide["tp2, buffers"]
    assert mark > end


def test_a_part_is_named_whole_or_by_its_colour_alone(read):
    bars = [Bar("a", [Part("weights", 70.0), Part("driver and libraries", 8.0)])]
    drawing = read(stacked(bars, MEMORY, title="Memory"))
    on_bars = [one.text for one in drawing.all("text") if "orr-c" in one.get("class", "").split()]
    assert on_bars == ["weights"]
    assert "driver and libraries" in drawing.words  # in the legend


def test_kinds_differ_in_hatch(read):
    drawing = read(stacked([Bar("a", [Part(str(n), 1.0) for n in range(5)])], MEMORY, title="Hatch"))
    patterns = {e.get("id"): e[1].get("d") for e in drawing.all("pattern")}
    assert len(set(patterns.values())) == 4
    filled = [e.get("fill") for e in drawing.all("g") if e.get("fill")]
    assert {f"url(#{name})" for name in patterns} == set(filled)


def test_a_print_has_lines_in_place_of_patterns():
    """A rectangle of 12 by 6 from (0, 0): a pattern of 6 by 6 has these lines in it."""
    inside = '<rect x="0" y="0" width="12" height="6"><title>t</title></rect>'
    lines = {}
    for number in range(1, 5):
        found = as_lines(f'<g class="orr-k1" fill="url(#orr-ab12h{number})">{inside}</g>')
        assert found.startswith(f'<g class="orr-k1 orr-f">{inside}</g>')
        lines[number] = re.search(r' d="(.*)"/>$', found)[1]
    assert lines[1] == "M0 6L6 0M6 6L12 0"  # rising
    assert lines[2] == "M1.5 0v6M4.5 0v6M7.5 0v6M10.5 0v6"
    assert lines[3] == "M6 0L12 6M0 0L6 6"  # falling
    assert lines[4] == "M0 1.5h12M0 4.5h12"
    joined = '<g class="orr-k6" fill="url(#orr-ab12h7)"><path d="M3 0h3v2H3zM9 0h3v2H9z"/></g>'
    assert as_lines(joined).endswith(' d="M4.5 0v2M10.5 0v2"/>')  # the seventh is upright again
    plain = '<g class="orr-k0 orr-f"><rect x="0" y="0" width="1" height="1"/></g>'
    assert as_lines(plain) == plain


def test_negative_parts_are_left_out(read):
    drawing = read(stacked([Bar("a", [Part("x", -1.0), Part("y", 2.0)])], MEMORY, title="Negative"))
    assert "1 value is left out" in drawing.desc
    assert "a: 2 B in all: y 2 B." in drawing.desc


def test_operations_lie_under_the_roof_and_areas_are_shares_of_time(read):
    ops = [Op("long", 100, 1e14, 3e-3, "gemm", "/op"), Op("short", 1, 1e12, 1e-3, "norm")]
    drawing = read(roofline([Slope("HBM", 3e12)], [Roof("BF16", 1e15)], ops, title="Roofs"))
    roof, slope = (e.get("d") for e in drawing.all("path", "orr-l"))
    (x0, y0), (x1, y1) = (map(float, end.split(" ")) for end in slope.removeprefix("M").split("L"))
    assert x0 < x1 < float(roof.partition("H")[2])
    assert y0 > y1
    (long,) = drawing.all("a")
    assert float(long.find("circle").get("r")) == pytest.approx(16 * math.sqrt(0.75), abs=0.1)
    assert long.find("title").text == "long: 100 operations per byte, 100 TOP/s, 3 ms, 75.0 % of the time"
    assert "Operations by share of the time: long 75 % at 100 TOP/s and short 25 % at 1 TOP/s." in drawing.desc
    assert "Roofs: BF16 1 POP/s." in drawing.desc


def test_the_ridge_is_where_slope_and_roof_meet(read):
    drawing = read(roofline([Slope("HBM", 2e12)], [Roof("BF16", 1e15)], [], title="Ridge"))
    roof, slope = (e.get("d") for e in drawing.all("path", "orr-l"))
    assert slope.split("L")[1] == roof.split("H")[0].removeprefix("M")


def test_the_strongest_input_comes_first(read):
    swings = [
        SensitivityBar("weak", 0.9, 1.1, "1", "2"),
        SensitivityBar("strong", 2.0, 0.5, "3", "4"),
        SensitivityBar("flat", 1, 1, "5", "6"),
    ]
    drawing = read(tornado(swings, 1.0, Y, title="Swings"))
    names = [e.text for e in drawing.all("text") if e.text in ("weak", "strong", "flat")]
    assert names == ["strong", "weak", "flat"]
    caption = {e[0].text: e for e in drawing.all("rect") if len(e)}
    low, high = caption["strong = 3: 2 s"], caption["strong = 4: 500 ms"]
    zero = float(low.get("x"))
    assert float(high.get("x")) + float(high.get("width")) == pytest.approx(zero, abs=0.2)
    assert float(low.get("width")) == pytest.approx(2 * float(high.get("width")), abs=0.3)
    assert "strong: 2 s at 3, 500 ms at 4." in drawing.desc


def test_both_ends_on_one_side_are_told_on_that_side(read):
    drawing = read(tornado([SensitivityBar("a", 2.0, 3.0, "few", "many")], 1.0, Y, title="One side"))
    assert "few, many" in drawing.words


def test_spans_lie_where_their_times_are(read):
    track = Track("stage 0", [Span(0, 1, "forward", "batch 1"), Span(2, 4, "backward")])
    drawing = read(timeline([track], title="Step"))
    first, second = [e for e in drawing.all("rect") if len(e)]
    assert float(second.get("width")) + 0.6 == pytest.approx(2 * (float(first.get("width")) + 0.6), abs=0.3)
    assert float(second.get("x")) - float(first.get("x")) == pytest.approx(float(second.get("width")) + 0.6, abs=0.3)
    assert first[0].text == "batch 1: 1 s from 0 s"
    assert "Of the busy time: forward 33 % and backward 67 %." in drawing.desc


def test_thousands_of_spans_become_few_and_keep_their_shares(read):
    spans = [Span(n * 0.01, n * 0.01 + (0.006 if n % 2 else 0.003), "ab"[n % 2]) for n in range(20_000)]
    drawing = read(timeline([Track("r0", spans), Track("r1", spans)], title="Serving"))
    assert "40,000 spans are drawn as" in drawing.desc
    wide, pieces = {"orr-k1": 0.0, "orr-k2": 0.0}, 0
    for group in (g for g in drawing.all("g") if g.find("path") is not None):
        widths = [float(width) for width in re.findall(r"h([\d.]+)v", group.find("path").get("d"))]
        kind = group.get("class", "").split()[0] if group.get("class") else ""
        if kind in wide:
            pieces += len(widths)
            wide[kind] += sum(widths)
    assert 100 < pieces <= 1500
    assert wide["orr-k2"] / wide["orr-k1"] == pytest.approx(2.0, rel=0.05)


def test_intervals_say_how_many_hold(read):
    rows = [Reading("a", 2.0, 1.0, 3.0, 2.5), Reading("b", 2.0, 1.0, 3.0, 4.0), Reading("c", 1.0, 0.5, 1.5)]
    drawing = read(intervals(rows, Y, title="Beside"))
    assert "The interval holds what is reported in 1 of 2." in drawing.desc
    assert "b: 2 s, 1 s to 3 s, reported 4 s." in drawing.desc
    bars = [[float(v) for v in re.findall(r"[\d.]+", e.get("d"))[:3]] for e in drawing.all("path", "orr-l")]
    assert bars[0][2] - bars[0][0] == pytest.approx(2 * (bars[2][2] - bars[2][0]), abs=0.3)
    assert "a: 2 s (1 s to 3 s); reported 2.5 s" in drawing.tooltips


def test_parity_marks_misses_by_shape_and_says_how_far_off(read):
    panels = [
        Pairs("claims", [1, 10, 100], [1, 20, 100], description=["x", "y", "z"], misses=[False, True, False]),
        Pairs("rows", [1.0, 2.0, 4.0], [1.1, 2.2, 4.4], "s"),
    ]
    drawing = read(parity(panels, title="Parity"))
    assert "claims: 3 pairs, half of them within a factor of 1." in drawing.desc
    assert "rows: 3 pairs, half of them within a factor of 1.1." in drawing.desc
    assert [t for t in drawing.tooltips if t in "xyz"] == ["x", "z", "y"]
    assert {"any other verdict", "not reproduced", "within a factor of 1.2"} <= set(drawing.words)
    first, last = [e for e in drawing.all("circle") if e.get("r") == "3.6"]
    left, right = float(first.get("cx")), float(last.get("cx"))
    assert right - left == pytest.approx(float(first.get("cy")) - float(last.get("cy")), abs=0.2)
