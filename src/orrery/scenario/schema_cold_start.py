"""The part of a scenario that brings a replica up."""

from orrery.scenario.fields import BY_NAME
from orrery.scenario.kinds import Number, Settings, Switch, Word


class ColdStartScenario(Settings, table=BY_NAME):
    """Starting state and weight source of a cold start; a blank takes the documented default."""

    start: Word = None
    weights_from: Word = None
    weights_bytes_per_s: Number = None
    load_format: Word = None
    compile_cache: Switch = None
    image_bytes: Number = None
    image_bytes_per_s: Number = None
    node_s: Number = None
