"""RL frameworks: every file loads, cites what it uses, and trains and generates with frameworks that exist."""

import pytest

from orrery.base.errors import UnknownName
from orrery.base.sources import Basis
from orrery.catalog.engines import get_engine
from orrery.catalog.frameworks import get_framework
from orrery.catalog.rl_frameworks import Release, get_rl_framework, release_of, rl_framework_names


@pytest.mark.parametrize("name", rl_framework_names())
def test_every_file_loads(name):
    found = get_rl_framework(name)
    assert get_framework(found.training)
    assert get_engine(found.engine)
    assert all(fact.source or fact.basis is Basis.ASSUMED for fact in found.facts.values())
    assert 0.0 < found.colocated_memory_frac <= found.separate_memory_frac < 1.0


def test_releases():
    assert release_of("nemo-rl", "0.4.1") == Release(engine_version="0.11", updates_in_flight=False)
    assert release_of("nemo-rl", "0.6").engine_version == "0.17"
    assert release_of("nemo-rl", "") == release_of("verl", "0.5") == Release()


def test_unknown():
    with pytest.raises(UnknownName, match="nemo-rl"):
        get_rl_framework("nemo-rll")
