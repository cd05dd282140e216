"""A family of models: the ``model_type`` words that its configs carry, and how to read them."""

from collections.abc import Callable
from dataclasses import dataclass

from orrery.models.fields import Fields
from orrery.models.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One file in ``families`` ends with ``FAMILY = Family(...)``; that is all it takes to register it."""

    model_types: tuple[str, ...]
    build: Callable[[Fields, str], Model]  # the config's fields (the text part) and the model's name
