"""Points over two axes; those of the front are joined, the others stand back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from orrery.drawing.axis import Axis
from orrery.drawing.captions import left_out, not_shown, span
from orrery.drawing.marks import mark
from orrery.drawing.paper import classes, finish, heading, hue, kinds_of, label, legend, nothing, path, sheet_px
from orrery.drawing.plane import Plane, plane
from orrery.drawing.reach import reached
from orrery.drawing.words import clean, counted, listed, px, safe, shortened, width_px

MAX_POINTS = 250
"""Points that are drawn of the front, and behind it: of more, one in each small square."""

_RADIUS_PX = 4.0
_NAMED = 10
"""Points of the front that are named beside their marks, where there is room."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point: what it is, where it leads, what kind it is of, and whether nothing is better in both ways."""

    x: float
    y: float
    name: str
    href: str = ""
    kind: str = ""
    is_front: bool = False
    detail: str = ""
    id: str = ""


def scatter(points: Sequence[Point], x: Axis, y: Axis, *, title: str, says: str = "") -> str:
    """Every point can be reached by the keyboard and tells its name and values."""
    inside = [p for p in points if x.takes(p.x) and y.takes(p.y)]
    missing = left_out(len(points) - len(inside))
    if not inside:
        return nothing(title, says, [missing])
    body, top = heading(title, says)
    kinds = kinds_of(p.kind for p in inside)
    if len(kinds) > 1:
        keys, top = legend([(_key(n), kind or "other") for kind, n in kinds.items()], top)
        body += keys
    on = plane((x, y), [p.x for p in inside], [p.y for p in inside], top)
    seen = [p for p in inside if on.has(p.x, p.y)]
    front = _spread(sorted((p for p in seen if p.is_front), key=lambda p: (p.x, p.y)))
    behind = _thinned([p for p in seen if not p.is_front], on)
    body.append(f'<g role="img" aria-label="{safe(f"Axes: {x.name()} and {y.name()}")}">{"".join(on.drawn)}</g>')
    if len(front) > 1:
        body.append(path(_steps(front, on, seen), "a"))
    for kind, number in kinds.items():
        body.append(_kind(on, [p for p in behind if p.kind == kind], number, "p r z" if front else "p r"))
    for kind, number in kinds.items():
        body.append(_kind(on, [p for p in front if p.kind == kind], number, "p r"))
    body += _names(on, front or (seen if len(seen) <= _NAMED else []), seen)
    caption = _describe(x, y, inside, [p for p in inside if p.is_front])
    hidden = not_shown(len(inside) - len(front) - len(behind), len(inside), "points, near others or beyond the axes,")
    return finish(body, on.foot_px, title, [says, *caption, hidden, missing], is_interactive=True)


def _key(number: int) -> str:
    return f'<g class="orr-{hue(number)}">{mark(number, 0, 0, _RADIUS_PX, "r")}</g>'


def _spread(front: list[Point]) -> list[Point]:
    """The front, or points spread evenly along it, its ends among them."""
    if len(front) <= MAX_POINTS:
        return front
    return [front[n * (len(front) - 1) // (MAX_POINTS - 1)] for n in range(MAX_POINTS)]


def _thinned(points: list[Point], on: Plane) -> list[Point]:
    """The first point of every square; squares grow until the points are few enough."""
    side, retained = 1.0, points
    while len(retained) > MAX_POINTS:
        side *= 1.4
        cells = {(int(on.x.at(p.x) / side), int(on.y.at(p.y) / side), p.kind): p for p in reversed(points)}
        retained = list(cells.values()) if len(cells) <= MAX_POINTS or side < 500 else list(cells.values())[:MAX_POINTS]
    return retained


def _kind(on: Plane, points: list[Point], number: int, kind: str) -> str:
    drawn = "".join(_point(on, p, number) for p in points)
    return f"<g{classes(f'{hue(number)} {kind}')}>{drawn}</g>" if drawn else ""


def _point(on: Plane, p: Point, number: int) -> str:
    values = f"{on.x.axis.describe(p.x)}, {on.y.axis.describe(p.y)}"
    caption = f"{p.name}: {values}" + (f"; {p.detail}" if p.detail else "")
    shape = mark(number, on.x.at(p.x), on.y.at(p.y), _RADIUS_PX + p.is_front, "")
    return reached(p.name or values, caption, shape, p.href, p.id)


def _steps(front: list[Point], on: Plane, seen: list[Point]) -> str:
    """The edge of what can be had: between two points it keeps to the worse of both."""
    is_falling = front[-1].y <= front[0].y
    others = [p for p in seen if not p.is_front]
    ahead = sum(1 for p in others if any(f.x >= p.x and f.y >= p.y for f in front))
    behind = sum(1 for p in others if any(f.x <= p.x and f.y <= p.y for f in front))
    is_drop_first = is_falling and ahead >= behind
    d = f"M{px(on.x.at(front[0].x))} {px(on.y.at(front[0].y))}"
    for p in front[1:]:
        x, y = px(on.x.at(p.x)), px(on.y.at(p.y))
        d += f"V{y}H{x}" if is_drop_first else f"H{x}V{y}"
    return d


def _names(on: Plane, named: list[Point], seen: list[Point]) -> list[str]:
    """Names where they cover neither a mark nor another name; the first and last of the front come first."""
    taken = [(on.x.at(p.x) - 4, on.y.at(p.y) - 4, on.x.at(p.x) + 4, on.y.at(p.y) + 4) for p in seen[:MAX_POINTS]]
    step = max(1, len(named) // _NAMED)
    out: list[str] = []
    for p in [*named[:1], *named[-1:], *named[1:-1:step]][: len(named)]:
        text = shortened(p.name, 0.6 * sheet_px(), 11)
        x, y, width = on.x.at(p.x), on.y.at(p.y), width_px(text, 11)
        for left, foot in ((x + 8, y - 5), (x + 8, y + 12), (x - 8 - width, y + 12), (x - 8 - width, y - 5)):
            box = (left, foot - 10, left + width, foot + 2)
            is_inside = box[0] > on.x.start_px and box[2] < sheet_px() and box[1] > on.y.end_px - 12
            if is_inside and box[3] < on.y.start_px and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                out.append(label(left, foot, text, "n o", more=' aria-hidden="true"'))
                break
    return out


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _describe(x: Axis, y: Axis, inside: list[Point], front: list[Point]) -> Iterator[str]:
    yield (
        f"{counted(len(inside), 'point')}: {x.label or 'x'} {span(x, (p.x for p in inside))}, "
        f"{y.label or 'y'} {span(y, (p.y for p in inside))}"
    )
    if front:
        shown = (f"{clean(p.name)} ({x.describe(p.x)}, {y.describe(p.y)})" for p in front)
        yield f"{counted(len(front), 'point is', 'points are')} on the front: {listed(shown, 6)}"
