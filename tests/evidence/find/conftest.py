"""The library, ready to be searched: built once."""

import pytest

from orrery.evidence.find.library_cache import library
from orrery.evidence.find.search import Finder


@pytest.fixture(scope="session")
def finder():
    return Finder(library())
