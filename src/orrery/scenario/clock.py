"""The clock of devices, as a part of their full one."""

from orrery.base.errors import ScenarioError
from orrery.fleet.power.phases import clocked
from orrery.hardware.device import Device
from orrery.scenario.schema import Scenario

MIN_CLOCK_FRAC = 0.1


def clock_fracs(scenario: Scenario) -> tuple[float, ...]:
    """The parts of the full clock that are asked for; the whole where none is."""
    if scenario.clock_frac is None:
        return (1.0,)
    try:
        found = tuple(dict.fromkeys(float(word) for word in scenario.clock_frac.split(",")))
    except ValueError:
        found = ()
    if not found or not all(MIN_CLOCK_FRAC <= one <= 1.0 for one in found):
        raise ScenarioError(
            f"clock_frac: got {scenario.clock_frac!r}; write parts of {MIN_CLOCK_FRAC:g} to 1, as 0.8 or 1,0.8,0.6."
        )
    return found


def at_clock(scenario: Scenario, device: Device) -> Device:
    """The device at the one clock that is asked for."""
    first, *more = clock_fracs(scenario)
    if more:
        raise ScenarioError(f"clock_frac: got {len(more) + 1} clocks; estimate and simulate take one, plan several.")
    return clocked(device, first)


def clock_notes(scenario: Scenario, device: Device) -> tuple[str, ...]:
    """Notes on a lower clock."""
    if scenario.clock_frac is None or clock_fracs(scenario) == (1.0,):
        return ()
    return (
        f"clock_frac: {scenario.clock_frac} of the full clock: arithmetic slows with it, the memory does not, and what "
        f"{device.name} draws above idle falls with clock and voltage (the voltage curve is assumed)",
    )
