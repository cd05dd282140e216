"""Cost of a scheduled step: the device's time from the tables, the host's part, waiting, and stages."""

import numpy as np

from orrery.execution.surface import _kernel as surface
from orrery.execution.surface._kernel import (
    device_cost,
    shared_cost,
)
from orrery.kernels.energy._kernel import drawn_frac
from orrery.serving.simulation.tables._kernel import (
    ADAPTER_S,
    ADAPTER_WORK_S,
    BEGAN,
    COMPRESS_S,
    CONCAVE_POWER,
    DEPLOYMENT,
    DEVICE_WAYS,
    FAR,
    FETCH_S,
    FILLED_TOKENS,
    FINETUNED,
    GAP_S,
    GRAPH_SEQS,
    GRAPH_TOKENS,
    HIDDEN,
    HOST_BOUND,
    HOST_BYTES_PER_S,
    HOST_LATENCY_S,
    HOST_LAUNCH_S,
    HOST_OVERLAP_FRAC,
    HOST_PER_SEQUENCE_S,
    HOST_PIECES_S,
    HOST_STEP_S,
    LAYERS_BACK,
    LAYERS_FRAC,
    LOADED,
    MATRIX_WORK_S,
    MEMORY_WORK_S,
    N_CONTEXT,
    N_DECODES,
    N_DELAY_S,
    N_EXTRA,
    N_FILL,
    N_LOAD,
    N_NEW,
    N_PAIRS,
    N_PROMPTS,
    OVERLAP,
    POOL,
    SAMPLING_S,
    SHARING,
    SLOT_REQUESTS,
    SPAN_W,
    SPENT,
    SPLIT,
    STAGES,
    SWAP,
    TWIN,
    UNIT,
    OverlapRule,
    SimulationState,
    TransferRule,
)

FILL_ATTEMPTS = 20
"""Halvings of the room in a step until fine-tuning fills it to a token, for up to a million tokens."""


def _pass(w: SimulationState, variant: int, lane: int, extra: float, share: float) -> None:
    """The device's cost of a lane's step, or of ``share`` of its sequences, into ``w.cost``."""
    row = w.step[lane]
    prompts, new, pairs = row[N_PROMPTS], row[N_NEW], row[N_PAIRS]
    decodes, context = row[N_DECODES], row[N_CONTEXT]
    answers = decodes * (1 + w.rules.checked_tokens)
    tables, cost = w.surfaces, w.cost
    if share != 1.0:
        prompts = max(1.0, prompts * share) if prompts else 0.0
        new, pairs, decodes, context = new * share, pairs * share, decodes * share, context * share
        answers, extra = answers * share, extra * share
    device_cost(tables, variant, cost[0], prompts, new, pairs, decodes, context, prompts + answers, extra)
    part = w.rates[lane, LAYERS_FRAC]
    if part != 1.0:
        device_cost(tables, variant, cost[1], 0.0, 0.0, 0.0, decodes, context, answers, extra)
        for c in range(cost.shape[1]):
            cost[0, c] = part * cost[0, c] + (1.0 - part) * cost[1, c]


