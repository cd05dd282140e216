"""The largest model that a machine trains with a technique of offloading, and with each tier of memory left out."""

from dataclasses import fields, replace
from typing import Any

from orrery.execution.memory import Infeasible
from orrery.execution.offload import OFFLOADS
from orrery.execution.offload.largest import Largest, largest_model
from orrery.execution.offload.shapes import gpt_of
from orrery.execution.offload.step import OffloadedStep
from orrery.execution.offload.tiers import Tiers
from orrery.execution.offload.work import Work
from orrery.scenario.show import Table
from orrery.scenario.train_offload_ask import Prepared
from orrery.scenario.train_offload_work import pieces_of

MIN_PARAMETERS = 1e7
ON_DEVICE = "all-on-device"


def largest_table(ready: Prepared) -> Table:
    """GPTs of GPT-3's proportions under the job's sequences, layout and precision, by what they may lie on."""
    tiers = ready.memory.tiers
    options = [("all tiers", ready, tiers)]
    if tiers.nvme_bytes > 0.0:
        above = _placed(ready, parameters="host", states="host")
        options.append(("without drives", above, replace(tiers, nvme_bytes=0.0)))
    if tiers.host_bytes > 0.0:
        options.append(("without host memory", _placed(ready, activations="gpu"), replace(tiers, host_bytes=0.0)))
    rows = [_row(option, ready.name, name, left) for name, option, left in options]
    if ready.name != ON_DEVICE:
        plain = OFFLOADS.get(ON_DEVICE)
        alone = replace(ready, name=ON_DEVICE, technique=plain, knobs=plain.knobs())
        rows.append(_row(alone, ON_DEVICE, "device alone", tiers))
    return Table(kind="largest", title="The largest GPT that fits", rows=tuple(rows))


def _placed(ready: Prepared, **places: str) -> Prepared:
    """The same with states on another tier, where the technique may put them there."""
    known = {f.name for f in fields(ready.knobs)}
    return replace(ready, knobs=replace(ready.knobs, **places)) if known >= set(places) else ready


def _row(ready: Prepared, offload: str, name: str, tiers: Tiers) -> dict[str, Any]:
    found = _largest(ready, tiers)
    if found is None:
        return {"offload": offload, "tiers": name, "num_parameters": 0, "model": "none", "step_s": "", "limit": ""}
    model = gpt_of(found.num_parameters * ready.layout.tp)
    return {
        "offload": offload,
        "tiers": name,
        "num_parameters": round(found.num_parameters * ready.layout.tp),
        "model": model.name,
        "step_s": found.step.step_s,
        "limit": found.infeasible.what.rsplit(": ", 1)[-1] if found.infeasible else "",
    }


def _largest(ready: Prepared, tiers: Tiers) -> Largest | None:
    """Sizes are of one device's part, as the tiers are."""
    tp = ready.layout.tp

    def work_of(num_parameters: float) -> Work:
        job = replace(ready.job, model=gpt_of(num_parameters * tp))
        return replace(pieces_of(job, ready.layout).work, num_micro_batches=1)

    def schedule(work: Work) -> OffloadedStep:
        return ready.rule(work, tiers)

    found = largest_model(schedule, tiers, work_of, least_parameters=MIN_PARAMETERS)
    return None if isinstance(found, Infeasible) else found
