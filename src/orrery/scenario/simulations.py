"""One run of any scenario: step by step as an engine serves it, or pass by pass beside a host that attends."""

from contextlib import AbstractContextManager
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.scenario import simulate as steps
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.composition import CompositionAnswer, composed
from orrery.scenario.host_attention import HOST_ATTENTION, HostAttentionAnswer, schedule
from orrery.scenario.schema import Scenario, merged, refuse_foreign
from orrery.scenario.simulate import RunObserver, SimulatedAnswer


@typed
def simulate(
    scenario: Scenario | None = None,
    /,
    *,
    window: tuple[float, float] | None = None,
    patience: AbstractContextManager[object] | None = None,
    watch: RunObserver | None = None,
    **settings: Any,
) -> SimulatedAnswer | InfeasibleAnswer | HostAttentionAnswer | CompositionAnswer:
    """Serve a scenario's requests step by step, as its engine would.

    Settings are those of a scenario file; given beside a scenario they override it. Steps inside ``window`` (start and
    end in seconds) are kept one by one. ``patience`` is entered while the simulator is loaded. A ``watch`` changes
    nothing. With ``expert_offload = "host-attention"`` the run goes through the passes of a host that keeps the cache;
    with ``composition`` requests go one by one through a router and one of many expert models.
    """
    inputs = merged(scenario, settings)
    if inputs.composition is not None or inputs.switch_bytes_per_s is not None:
        if inputs.composition is None:
            raise ScenarioError("switch_bytes_per_s: nothing is switched; write composition = 150 beside it.")
        if window is not None:
            raise ScenarioError("window: a composition's requests have no steps; leave it out.")
        return composed(inputs)
    if inputs.expert_offload != HOST_ATTENTION:
        refuse_foreign("simulate", settings)
        return steps.simulate(inputs, window=window, patience=patience, watch=watch)
    if window is not None:
        raise ScenarioError("window: passes of a host that attends are not kept one by one; leave it out.")
    return schedule(inputs)