def _lane_s(w: SimulationState, overlap: OverlapRule, variant: int, lane: int) -> float:
    """Device time of a lane's own part of a step; its work is added to the unit's."""
    extra = w.step[lane, N_EXTRA]
    _pass(w, variant, lane, extra, 1.0)
    if w.rules.fill_tokens:
        extra = _fill(w, variant, lane, extra)
    time_s = alone_s = w.cost[0, surface.TIME]
    if w.rules.fill_sequence:
        back_s = _back_s(w, lane, time_s)
        w.cost[0, surface.MATRIX_WORK] += back_s
        time_s += back_s
        alone_s += back_s
    if w.rules.has_overlap:
        network_s, memory_s = w.cost[0, surface.NETWORK], w.cost[0, surface.MEMORY]
        matrix_s, work_s = w.cost[0, surface.MATRIX_WORK], w.cost[0, surface.MEMORY_WORK]
        _pass(w, variant, lane, extra, 0.5)
        more_network_s = max(0.0, 2.0 * w.cost[0, surface.NETWORK] - network_s)
        more_s = max(0.0, 2.0 * w.cost[0, surface.TIME] - time_s - more_network_s)
        time_s = overlap(time_s, network_s, memory_s, more_s, more_network_s, w.num_layers, w.knobs[OVERLAP])
        w.totals[HIDDEN] += alone_s - time_s
        w.cost[0, surface.MATRIX_WORK], w.cost[0, surface.MEMORY_WORK] = matrix_s, work_s
        w.cost[0, surface.NETWORK], w.cost[0, surface.MEMORY] = network_s, memory_s
        w.cost[0, surface.TIME] = alone_s
    _add_work(w, w.lanes[lane, UNIT], 1.0)
    if w.lanes[lane, FAR] > 0:
        time_s += w.lending_s
    if w.slots.shape[2]:
        time_s += _adapters_s(w, lane)
    if w.rules.draft_levels and w.step[lane, N_DECODES]:
        time_s += w.rules.draft_s + w.rules.draft_sequence_s * w.step[lane, N_DECODES]
    return time_s + w.retained[w.lanes[lane, DEPLOYMENT], COMPRESS_S] * w.step[lane, N_NEW] * w.rates[lane, LAYERS_FRAC]


def _adapters_s(w: SimulationState, lane: int) -> float:
    """Reading of the adapters that the batch has beside one, which is part of the tables' step."""
    pool, used = w.lanes[lane, POOL], 0
    for k in range(w.slots.shape[2]):
        if w.slots[pool, SLOT_REQUESTS, k] > 0:
            used += 1
    more, law = max(0, used - 1), w.retained[w.lanes[lane, DEPLOYMENT]]
    w.units[w.lanes[lane, UNIT], MEMORY_WORK_S] += more * law[ADAPTER_WORK_S]
    return more * law[ADAPTER_S]


def _add_work(w: SimulationState, unit: int, lanes: float) -> None:
    """Add the work in ``w.cost``, as each of so many lanes does it, to a unit's."""
    w.units[unit, MATRIX_WORK_S] += w.cost[0, surface.MATRIX_WORK] * lanes
    w.units[unit, MEMORY_WORK_S] += w.cost[0, surface.MEMORY_WORK] * lanes


def _above_idle_j(w: SimulationState, unit: int, lanes: float, step_s: float) -> float:
    """Joules above idle of a unit's devices over a step: the law of power on what a lane does on average."""
    lane = w.unit_lane[unit]
    law = w.retained[w.lanes[lane, DEPLOYMENT]]
    matrix_s, memory_s = w.units[unit, MATRIX_WORK_S] / lanes, w.units[unit, MEMORY_WORK_S] / lanes
    machine = w.unit_machine[unit]
    share = drawn_frac(matrix_s / w.clocks[machine], memory_s, step_s, law[CONCAVE_POWER])
    return share * law[SPAN_W] * step_s * w.rates[lane, DEVICE_WAYS] * lanes * w.spans[machine]


def _arithmetic_s(w: SimulationState, gap_s: float) -> float:
    """Time of the kernels in ``w.cost`` that arithmetic binds: without collectives, memory-bound ones, and gaps."""
    cost = w.cost[0]
    return max(0.0, cost[surface.TIME] - cost[surface.NETWORK] - cost[surface.MEMORY] - gap_s)


def _fill(w: SimulationState, variant: int, lane: int, extra: float) -> float:
    """Fine-tuning tokens that fit beside a step, under its limits of tokens and time; the tokens beside it in all."""
    row = w.step[lane]
    most = max(0.0, w.rules.fill_tokens - row[N_NEW] - row[N_DECODES] - extra)
    if w.rules.fill_sequence:
        left = 0.0 if w.rates[lane, LAYERS_BACK] > 0.0 else w.rules.fill_sequence - w.rates[lane, FILLED_TOKENS]
        most = min(most, left)
    low, high = 0.0, most
    for attempt in range(FILL_ATTEMPTS):
        _pass(w, variant, lane, extra + high, 1.0)
        if w.cost[0, surface.TIME] <= w.rules.fill_until_s:
            low = high
            if attempt == 0:
                break
            high = min(most, 0.5 * (high + most))
        else:
            most = high
            high = 0.5 * (low + high)
        if most - low < 1.0:
            break
    low = np.floor(low)
    _pass(w, variant, lane, extra + low, 1.0)
    row[N_FILL] = low
    w.totals[FINETUNED] += low
    if w.rules.fill_sequence and low > 0.0:
        w.rates[lane, FILLED_TOKENS] += low
        if w.rates[lane, FILLED_TOKENS] >= w.rules.fill_sequence:
            w.rates[lane, FILLED_TOKENS] = 0.0
            w.rates[lane, LAYERS_BACK] = w.num_layers
    return extra + low


