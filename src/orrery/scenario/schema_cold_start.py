"""The part of a scenario that brings a replica up."""

from pydantic import BaseModel, Field

from orrery.scenario.kinds import Number, Switch, Word, bounds


class ColdStartScenario(BaseModel):
    """What a start begins from, and where its weights come from; blank means: take the documented default."""

    start: Word = None
    weights_from: Word = None
    weights_bytes_per_s: Number = Field(**bounds("weights_bytes_per_s"))
    load_format: Word = None
    compile_cache: Switch = None
    enforce_eager: Switch = None
    image_bytes: Number = Field(**bounds("image_bytes"))
    image_bytes_per_s: Number = Field(**bounds("image_bytes_per_s"))
    node_s: Number = Field(**bounds("node_s"))
