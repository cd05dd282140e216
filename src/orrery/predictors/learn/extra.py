"""Packages of the extra ``learn``, imported where they are first used."""

from functools import cache
from importlib import import_module
from typing import Any

from orrery.base.errors import OrreryError


@cache
def learning_package(name: str) -> Any:
    """The module called ``name`` of autograd or scikit-learn; an OrreryError where it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise OrreryError(
            f"Learned predictors need {name.split('.')[0]}, which is not installed; run pip install 'orrery-ai[learn]'."
        ) from error