def _back_s(w: SimulationState, lane: int, step_s: float) -> float:
    """Time of the layers of a fine-tuning sequence that go back beside a step of ``step_s``, which filled nothing."""
    left = w.rates[lane, LAYERS_BACK]
    if left <= 0.0 or w.step[lane, N_FILL] > 0.0:
        return 0.0
    layers = min(left, float(w.rules.fill_layers))
    if step_s + layers * w.rules.fill_layer_s > w.rules.fill_until_s:
        layers = max(0.0, np.floor((w.rules.fill_until_s - step_s) / w.rules.fill_layer_s))
    w.rates[lane, LAYERS_BACK] -= layers
    return layers * w.rules.fill_layer_s


def _variant(w: SimulationState, unit: int, lane: int) -> int:
    """Which tables price a lane: of its deployment and, on a split machine, of its share and its company."""
    k = w.lanes[lane, DEPLOYMENT] * w.num_variants
    twin = w.lanes[lane, TWIN]
    if twin < 0:
        return k
    busy = w.units[w.lanes[twin, UNIT], BEGAN] == w.units[w.lanes[twin, UNIT], BEGAN]
    return k + 2 * w.machines[w.unit_machine[unit], SPLIT] + (1 if busy else 0)


def launches_of(w: SimulationState, lane: int) -> float:
    """The host's launches of a lane's step; none where a CUDA graph holds all of it."""
    row = w.step[lane]
    if row[N_PROMPTS] == 0.0 and row[N_FILL] == 0.0 and row[N_DECODES] <= w.rates[lane, GRAPH_SEQS]:
        return 0.0
    tokens = row[N_NEW] + row[N_DECODES] + row[N_EXTRA] + row[N_FILL]
    return w.rates[lane, HOST_PIECES_S if tokens <= w.rates[lane, GRAPH_TOKENS] else HOST_LAUNCH_S]


def with_host_s(
    w: SimulationState, lane: int, device_s: float, launch_s: float, sampling_s: float, host_s: float
) -> float:
    """Time of a step: the device's and the host's, which overlap in part."""
    exposed_s = (1.0 - w.rates[lane, HOST_OVERLAP_FRAC]) * host_s
    return max(max(device_s, launch_s) + sampling_s + exposed_s, host_s + launch_s)


