# pyright: reportArgumentType=false
"""Models on one machine of which one is awake: its weights are on the devices, those of the others on the host.

A model wakes when somebody waits for it and no request of the one that is awake is under way; its first step waits
until its weights have come back. While others wait, the one that is awake takes no new requests once its turn has
lasted so long, so that it ends what it has and falls asleep; its cache is empty afterwards.
"""

from orrery.serving.simulation.memory._kernel import forget
from orrery.serving.simulation.tables._kernel import (
    AWAKE,
    AWAKE_S,
    BY_SLEEP,
    DEPLOYMENT,
    N_DELAY_S,
    NUM_DECODING,
    NUM_PROMPTS,
    NUM_READY,
    NUM_WAITING,
    POOL,
    RESERVED,
    SHARING,
    UNIT,
    WAKE_S,
    WAKES,
    SimulationState,
)


def wake_model(w: SimulationState, unit: int, now_s: float) -> bool:
    """Whether the model of a unit is awake, or can be woken now; then its next step waits for that."""
    machine, lane = w.unit_machine[unit], w.unit_lane[unit]
    if w.machines[machine, AWAKE] == w.lanes[lane, DEPLOYMENT]:
        return True
    if w.lanes[lane, NUM_WAITING] == 0 or _is_busy(w, machine):
        return False
    for other in range(w.lanes.shape[0]):
        if w.unit_machine[w.lanes[other, UNIT]] == machine and w.lanes[other, DEPLOYMENT] == w.machines[machine, AWAKE]:
            forget(w.memory, w.lanes[other, POOL])
    w.machines[machine, AWAKE] = w.lanes[lane, DEPLOYMENT]
    w.rates[lane, AWAKE_S] = now_s
    w.step[lane, N_DELAY_S] += w.rates[lane, WAKE_S]
    w.totals[WAKES] += 1.0
    return True


def _is_busy(w: SimulationState, machine: int) -> bool:
    """Whether a request is under way on a machine."""
    for lane in range(w.lanes.shape[0]):
        under_way = w.lanes[lane, NUM_DECODING] + w.lanes[lane, NUM_PROMPTS]
        under_way += w.lanes[lane, RESERVED] + w.lanes[lane, NUM_READY]
        if under_way > 0 and w.unit_machine[w.lanes[lane, UNIT]] == machine:
            return True
    return False


def must_yield(w: SimulationState, lane: int, now_s: float) -> bool:
    """Whether a model that is awake takes no new requests, because others have waited for the length of its turn."""
    machine, length_s = w.unit_machine[w.lanes[lane, UNIT]], now_s - w.rates[lane, AWAKE_S]
    if w.machines[machine, SHARING] != BY_SLEEP or length_s < w.rules.turn_s or length_s == 0.0:  # it has just woken
        return False
    for other in range(w.lanes.shape[0]):
        if other != lane and w.lanes[other, NUM_WAITING] > 0 and w.unit_machine[w.lanes[other, UNIT]] == machine:
            return True
    return False
