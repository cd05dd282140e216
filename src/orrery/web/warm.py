"""Work done before the first visitor waits for it: templates are read, names listed, kernels loaded."""

from orrery.scenario.ask import estimate
from orrery.web.design.inputs import DEFAULTS, LENGTHS, LOAD
from orrery.web.forms import suggestions
from orrery.web.landing.view import Choice, chart_data
from orrery.web.papers.filed import filed
from orrery.web.papers.index import index_of
from orrery.web.place import Place
from orrery.web.render import environment

NUM_LATEST = 20
"""Papers of the library whose cards are made ready: the latest, which the page of papers opens with."""


def warm(place: Place) -> None:
    """A second of work, once for each server."""
    for name in environment().list_templates():
        environment().get_template(name)
    suggestions(place.uploads)
    chart_data(Choice())
    for document in sorted(index_of(place.library).documents(), key=lambda d: d.arxiv)[-NUM_LATEST:]:
        filed(document.key)
    estimate(**DEFAULTS, **LENGTHS, **LOAD)
