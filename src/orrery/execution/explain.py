"""One entry of a step as a tree of costs: blocks, then kernels, down to the facts that entered."""

from orrery.base.cost import Cost, total
from orrery.base.sources import Fact
from orrery.execution.batch import Part
from orrery.execution.layout import Deployment
from orrery.execution.step import Step
from orrery.hardware.device import Device


def explain(deployment: Deployment, done: Step, entry: int, name: str, energy_j: float = 0.0) -> Cost:
    """The tree of one entry; its leaves add up to the step's time on the device."""
    groups: dict[str, list[Cost]] = {}
    for p in done.parts:
        if p.time_s[entry] > 0:
            groups.setdefault(p.group, []).append(_leaf(deployment, p, entry))
    tree = total(name, [total(group, costs) for group, costs in groups.items()])
    return Cost(
        name=name,
        time_s=tree.time_s,
        exposed_s=tree.exposed_s,
        energy_j=energy_j,
        flops=tree.flops,
        bytes=tree.bytes,
        bound_by=tree.bound_by,
        parts=tree.parts,
    )


def bound_by(p: Part, entry: int) -> str:
    """The resource that takes most of a part's time."""
    if p.group == "network":
        return "network"
    if p.group == "gaps":
        return "overhead"
    roofs = dict(zip(("compute", "memory", "overhead"), p.roofs_s(entry), strict=True))
    return max(roofs, key=roofs.__getitem__)


def _leaf(deployment: Deployment, p: Part, entry: int) -> Cost:
    time_s, (flops, moved) = float(p.time_s[entry]), p.work(entry)
    return Cost(
        name=p.name,
        time_s=time_s,
        exposed_s=time_s,
        flops=flops,
        bytes=moved,
        bound_by=bound_by(p, entry),
        because=_because(deployment.cluster.device, p),
    )


def _because(device: Device, p: Part) -> tuple[Fact, ...]:
    """The datasheet lines and fitted constants behind one part."""
    names = ["memory_bandwidth_bytes_per_s", *(f"dense_{p.format}_flops_per_s",)]
    if p.group == "network":
        names = [n for n in device.facts if n.startswith("scaleup_")]
    facts = [device.facts[n] for n in names if n in device.facts]
    found = p.calibration.fact if p.calibration else None
    return tuple(facts) + ((found,) if found else ())


def limit_of(done: Step, entry: int) -> str:
    """Which resource takes most of one entry's time, over all parts."""
    by: dict[str, float] = {}
    for p in done.parts:
        kind = bound_by(p, entry)
        by[kind] = by.get(kind, 0.0) + float(p.time_s[entry])
    return max(by, key=by.__getitem__) if by else ""
