"""Ways of cutting state by name: which there are, and the plan that each makes for a machine."""

from orrery.base.errors import ScenarioError
from orrery.base.extension_points import ExtensionPoint
from orrery.training.levels import Topology
from orrery.training.partition import techniques
from orrery.training.state_plan import Plan

PARTITIONS = ExtensionPoint(name="training.partition", folder=techniques, noun="partition")


def get_plan(name: str, topology: Topology, **knobs: object) -> Plan:
    """The plan called ``name`` for a machine."""
    technique = PARTITIONS.get(name)
    plan: Plan = technique.rule(topology, technique.knobs(**knobs))
    if text := plan.refusal(topology):
        raise ScenarioError(f"{name}: {text}")
    return plan
