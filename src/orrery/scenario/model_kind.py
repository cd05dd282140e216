"""Kinds of models, by name."""

from enum import Enum, auto
from functools import lru_cache

from orrery.catalog.diffusion import find_diffusion
from orrery.catalog.recommendation import is_recommendation
from orrery.catalog.speech import find_speech
from orrery.models.image_networks import find_network


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
