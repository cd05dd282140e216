"""Packages that only readers of new papers need, and what to install where they are missing."""

from importlib import import_module
from typing import Any

from orrery.base.errors import OrreryError


class FeedError(OrreryError):
    """A feed, a page or the library's own file that cannot be used."""


def load(package: str) -> Any:
    """The package, imported."""
    try:
        return import_module(package)
    except ModuleNotFoundError:
        raise FeedError(f"New papers need {package}; install it: pip install 'orrery-ai[papers]'.") from None
