"""Autoscalers by name."""

from collections.abc import Mapping

from orrery.base.extension_points import ExtensionPoint, knobs_from
from orrery.fleet.service import techniques
from orrery.fleet.service.setup import Scaler

AUTOSCALERS = ExtensionPoint(name="fleet.autoscaler", folder=techniques, noun="autoscaler")


def scaler_of(name: str, knobs: Mapping[str, str] | None = None) -> Scaler:
    """The autoscaler of that name with its knobs as written; its rule takes Signals and knobs and answers replicas."""
    technique = AUTOSCALERS.get(name)
    found = knobs_from(technique, knobs or {})
    return Scaler(name=name, rule=technique.rule, knobs=found, period_s=float(found.period_s))
