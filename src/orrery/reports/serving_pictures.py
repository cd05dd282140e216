"""Where the time, the memory and the power of arithmetic of a deployment go, drawn."""

from collections.abc import Sequence

from orrery.base.cost import Cost
from orrery.drawing import Axis, Bar, Op, Part, Point, Slope, roofline, scatter, stacked
from orrery.execution.memory import Memory
from orrery.planner.plan import FrontPoint
from orrery.reports.ops import StepKind, ops_of
from orrery.reports.report import Figure
from orrery.reports.roofs import roofs
from orrery.reports.words import BOUND_BY, capital, format_value
from orrery.serving.estimate import Estimate

MAX_FRONT = 200
GROUPS_NAMED = 7
"""Parts of a step that are told apart; the rest is one."""


def memory_figure(memories: Sequence[tuple[str, Memory]]) -> Figure:
    """Peak memory per device of each deployment, by category."""
    bars = [
        Bar(
            name,
            [
                Part("weights", m.weights_bytes),
                Part("KV cache", m.kv_capacity_bytes),
                Part("activations", m.activation_bytes),
                Part("buffers", m.communication_bytes),
                Part("driver and libraries", m.context_bytes),
            ],
            mark=m.capacity_bytes if not number or m.capacity_bytes != memories[0][1].capacity_bytes else None,
            mark_name="capacity",
        )
        for number, (name, m) in enumerate(memories)
    ]
    m = memories[0][1]
    tokens = f"{m.kv_capacity_tokens:,.0f} tokens" if m.kv_capacity_tokens < float("inf") else "any number of tokens"
    summary = (
        f"Weights take {format_value(m.weights_bytes, 'bytes')} of "
        f"{format_value(m.capacity_bytes, 'bytes')}; the KV cache that is left "
        f"holds {tokens} in each replica."
    )
    return Figure(
        title="Peak memory per device",
        summary=summary,
        svg=stacked(bars, Axis("", "bytes"), title="Peak memory per device"),
    )


def time_figure(e: Estimate) -> Figure:
    """The two kinds of step by what they do."""
    steps = [("decode step", e.cost), ("prefill step", e.prefill_cost)]
    bars = [Bar(name, _parts(cost)) for name, cost in steps if cost.time_s > 0]
    longest = max(_parts(e.cost), key=lambda p: p.value)
    summary = (
        f"{capital(longest.name)} take{'' if longest.name.endswith('s') else 's'} most of a decode "
        f"step ({format_value(longest.value / (e.cost.time_s or 1.0), 'frac')}); the run as a whole is limited by "
        f"{BOUND_BY.get(e.bound_by, e.bound_by)}."
    )
    return Figure(
        title="Time of one step on a device",
        summary=summary,
        svg=stacked(bars, Axis("", "s"), title="Time of one step on a device"),
    )


def _parts(cost: Cost) -> list[Part]:
    """The longest groups of a step, in one order for every step, and the rest."""
    found = sorted(cost.parts, key=lambda p: -p.time_s)
    parts = [Part(_named(p.name), p.time_s) for p in found[:GROUPS_NAMED]]
    rest = sum(p.time_s for p in found[GROUPS_NAMED:])
    return [*parts, Part("the rest", rest)] if rest > 0 else parts


def _named(group: str) -> str:
    return {
        "dense": "linear layers",
        "gaps": "gaps between kernels",
        "head": "output head",
        "network": "links between devices",
    }.get(group, group)


def roofline_figure(e: Estimate) -> Figure | None:
    """The operations of both steps under the device's roofs; None where no kernel states its work."""
    device = e.deployment.cluster.device
    steps: dict[str, StepKind] = {"answers": "decode", "prompts": "prompts"}
    placed = [(kind, op) for kind, step in steps.items() for op in ops_of(e, step) if op.flops > 0 and op.bytes > 0]
    if not placed:
        return None
    marks = [Op(op.name, op.flops / op.bytes, op.flops / op.time_s, op.time_s, kind) for kind, op in placed]
    svg = roofline(
        [Slope("memory", device.memory_bandwidth_bytes_per_s)],
        roofs(device, [op for _, op in placed]),
        marks,
        title=f"Operations under the roofs of {device.name}",
    )
    summary = (
        "Left of the corner memory bandwidth limits an operation, right of it arithmetic; the larger a mark, the more "
        "of a step's time it takes. The nearer to the roof, the less is left to gain by better kernels."
    )
    return Figure(title="Main operations under the device's roofs", summary=summary, svg=svg)


def front_figure(points: Sequence[FrontPoint], chosen: tuple[float, float] | None) -> Figure | None:
    """Speed for one reader against work from one device, over everything that fits; None without points."""
    if not points:
        return None
    step = max(1, len(points) // MAX_FRONT)
    is_one = len({p.candidate.deployment.cluster.device.name for p in points}) == 1
    drawn = [
        Point(
            p.output_tokens_per_s_per_user,
            p.output_tokens_per_s_per_device,
            _short(p, is_one),
            kind="meets SLO" if p.meets_objectives else "misses SLO",
            is_front=True,
            detail=f"{p.concurrency:.3g} in flight",
        )
        for p in points[::step]
    ]
    if chosen:
        drawn.append(Point(*chosen, "the plan at this load", kind="the plan at this load"))
    svg = scatter(
        drawn,
        Axis("interactivity (tokens/s/user)"),
        Axis("output throughput per device (tokens/s)"),
        title="Pareto front of these devices",
    )
    summary = (
        "Every point is Pareto-optimal: more tokens/s per user cost throughput per device. The plan "
        "lies below the line where it has spare capacity."
    )
    return Figure(title="Interactivity against throughput per device", summary=summary, svg=svg)


def _short(point: FrontPoint, is_one: bool) -> str:
    """The cut and the weights' format; the device where there are several."""
    d = point.candidate.deployment
    return " ".join([*([] if is_one else [d.cluster.device.name]), str(d.layout), d.formats.weights])
