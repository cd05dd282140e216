"""The library, ready to be searched: built once."""

import pytest

from orrery.evidence.find.search import Finder
from orrery.evidence.find.shelf import library


@pytest.fixture(scope="session")
def finder():
    return Finder(library())
