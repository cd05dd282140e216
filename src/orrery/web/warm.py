"""What the first visitor would wait for, done before: templates are read, names listed, kernels loaded."""

from orrery.scenario.ask import estimate
from orrery.web.design.inputs import DEFAULTS, LENGTHS, LOAD
from orrery.web.forms import suggestions
from orrery.web.place import Place
from orrery.web.render import environment


def warm(place: Place) -> None:
    """A second of work, once for each server."""
    for name in environment().list_templates():
        environment().get_template(name)
    suggestions(place.uploads)
    estimate(**DEFAULTS, **LENGTHS, **LOAD)
