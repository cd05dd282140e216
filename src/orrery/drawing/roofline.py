"""The roofline: what bandwidth and arithmetic allow, and where operations stand under it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orrery.base.units import percent, si
from orrery.drawing.axis import Axis
from orrery.drawing.captions import left_out, not_shown
from orrery.drawing.marks import mark
from orrery.drawing.paper import classes, finish, heading, hue, is_narrow, kinds_of, label, legend, nothing, path
from orrery.drawing.plane import Plane, plane
from orrery.drawing.reach import reached
from orrery.drawing.words import listed, px, shortened

MAX_OPS, MAX_ROOFS = 150, 8
_MIN_RADIUS_PX, _MAX_RADIUS_PX, _NAMED = 3.5, 16.0, 8
_LABEL_PX = 190.0
_ALONG, _UP = Axis("Operations per byte", "OP/B", is_log=True), Axis("Speed", "OP/s", is_log=True)


@dataclass(frozen=True, slots=True)
class Roof:
    """A peak rate of arithmetic."""

    name: str
    ops_per_s: float
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Slope:
    """A bandwidth."""

    name: str
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Op:
    """An operation as it runs: how much it computes on a byte, how fast, and for how long."""

    name: str
    ops_per_byte: float
    ops_per_s: float
    time_s: float
    kind: str = ""
    href: str = ""


def roofline(slopes: Sequence[Slope], roofs: Sequence[Roof], ops: Sequence[Op], *, title: str, says: str = "") -> str:
    """Operations by intensity and speed; a mark's area is the operation's share of the time."""
    inside = [o for o in ops if _ALONG.takes(o.ops_per_byte) and _UP.takes(o.ops_per_s)]
    flat = [r for r in roofs if _UP.takes(r.ops_per_s)]
    slant = [s for s in slopes if _UP.takes(s.bytes_per_s)]
    missing = left_out(len(ops) + len(roofs) + len(slopes) - len(inside) - len(flat) - len(slant))
    if not inside and not flat:
        return nothing(title, says, [missing])
    ordered = sorted(inside, key=_time, reverse=True)
    shown = ordered[:MAX_OPS]
    hidden = [
        not_shown(len(inside) - len(shown), len(inside), "operations"),
        not_shown(len(flat) - MAX_ROOFS, len(flat), "roofs"),
        not_shown(len(slant) - MAX_ROOFS, len(slant), "bandwidths"),
    ]
    flat, slant = flat[:MAX_ROOFS], slant[:MAX_ROOFS]
    body, top = heading(title, says)
    kinds = kinds_of(o.kind for o in inside)
    if len(kinds) > 1:
        keys, top = legend([(_key(n), kind or "other") for kind, n in kinds.items()], top)
        body += keys
    p = plane((_ALONG, _UP), *_ends(slant, flat, inside), top)
    body.append(f'<g role="img" aria-label="Roofs and axes">{"".join([*p.drawn, *_roofs(p, slant, flat)])}</g>')
    whole = math.fsum(map(_time, inside))
    body += [_op(p, o, kinds[o.kind], _time(o) / whole if whole else 0.0) for o in shown]
    body += _names(p, shown)
    caption = _describe(slant, flat, ordered, whole)
    return finish(body, p.foot_px, title, [says, *caption, *hidden, missing], is_interactive=True)


def _time(o: Op) -> float:
    return o.time_s if Axis("").takes(o.time_s) and o.time_s > 0 else 0.0


def _key(number: int) -> str:
    return f'<g class="orr-{hue(number)}">{mark(number, 0, 0, 4.0, "r")}</g>'


def _ends(slopes: list[Slope], roofs: list[Roof], ops: list[Op]) -> tuple[list[float], list[float]]:
    """Intensities and speeds that the plane must hold: every ridge and operation, with room on both sides."""
    xs = [r.ops_per_s / s.bytes_per_s for r in roofs for s in slopes] + [o.ops_per_byte for o in ops] or [1.0]
    xs = [x for x in xs if _ALONG.takes(x)] or [1.0]
    xs = [min(xs) / 3, max(xs) * 5]
    speeds = [r.ops_per_s for r in roofs] + [o.ops_per_s for o in ops]
    reached = [s.bytes_per_s * xs[0] for s in slopes]
    return xs, [*speeds, max(speeds) * 1.6, *(y for y in reached if _UP.takes(y) and y > max(speeds) / 1e6)]


def _roofs(p: Plane, slopes: list[Slope], roofs: list[Roof]) -> Iterator[str]:
    """Each bandwidth up to the highest roof, each roof from the steepest bandwidth on."""
    highest = max((r.ops_per_s for r in roofs), default=p.y.high)
    steepest = max((s.bytes_per_s for s in slopes), default=0.0)
    places: list[float] = []
    for r in sorted(roofs, key=lambda r: -r.ops_per_s):
        start = min(max(r.ops_per_s / steepest, p.x.low), p.x.high) if steepest else p.x.low
        y = p.y.at(r.ops_per_s)
        line = path(f"M{px(p.x.at(start))} {px(y)}H{px(p.x.end_px)}", "l d" if r.is_dashed else "l")
        caption = f"{shortened(r.name, 220)} {si(r.ops_per_s, 'OP/s')}"
        beside = sum(abs(y - other) < 15 for other in places)
        places.append(y)
        yield line + _roof_name(p.x.end_px, y, caption, beside)
    turn = math.degrees(math.atan2(p.y.at(10 * p.y.low) - p.y.start_px, p.x.at(10 * p.x.low) - p.x.start_px))
    for s in slopes:
        low = max(p.x.low, p.y.low / s.bytes_per_s)
        high = min(p.x.high, highest / s.bytes_per_s)
        if low >= high:
            continue
        ends = [(p.x.at(x), p.y.at(s.bytes_per_s * x)) for x in (low, high)]
        yield path("M" + "L".join(f"{px(x)} {px(y)}" for x, y in ends), "l")
        (x0, y0), (x1, y1) = ends
        at = f"rotate({px(turn)} {px((x0 + x1) / 2)} {px((y0 + y1) / 2)})"
        caption = f"{shortened(s.name, 160)} {si(s.bytes_per_s, 'B/s')}"
        yield label((x0 + x1) / 2, (y0 + y1) / 2 - 6, caption, "m o", more=f' transform="{at}"')


def _roof_name(end_px: float, y: float, caption: str, beside: int) -> str:
    """Names of near roofs stand side by side; on a narrow sheet above and below their lines."""
    if is_narrow():
        return label(end_px, y + 15 if beside else y - 6, caption, "e o") if beside < 2 else ""
    return label(end_px - beside * _LABEL_PX, y - 6, caption, "e o") if beside < 3 else ""


def _radius_px(share: float) -> float:
    return max(_MIN_RADIUS_PX, _MAX_RADIUS_PX * math.sqrt(share))


def _op(p: Plane, o: Op, number: int, share: float) -> str:
    caption = (
        f"{o.name}: {si(o.ops_per_byte)} operations per byte, {si(o.ops_per_s, 'OP/s')}, "
        f"{si(_time(o), 's')}, {percent(share, 1)} of the time"
    )
    shape = mark(number, p.x.at(o.ops_per_byte), p.y.at(o.ops_per_s), _radius_px(share), "")
    return f"<g{classes(f'p r {hue(number)}')}>{reached(o.name, caption, shape, o.href)}</g>"


def _names(p: Plane, ops: list[Op]) -> Iterator[str]:
    """The operations that take longest, named where names do not meet."""
    taken: list[tuple[float, float]] = []
    for o in ops[:_NAMED]:
        x, y = p.x.at(o.ops_per_byte), p.y.at(o.ops_per_s) + 4
        if any(abs(x - a) < 110 and abs(y - b) < 13 for a, b in taken):
            continue
        taken.append((x, y))
        is_left = x > p.x.end_px - 120
        yield label(x - 20 if is_left else x + 20, y, o.name, "n o e" if is_left else "n o", 130.0)


def _describe(slopes: list[Slope], roofs: list[Roof], ops: list[Op], whole: float) -> Iterator[str]:
    if roofs:
        yield "Roofs: " + listed(f"{r.name} {si(r.ops_per_s, 'OP/s')}" for r in roofs)
    if slopes:
        yield "Bandwidths: " + listed(f"{s.name} {si(s.bytes_per_s, 'B/s')}" for s in slopes)
    if ops:
        shares = (f"{o.name} {percent(_time(o) / whole if whole else 0.0)} at {si(o.ops_per_s, 'OP/s')}" for o in ops)
        yield f"Operations by share of the time: {listed(shares, 6)}"
