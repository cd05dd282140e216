"""Checkpoints that any layout can load: after the loss of a node the rest goes on under other degrees."""

import math
from dataclasses import replace
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.execution.train.layout import TrainingLayout
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.changed import Changed
from orrery.scenario.train_with.failures import STORAGE_BYTES_PER_S
from orrery.training.allowed import refusal
from orrery.training.columns import columns_of
from orrery.training.memory import room_bytes
from orrery.training.ranks import costed
from orrery.training.reshape import Outage, Recovery, ReshapeTimes, Storage, recovery, reshape_times
from orrery.training.reshape.storage import ATOM_BYTES, ATOM_STATES, SHARD_BYTES, Packing, sequential_convert_s

RESHAPE = "reshape"
"""The word of ``checkpoint`` for saves that are converted after a loss."""

PACK_BYTES_PER_S, FILE_S = 1e9, 0.005
"""Assumed where nobody says: one process serialises about a gigabyte a second, and a parallel file system opens a file
in milliseconds."""

DEGREES = ("tp", "pp", "dp")


def with_reshape(scenario: Scenario, plain: Changed) -> Changed:
    """The same step; tables of what reshaping takes, and where a repair is waited for, what that loses."""
    if scenario.checkpoint != RESHAPE:
        if scenario.reshape_to is not None:
            raise ScenarioError("reshape_to: is of reshaping; write checkpoint = reshape, or leave it out.")
        return plain
    if scenario.reshape_to is None:
        raise ScenarioError(
            'reshape_to: is missing; write the degrees of the nodes that are left, such as "tp=4,pp=2".'
        )
    after = _reshaped(scenario, plain)
    out, back = times_of(scenario, plain, after), times_of(scenario, after, plain)
    same = times_of(scenario, plain, plain)
    tables, notes = [_times_table(plain, after, out, alone_s(scenario, plain, after))], list[str]()
    for name, value in (("pack_bytes_per_s", PACK_BYTES_PER_S), ("checkpoint_file_s", FILE_S)):
        if getattr(scenario, name) is None:
            notes.append(f"{name}: {value:g} (assumed)")
    changed = plain
    if scenario.repair_s is not None:
        speed = plain.step_s / after.step_s
        fits = max(r.peak_bytes for r in after.ranks) <= room_bytes(after.job)
        if not fits:
            notes.append(f"reshape_to: {after.layout} does not fit its devices; nothing is trained until the repair")
        outage = Outage(
            repair_s=scenario.repair_s,
            remaining_frac=min(1.0, speed) if fits else 0.0,
            load_s=same.load_s,
            reshape_s=out.reshape_s,
            back_s=back.all_s,
        )
        found = recovery(outage)
        tables.append(_outage_table(outage, found, after))
        changed = replace(plain, outage_lost_s=found.elastic_lost_s - same.load_s)
    return changed.saying(*tables, notes=tuple(notes))