def price_step(w: SimulationState, overlap: OverlapRule, swap: TransferRule, unit: int, now_s: float) -> float:
    """Start the step that was scheduled: when it ends."""
    first, end, machine = w.unit_lane[unit], w.unit_lane[unit + 1], w.unit_machine[unit]
    device_s = host_s = launch_s = sampling_s = delay_s = load_s = network_s = arithmetic_s = 0.0
    w.units[unit, MATRIX_WORK_S] = w.units[unit, MEMORY_WORK_S] = 0.0
    for lane in range(first, end):
        row = w.step[lane]
        sequences = row[N_PROMPTS] + row[N_DECODES]
        if sequences > 0.0:
            device_s = max(device_s, _lane_s(w, overlap, _variant(w, unit, lane), lane))
            network_s = max(network_s, w.cost[0, surface.NETWORK])
            if w.clocks[machine] != 1.0:
                arithmetic_s = max(arithmetic_s, _arithmetic_s(w, w.retained[w.lanes[lane, DEPLOYMENT], GAP_S]))
        launch_s = max(launch_s, launches_of(w, lane))
        sampling_s = max(sampling_s, w.rates[lane, SAMPLING_S] * sequences)
        host_s = max(host_s, w.rates[lane, HOST_STEP_S] + w.rates[lane, HOST_PER_SEQUENCE_S] * sequences)
        delay_s += row[N_DELAY_S]
        if row[N_LOAD] > 0.0:
            load_s = max(
                load_s, swap(row[N_LOAD], w.rates[lane, HOST_BYTES_PER_S], w.rates[lane, HOST_LATENCY_S], w.knobs[SWAP])
            )
            w.totals[LOADED] += row[N_LOAD]
    if end - first > 1:
        device_s += _together_s(w, first, end)
        network_s += w.cost[0, surface.NETWORK]
        if w.clocks[machine] != 1.0:
            arithmetic_s += _arithmetic_s(w, 0.0)
        _add_work(w, unit, float(end - first))
    device_s += arithmetic_s * (1.0 / float(w.clocks[machine]) - 1.0)
    if device_s > 0.0:
        device_s = max(device_s, w.retained[w.lanes[first, DEPLOYMENT], FETCH_S])
    step_s = with_host_s(w, first, device_s, launch_s, sampling_s, host_s)
    if host_s + launch_s > device_s:
        w.totals[HOST_BOUND] += step_s
    if load_s > 0.0:
        step_s = max(step_s, load_s) if w.rules.load_hides else step_s + load_s
    step_s = (step_s + delay_s) * float(w.slowness[machine])
    w.units[unit, SPENT] = _above_idle_j(w, unit, float(end - first), step_s)
    if w.machines[machine, SHARING] > 0:  # steps of several models, one after the other
        now_s = max(now_s, w.stage_s[machine, 0])
        w.stage_s[machine, 0] = now_s + step_s
    w.units[unit, BEGAN] = now_s
    stages = w.machines[machine, STAGES]
    if stages == 1:
        return now_s + step_s
    return _through_stages(w, machine, stages, now_s, step_s, network_s)


def _together_s(w: SimulationState, first: int, end: int) -> float:
    """Device time of what the lanes of a unit do together, into ``w.cost`` too. Prompts that pass a part of the layers
    are there for that part of the time."""
    layered = others = 0.0
    part = 1.0
    for lane in range(first, end):
        row, frac = w.step[lane], w.rates[lane, LAYERS_FRAC]
        others += row[N_DECODES] + row[N_EXTRA] + row[N_FILL]
        if frac == 1.0:
            others += row[N_NEW]
        else:
            layered += row[N_NEW]
            part = frac if part == 1.0 else max(part, frac)
    tables, variant, cost = w.surfaces, w.lanes[first, DEPLOYMENT] * w.num_variants, w.cost
    cost[0, :] = 0.0
    shared_cost(tables, variant, cost[0], others + layered)
    if part != 1.0:
        cost[1, :] = 0.0
        shared_cost(tables, variant, cost[1], others)
        for c in range(cost.shape[1]):
            cost[0, c] = part * cost[0, c] + (1.0 - part) * cost[1, c]
    return cost[0, surface.TIME]


def _through_stages(
    w: SimulationState, machine: int, stages: int, now_s: float, step_s: float, network_s: float
) -> float:
    """When a batch leaves a pipeline: each stage takes it when the one before is done and its own last one is gone.

    A blocking send waits until the next stage is free, and holds its own until then; otherwise the stage computes on,
    and what it sends is under way meanwhile.
    """
    slowest_s = step_s * w.stage_share[machine]
    others_s = (step_s - slowest_s) / (stages - 1)
    send_s = network_s * w.send_share[machine] / (stages - 1) if w.rules.overlaps_sends else 0.0
    at_s = now_s
    for stage in range(stages):
        work_s = slowest_s if stage == 0 else others_s
        at_s = max(at_s, w.stage_s[machine, stage]) + work_s
        if w.rules.overlaps_sends:
            w.stage_s[machine, stage] = at_s - (min(send_s, work_s) if stage + 1 < stages else 0.0)
        else:
            if stage + 1 < stages:
                at_s = max(at_s, w.stage_s[machine, stage + 1])
            w.stage_s[machine, stage] = at_s
    return at_s
