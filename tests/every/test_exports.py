"""A package exports what it says: ``__all__`` is true, and short enough to remember."""

import pkgutil
from importlib import import_module

from battery import over

import orrery

PACKAGES = ["orrery", *(m.name for m in pkgutil.walk_packages(orrery.__path__, "orrery.") if m.ispkg)]
MOST = 38  # names that one package may export: the front door has a verb for each command, and what they read


@over(PACKAGES)
def test_a_package_exports_what_it_says(name):
    package = import_module(name)
    exported = list(getattr(package, "__all__", ()))
    assert len(exported) == len(set(exported)), f"{name}.__all__ names something twice"
    assert len(exported) <= MOST
    for word in exported:
        assert getattr(package, word) is not None


def test_no_verb_is_called_as_a_package():
    """Importing ``orrery.fleet`` would put the package where a function of that name was."""
    assert not set(orrery.__all__) & {m.name for m in pkgutil.iter_modules(orrery.__path__)}


def test_the_front_door_names_its_verbs():
    assert orrery.__version__ == "0.1.0"
