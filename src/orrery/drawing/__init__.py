"""Charts as SVG text for pages and reports, light and dark, readable by eye, keyboard and screen reader."""

from orrery.base.units import si
from orrery.drawing.axis import Axis
from orrery.drawing.intervals import Reading, intervals
from orrery.drawing.lines import Series, lines
from orrery.drawing.parity import Pairs, parity
from orrery.drawing.roofline import Op, Roof, Slope, roofline
from orrery.drawing.scatter import Point, scatter
from orrery.drawing.stacked import Bar, Part, stacked
from orrery.drawing.timeline import Span, Track, timeline
from orrery.drawing.tornado import SensitivityBar, tornado

__all__ = [
    "Axis",
    "Bar",
    "Op",
    "Pairs",
    "Part",
    "Point",
    "Reading",
    "Roof",
    "SensitivityBar",
    "Series",
    "Slope",
    "Span",
    "Track",
    "intervals",
    "lines",
    "parity",
    "roofline",
    "scatter",
    "si",
    "stacked",
    "timeline",
    "tornado",
]
