"""Structured sparsity of weights, as a scenario states it; refused where a device has no unit for it."""

from collections.abc import Sequence

from orrery.base.errors import ScenarioError
from orrery.catalog.sparsity import ANY, pattern_of, sparse_facts
from orrery.hardware.device import Device
from orrery.hardware.sparsity import Sparsity, read_sparsity
from orrery.models.model import Model
from orrery.scenario.schema import Scenario


def sparsity_of(scenario: Scenario, model: Model, devices: Sequence[Device]) -> Sparsity | None:
    """The pattern that is asked for, where every device skips it."""
    if scenario.sparsity is None:
        return None
    sparsity = read_sparsity(scenario.sparsity)
    for device in devices:
        pattern = pattern_of(device.generation)
        if sparsity.kept_frac < 1.0 and pattern not in (ANY, str(sparsity)):
            raise ScenarioError(_refusal(device, sparsity, pattern))
    if any(b.experts for b in model.blocks):
        raise ScenarioError(f"sparsity: no kernel is known for sparse experts of {model.name}; leave sparsity out.")
    return sparsity


def _refusal(device: Device, sparsity: Sparsity, pattern: str) -> str:
    if pattern:
        return f"sparsity: got {sparsity}; {device.name} skips {pattern} alone, write sparsity = {pattern!r}."
    return (
        f"sparsity: {device.name} ({device.generation}) has no unit that is known for sparse weights; generations that "
        f"have one: {', '.join(sparse_facts())}. Leave sparsity out."
    )


def sparsity_notes(sparsity: Sparsity | None) -> tuple[str, ...]:
    """Notes on what no measurement says of sparse products."""
    if sparsity is None or sparsity.kept_frac == 1.0:
        return ()
    return (
        "sparsity: no sparse product was measured here; kernels are taken to reach the share of the raised peak that "
        "dense ones reach, which is the most that they can do; what is lost in quality must be measured",
    )
