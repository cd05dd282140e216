"""Kinds of models, by name, and the settings that models of only one kind have."""

from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache

from orrery.base.errors import ScenarioError
from orrery.catalog.diffusion import find_diffusion
from orrery.catalog.recommendation import is_recommendation
from orrery.catalog.speech import find_speech
from orrery.models.image_networks import find_network
from orrery.scenario.fields_diffusion import DIFFUSION_NAMES
from orrery.scenario.schema import Scenario


class ModelKind(Enum):
    """Kinds of models that an estimate answers for in different words."""

    TEXT = auto()
    DIFFUSION = auto()  # makes pictures and videos
    IMAGE = auto()  # reads pictures
    RANKING = auto()
    SPEECH = auto()


@lru_cache(maxsize=1024)
def kind_of(model: str | None) -> ModelKind:
    """The kind of a model by name, or by a file in the catalogue's way; of text, where nothing else is known."""
    if model is None:
        return ModelKind.TEXT
    if find_diffusion(model) or model.endswith(".toml"):
        return ModelKind.DIFFUSION
    if find_network(model):
        return ModelKind.IMAGE
    if is_recommendation(model):
        return ModelKind.RANKING
    return ModelKind.SPEECH if find_speech(model) else ModelKind.TEXT


OF_SPEECH = ("audio_s", "num_beams", "window_batch")
OF_OTHERS: Mapping[tuple[str, ...], str] = {
    DIFFUSION_NAMES: "of pictures and videos, and {model} is a model of text; leave out, or write "
    'model = "flux.1-dev".',
    ("integer_only",): '{model} is no image network; leave it out, or write model = "vit-s-16".',
    OF_SPEECH: '{model} takes no speech; leave it out, or write model = "whisper-large-v3".',
}
"""Settings that no model of text has, and what to write."""


def check_text(scenario: Scenario) -> None:
    """Refuse settings of other kinds of models for a model of text; the other kinds list what they read."""
    for names, why in OF_OTHERS.items():
        if given := [name for name in names if getattr(scenario, name) is not None]:
            raise ScenarioError(f"{', '.join(given)}: {why.format(model=scenario.model)}")
