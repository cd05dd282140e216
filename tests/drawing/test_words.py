"""Numbers and text as they are drawn, and what hostile text may not do."""

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.base.units import si, text
from orrery.drawing.words import clean, listed, px, safe, safe_href, sentences, shortened, width_px, wrapped


@pytest.mark.parametrize(
    ("value", "unit", "message"),
    [
        (0.0123, "s", "12.3 ms"),
        (1.2e9, "bytes", "1.2 GB"),
        (1.2e9, "B", "1.2 GB"),
        (3400, "tokens/s", "3.4 k tokens/s"),
        (3400, "tokens_per_s", "3.4 k tokens/s"),
        (989e12, "flops_per_s", "989 TFLOP/s"),
        (2e-5, "s", "20 µs"),
        (999.9996e6, "B", "1 GB"),
        (0.99996, "s", "1 s"),
        (12345, "s", "12,300 s"),
        (0.5, "B", "0.5 B"),
        (0.123, "frac", "12.3 %"),
        (1.85, "ratio", "1.85 \N{MULTIPLICATION SIGN}"),
        (3.4, "usd", "$3.4"),
        (12345, "usd_per_h", "$12.3 k/h"),
        (0, "s", "0 s"),
        (-1e4, "", "-10 k"),
        (math.inf, "s", "∞ s"),
        (math.nan, "s", "no number"),
        (2.5, "", "2.5"),
    ],
)
def test_numbers_as_a_person_reads_them(value, unit, message):
    assert si(value, unit) == message


def test_both_ways_to_tell_a_number_agree_on_units_with_a_symbol():
    for value in (0.0123, 2.5, 0.25):
        assert si(value, "s") == text(value, "s")
    assert si(2.5e9, "bytes") == text(2.5e9, "bytes")


@given(st.floats(1e-11, 1e20), st.sampled_from(["s", "B", "tokens/s", ""]))
def test_the_number_is_what_is_said(value, unit):
    number, *rest = si(value, unit).split(" ")
    prefix = rest[0][0] if rest and rest[0] not in ("s", "B", "tokens/s") else ""
    scale = {"": 1.0} | {letter: 10.0 ** (3 * n - 12) for n, letter in enumerate("pnµm.kMGTPE")}
    assert float(number.replace(",", "")) * scale[prefix] == pytest.approx(value, rel=0.005)


@given(st.text())
def test_any_text_is_safe_in_text_and_in_attributes(words):
    element = ElementTree.fromstring(f'<a b="{safe(words)}">{safe(words)}</a>')
    assert element.get("b") == (element.text or "")
    assert not list(element)


@pytest.mark.parametrize(
    "href",
    [
        "javascript:alert(1)",
        " JaVa\nScript:alert(1)",
        "\x01javascript:x",
        "data:text/html,x",
        "vbscript:x",
        "java\tscript:x",
        "file:///etc",
    ],
)
def test_scripts_are_no_links(href):
    assert safe_href(href) == ""


@pytest.mark.parametrize("href", ["/plan/1?a=b", "#x", "https://example.org/a", "page.html", "?t=12:30"])
def test_pages_are_links(href):
    assert safe_href(href) == href


def test_quotes_do_not_end_an_attribute():
    assert safe_href('/a" onload="x') == "/a&quot;onload=&quot;x"


@given(st.text(min_size=1), st.floats(30, 300))
def test_shortened_text_fits(words, room):
    shown = shortened(words, room)
    assert width_px(shown) <= room or shown == "…"
    assert clean(words).startswith(shown.removesuffix("…"))
    assert shown == clean(words) or shown.endswith("…")


def test_shortened_text_begins_as_the_whole():
    assert shortened("tensor = 8, pipeline = 2", 80) == "tensor = 8…"
    assert shortened("short", 80) == "short"
    assert wrapped("one two three four five", 60.0, 12.0, 2) == ["one two", "three f…"]


def test_lists_and_sentences():
    assert listed(["a (1, 2)", "b (3, 4)"]) == "a (1, 2) and b (3, 4)"
    assert listed("abc") == "a, b and c"
    assert listed("") == ""
    assert listed("a") == "a"
    assert listed("abcdefghij", 8) == "a, b, c, d, e, f, g, h and 2 more"
    assert sentences(["", "It rises.", "So do costs", "why?"]) == "It rises. So do costs. why?"


def test_places_take_few_letters():
    assert [px(v) for v in (1.0, 0.04, -0.04, 10.0, 12.34, -0.5, 100.06)] == [
        "1",
        "0",
        "0",
        "10",
        "12.3",
        "-0.5",
        "100.1",
    ]
