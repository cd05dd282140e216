"""Training with offloaded states as a person reads it in a terminal."""

from orrery.base.units import figures, percent, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.cli.tables import print_facts
from orrery.cli.train_views import parts_table, print_run
from orrery.reports.words import BOUND_BY
from orrery.scenario.train_offload import OffloadAnswer

LANES = {
    "gpu": "device",
    "cpu": "host's update",
    "to_gpu": "link to the device",
    "to_host": "link to the host",
    "read": "drives, read",
    "write": "drives, written",
    "network": "between ranks",
}
"""Display names of the lanes."""


def print_offload(answer: OffloadAnswer) -> None:
    """One configuration: its numbers, where the step goes, how busy lanes are, what tiers hold, and the whole run."""
    out, job = console(), answer.job
    out.print(
        f"[bold]{job.model.name}[/] on {job.cluster.num_devices} x {job.cluster.device.name} ({answer.layout}), "
        f"{job.recipe.name}, {job.framework.name}, {answer.offload}, {job.global_batch} x {job.seq_len} tokens a step"
    )
    out.print(_figures(answer))
    out.print(parts_table(answer.parts, answer.step_time_s, "Where the step goes (waiting: what no work hides)"))
    out.print(f"Limited by {BOUND_BY[answer.bound_by]}.")
    busy = [f"{LANES[k]} {percent(s / answer.step_time_s)}" for k, s in answer.lanes.items() if s > 0.0]
    out.print(f"Busy: {', '.join(busy)}.")
    out.print(_tiers(answer))
    for table in answer.tables:
        print_facts(table)
    if answer.run:
        print_run(out, answer.run)


def _figures(answer: OffloadAnswer) -> Sheet:
    table = Sheet("", "", has_header=False)
    table.add_row("step", text(answer.step_time_s, "s"))
    table.add_row("tokens/s per device", f"{answer.tokens_per_s_per_device:,.0f}")
    table.add_row("model FLOPs utilization (MFU)", percent(answer.mfu_frac, 1))
    table.add_row("power of a device", text(answer.power_w, "w"))
    table.add_row("energy per token", text(answer.energy_j_per_token, "j"))
    if (usd := answer.usd_per_million_tokens) is not None:
        table.add_row("a million tokens", f"${figures(usd)}")
    return table


def _tiers(answer: OffloadAnswer) -> Sheet:
    """Contents of each memory tier, for one device's part."""
    t, held = answer.tiers, answer.held
    table = Sheet("tier", "holds", "has", "share", title="Memory by tier, one device's part")
    for name, holds, has in (
        ("device", held.gpu_bytes, t.gpu_bytes),
        ("host memory", held.host_bytes, t.host_bytes),
        ("NVMe drives", held.nvme_bytes, t.nvme_bytes),
    ):
        share = percent(holds / has, 1) if has > 0.0 else ""
        table.add_row(name, text(holds, "bytes"), text(has, "bytes"), share)
    return table
