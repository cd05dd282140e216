"""Result of the loop, from its final tables."""

from math import ceil

import numpy as np

from orrery.execution.memory import Infeasible
from orrery.serving.requests import Requests
from orrery.serving.simulation.assemble import Assembled
from orrery.serving.simulation.result import TIMELINE, Simulated
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.tables import _kernel as tables
from orrery.serving.simulation.world import reached_s

PRIVATE = ("log_rows", "width_s", "window_start_s", "window_end_s")
"""Totals that only the loop reads."""


def result_of(
    service: Service, requests: Requests, assembled: Assembled, world: tables.SimulationState
) -> Simulated | Infeasible:
    """The run as a result; Infeasible where not one request was served."""
    totals = dict(zip(tables.TOTALS, world.totals.tolist(), strict=True))
    arrived_s, admitted_s, first_s, finish_s = (
        np.ascontiguousarray(world.when[:, c])
        for c in (tables.ARRIVED_S, tables.ADMITTED_S, tables.FIRST, tables.FINISH)
    )
    if not np.isfinite(finish_s).any():
        return _never_fits(requests, assembled)
    reached = reached_s(service, requests, has_order=not world.rules.concurrency)
    arrive_s = arrived_s - (reached - requests.arrive_s)
    end_s = float(np.nanmax(finish_s))
    duration_s = end_s - float(np.nanmin(arrive_s))
    width_s, rows = totals["width_s"], int(totals["log_rows"])
    used = max(1, min(world.timeline.shape[0], ceil(end_s / width_s + 1e-9)))
    idle_w = sum(
        p.deployment.cluster.device.idle_power_w * p.replicas * p.deployment.layout.num_devices
        for p in service.own_pools
    )
    timeline = world.timeline[:used]
    timeline[:, TIMELINE.index("energy_j")] += idle_w * width_s
    units_s = duration_s * assembled.unit_machine.size
    counters = {k: v for k, v in totals.items() if k not in PRIVATE}
    if counters["guessed_swaps"]:
        counters["swap_hit_frac"] = counters["right_guesses"] / counters["guessed_swaps"]
    if service.filling and not service.filling.backward_layers:  # both ways were counted
        counters["finetune_tokens"] /= service.filling.pass_ratio
    return Simulated(
        requests=requests,
        arrive_s=arrive_s,
        admitted_s=admitted_s,
        first_token_s=first_s,
        finish_s=finish_s,
        cached_tokens=world.req[:, tables.CACHED],
        preemptions=world.req[:, tables.PREEMPTED],
        machine=world.req[:, tables.MACHINE],
        gap_counts=world.gaps,
        gap_sum_s=counters.pop("gap_sum_s"),
        gap_squares_s2=counters.pop("gap_squares_s2"),
        timeline_s=np.arange(used + 1) * width_s,
        timeline=timeline,
        step_log=world.log[:rows],
        num_steps=int(counters.pop("steps")),
        duration_s=duration_s,
        num_machines=assembled.num_machines,
        num_devices=service.num_devices,
        energy_j=counters.pop("energy_j") + idle_w * duration_s,
        kv_capacity_bytes=float(assembled.capacity.sum()),
        idle_frac=max(0.0, 1.0 - counters.pop("busy_s") / units_s) if units_s > 0 else 0.0,
        max_running=int(assembled.lanes[:, tables.MAX_SEQS].max()),
        counters={**counters, "evicted_blocks": float(world.memory.evictions[0])},
    )


def _never_fits(requests: Requests, assembled: Assembled) -> Infeasible:
    shortest = int((requests.input_tokens + requests.output_tokens).min())
    held, lends = [m.kv_capacity_tokens for m in assembled.memories], assembled.lending_s >= 0.0
    return Infeasible(
        what="cache for the shortest request" + (", lent by all replicas" if lends else ""),
        need=float(shortest),
        have=min(held) * (assembled.capacity.size if lends else 1),
        unit="tokens",
        smallest_change="Use more devices, a narrower cache format, or shorter requests.",
    )
