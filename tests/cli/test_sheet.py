"""The table of the terminal: whatever the width, every cell is there whole, and no line is wider."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from orrery.cli.sheet import Sheet

WORD = st.text("abcdefgh0123456789.,%$/", min_size=1, max_size=9)
CELL = st.lists(WORD, max_size=6).map(" ".join)


def drawn(sheet, width, **options):
    file = io.StringIO()
    Console(file=file, width=width, **options).print(sheet)
    return file.getvalue()


def plans():
    sheet = Sheet("plan", "devices", "TTFT", "TPOT", "$/M")
    sheet.add_column("why", justify="left", wraps=True, minor=1)
    sheet.add_column("tokens/s", minor=2)
    sheet.add_row(
        "h100-sxm tp2 fp8", "2", "113 ms", "32.7 ms", "1.47", "two devices are what its weights need", "1,113"
    )
    return sheet


def test_wide_paper_has_one_line_a_row():
    lines = drawn(plans(), 120).splitlines()
    assert lines[1].split() == ["plan", "devices", "TTFT", "TPOT", "$/M", "why", "tokens/s"]
    assert lines[3].startswith("h100-sxm tp2 fp8        2  113 ms  32.7 ms  1.47  two devices are")
    assert lines[3].endswith("1,113")


def test_narrow_paper_wraps_words_then_puts_what_matters_least_below():
    assert "1,113" in drawn(plans(), 96).splitlines()[3]  # the words wrap beside it
    lines = drawn(plans(), 60).splitlines()
    assert lines[3] == "h100-sxm tp2 fp8        2  113 ms  32.7 ms  1.47     1,113"  # words want 16 characters
    assert lines[4] == "   why two devices are what its weights need"
    lines = drawn(plans(), 40).splitlines()
    assert lines[3:8] == [
        "h100-sxm tp2 fp8        2  113 ms  1.47",
        "   TPOT 32.7 ms",
        "   why two devices are what its weights",
        "   need",
        "   tokens/s 1,113",
    ]


@given(
    rows=st.lists(st.lists(CELL, min_size=3, max_size=7), min_size=1, max_size=4),
    wraps=st.lists(st.booleans(), min_size=7, max_size=7),
    width=st.integers(30, 140),
)
def test_every_word_is_read_back(rows, wraps, width):
    count = len(rows[0])
    sheet = Sheet()
    for i in range(count):
        sheet.add_column(f"head{i}", wraps=wraps[i])
    for row in rows:
        sheet.add_row(*(row + [""] * count)[:count])
    text = drawn(sheet, width, legacy_windows=False)
    cells = [cell for row in rows for cell in row[:count]]
    longest = max(map(len, cells))
    assert all(len(line) <= max(width, longest) for line in text.splitlines())
    found = text.split()
    for word in (word for cell in cells for word in cell.split()):
        assert word in found
        found.remove(word)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_without_unicode_and_colour_it_reads_the_same(width):
    class Ascii(io.StringIO):
        encoding = "ascii"

    file = Ascii()
    Console(file=file, width=width, no_color=True).print(plans())
    text = file.getvalue()
    assert text.isascii()
    assert "\x1b" not in text
    for word in ("h100-sxm tp2 fp8", "113 ms", "32.7 ms", "1.47", "1,113"):
        assert word in text
