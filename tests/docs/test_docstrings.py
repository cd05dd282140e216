"""Examples in docstrings are run too."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import orrery

MODULES = sorted(["orrery", *(m.name for m in pkgutil.walk_packages(orrery.__path__, "orrery."))])


@pytest.mark.parametrize("name", [m for m in MODULES if not m.endswith("__main__")])
def test_docstring_examples_hold(name):
    result = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert not result.failed
