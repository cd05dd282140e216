"""Ways of cutting state by name: which there are, and the plan that each makes for a machine."""

from collections.abc import Mapping

from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.extension_points import techniques_at
from orrery.base.technique import Technique
from orrery.training.levels import Topology
from orrery.training.partition import techniques
from orrery.training.state_plan import Plan

SEAM = "training.partition"


def _techniques() -> Mapping[str, Technique]:
    return techniques_at(techniques, SEAM)


def plan_names() -> tuple[str, ...]:
    """Every way of cutting state that has a name."""
    return tuple(_techniques())


def get_plan(name: str, topology: Topology, **knobs: object) -> Plan:
    """The plan called ``name`` for a machine."""
    known = _techniques()
    if name not in known:
        raise UnknownName("partition plan", name, known)
    plan: Plan = known[name].rule(topology, known[name].knobs(**knobs))
    if text := plan.refusal(topology):
        raise ScenarioError(f"{name}: {text}")
    return plan
