"""Ways of cutting state by name: which there are, and the plan that each makes for a machine."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.technique import Technique, discover
from orrery.training import techniques
from orrery.training.levels import Topology
from orrery.training.state_plan import Plan

SEAM = "training.partition"


@cache
def _techniques() -> Mapping[str, Technique]:
    return MappingProxyType({t.name: t for t in discover(techniques) if t.seam == SEAM})


def plan_names() -> tuple[str, ...]:
    """Every way of cutting state that has a name."""
    return tuple(_techniques())


def get_plan(name: str, topology: Topology, **knobs: object) -> Plan:
    """The plan called ``name`` for a machine."""
    known = _techniques()
    if name not in known:
        raise UnknownName("partition plan", name, known)
    plan: Plan = known[name].rule(topology, known[name].knobs(**knobs))
    if said := plan.refusal(topology):
        raise ScenarioError(f"{name}: {said}")
    return plan