def _reshaped(scenario: Scenario, plain: Changed) -> Changed:
    """The job on the devices that the new degrees take, priced like any other."""
    degrees, cluster = _degrees(str(scenario.reshape_to)), plain.job.cluster
    model_ranks = degrees.get("tp", plain.layout.tp) * degrees.get("pp", plain.layout.pp)
    left = cluster.num_devices - (cluster.devices_per_node if cluster.num_nodes > 1 else 0)
    if "dp" not in degrees:
        degrees["dp"] = _data_ranks(plain, left // model_ranks)
    layout = replace(plain.layout, **{"vp": 1, "schedule": "1f1b", **degrees})
    devices = layout.num_devices
    if not 1 <= devices <= cluster.num_devices:
        raise ScenarioError(
            f"reshape_to: {scenario.reshape_to} takes {devices} devices; the job has {cluster.num_devices}, "
            f"{left} after the loss of a node."
        )
    smaller = replace(cluster, num_devices=devices, devices_per_node=min(cluster.devices_per_node, devices))
    job = replace(plain.job, cluster=smaller)
    if text := refusal(job, columns_of([layout])):
        raise ScenarioError(f"reshape_to: {text}")
    steps, ranks = costed(job, layout)
    return Changed(job=job, layout=layout, steps=steps, ranks=ranks)


def _degrees(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in text.split(","):
        name, _, value = (part.strip() for part in one.partition("="))
        if name not in DEGREES or not value.isdigit() or not 1 <= int(value) <= 65536:
            raise ScenarioError(f"reshape_to: got {one!r}; write DEGREE=N with tp, pp or dp, such as tp=4,pp=2.")
        found[name] = int(value)
    return found


def _data_ranks(plain: Changed, most: int) -> int:
    """The most data-parallel ranks that the global batch comes out over."""
    batch = plain.job.global_batch // plain.layout.micro_batch
    return max((n for n in range(1, most + 1) if batch % n == 0), default=1)


def times_of(scenario: Scenario, before: Changed, after: Changed) -> ReshapeTimes:
    """Saved by the one layout, converted and loaded by the other: bytes over storage, and what processes do beside."""
    rate = scenario.storage_bytes_per_s or STORAGE_BYTES_PER_S
    parameters = before.job.model.num_parameters
    source, target = (Storage(num_nodes=x.job.cluster.num_nodes, node_bytes_per_s=rate) for x in (before, after))
    moved, packed = reshape_times(parameters, source, target), packing_of(scenario, before, after).times(parameters)
    return ReshapeTimes(
        save_s=moved.save_s + packed.save_s,
        convert_s=moved.convert_s + packed.convert_s,
        load_s=moved.load_s + packed.load_s,
    )


def alone_s(scenario: Scenario, before: Changed, after: Changed) -> float:
    """Seconds in which a single process converts the checkpoint, as tools do that merge shards."""
    rate = scenario.storage_bytes_per_s or STORAGE_BYTES_PER_S
    parameters, packing = before.job.model.num_parameters, packing_of(scenario, before, after)
    moved_bytes = (SHARD_BYTES + ATOM_BYTES) * parameters
    num_files = packing.num_source_ranks + ATOM_STATES * packing.num_tensors
    one = Storage(num_nodes=1, node_bytes_per_s=rate)
    return sequential_convert_s(parameters, one) + packing.seconds(moved_bytes, 1, num_files)


def packing_of(scenario: Scenario, before: Changed, after: Changed) -> Packing:
    """Processes, files and tensors of both layouts."""
    blocks = (*before.job.model.encoder, *before.job.model.blocks)
    file_s = scenario.checkpoint_file_s
    return Packing(
        num_source_ranks=before.layout.num_devices,
        num_target_ranks=after.layout.num_devices,
        num_target_stages=after.layout.pp,
        num_tensors=sum(b.count * (len(b.linears) + NORMS) for b in blocks) + ENDS,
        process_bytes_per_s=scenario.pack_bytes_per_s or PACK_BYTES_PER_S,
        file_s=FILE_S if file_s is None else file_s,
    )


NORMS, ENDS = 2, 3
"""Tensors of a layer beside its products; and embedding, last norm and head."""


def _times_table(before: Changed, after: Changed, times: ReshapeTimes, one_process_s: float) -> Table:
    rows = [
        {"step": name, "layout": str(layout), "time_s": seconds}
        for name, layout, seconds in (
            ("save", before.layout, times.save_s),
            ("convert", after.layout, times.convert_s),
            ("load", after.layout, times.load_s),
            ("convert by one process", after.layout, one_process_s),
        )
    ]
    return Table(kind="reshape", title="A checkpoint under another layout", rows=tuple(rows))


def _outage_table(outage: Outage, found: Recovery, after: Changed) -> Table:
    rows: list[dict[str, Any]] = [
        {"after_a_loss": "wait for the repair", "lost_s": found.waiting_lost_s, "speed_meanwhile_frac": 0.0},
        {
            "after_a_loss": f"go on as {_short(after.layout)}",
            "lost_s": found.elastic_lost_s,
            "speed_meanwhile_frac": outage.remaining_frac,
        },
    ]
    for row in rows:
        row["break_even_repair_s"] = found.break_even_s if math.isfinite(found.break_even_s) else "none"
    return Table(kind="outage", title="Training at full speed that a lost node costs", rows=tuple(rows))


def _short(layout: TrainingLayout) -> str:
    return f"tp{layout.tp} pp{layout.pp} dp{layout.dp}"
