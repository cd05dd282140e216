"""A chart of a page is drawn twice: at a desk's width and at a phone's."""

from orrery.drawing import Axis, Series, lines
from orrery.web.both_widths import PHONE_PX, at_both_widths


def draw():
    return lines([Series("a", (1, 2), (3, 4))], Axis("x"), Axis("y"), title="A chart")


def test_the_wide_drawing_comes_first_and_each_is_named_for_the_style_sheet():
    found = at_both_widths(draw)
    wide, narrow = found.split('<div class="on-phone">')
    assert wide == f'<div class="at-desk">{draw()}</div>'
    assert f'viewBox="0 0 {PHONE_PX:g} ' in narrow


def test_nothing_drawn_is_nothing():
    assert at_both_widths(lambda: "") == ""
